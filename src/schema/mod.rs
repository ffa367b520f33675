//! JSON Schema for tool arguments: compiled once, checked per call, and explained to a model that must mend its call.
//!
//! This room alone names the schema library. The dialect is what `$schema` says, 2020-12 without it. What a schema may
//! ask for is bounded before it is compiled: schemas come from tools, and a tool need not be friendly.

mod bounds;
mod declared;
mod explain;
mod numeric;
mod representation;
mod types;
mod words;

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};

use crate::diagnostic::nearest;
use crate::json::{InexactNumber, Value};
use crate::path::Step;
use bounds::{Bounds, Size};
pub(crate) use declared::alternatives;
use numeric::Numbers;
use representation::Exact;
use words::name;

/// Problems beyond this many are not listed: the next attempt will show them.
const MAX_VIOLATIONS: usize = 8;

/// Bytes that one compiled `pattern` may take.
const PATTERN_SIZE: usize = 4 << 20;

/// A schema that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// What is wrong and what to do, with the place in the schema.
    pub message: String,
    /// The place in the schema as a JSON pointer, where it is known; empty for the schema as a whole.
    pub pointer: Option<String>,
}

impl SchemaError {
    fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), pointer: Some(pointer.into()) }
    }
}

/// One problem of an instance, in words for the model that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place in the instance as a JSON pointer; empty for the instance as a whole.
    pub pointer: String,
    /// What is wrong and what to do, values cut and escaped.
    pub message: String,
    /// What was probably meant, as a request that stands alone: ``use `order_id` instead of `ordr_id` ``.
    pub suggestion: Option<String>,
}

/// The problems as one message.
pub fn summary(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct ArgumentSchema {
    validator: Validator<Exact>,
    bounds: Bounds,
    schema: Arc<Value>,
    /// Whether it asks for types alone, which writes no number out.
    types_only: bool,
}

impl ArgumentSchema {
    /// Compiles a schema.
    ///
    /// - Nothing is ever fetched: a `$ref` must point into the schema itself. An `$id` below the root is refused,
    ///   because it would change where references point.
    /// - `pattern` runs in linear time: look-around and back-references are errors.
    /// - `format` is asserted in every draft, as those who write `format: date` expect, for the names that the dialect
    ///   defines (date, date-time, time, email, uri, uuid, ipv4, ipv6, hostname and so on); other names are ignored.
    /// - Numbers are compared by their exact decimal values. A number in `const` or `enum` that is neither a 64-bit integer nor
    ///   the value of a float is refused.
    /// - A schema that is too large, nested too deeply, or that refers to itself without going into a part is refused.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let bounds = Bounds::of(schema)?;
        let own = Arc::new(schema.clone());
        let (library, numbers) = match schema.clone().try_into() {
            Ok(library) => (library, Numbers::Library),
            Err(_) => {
                let library = representation::schema_for_library(schema)
                    .map_err(|InexactNumber(number)| explain::inexact(&number))?;
                (library, Numbers::Schema(Arc::clone(&own)))
            }
        };
        let options = jsonschema::options_for::<Exact>()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE));
        let validator = numeric::with_exact_numbers(options, &numbers)
            .build(&library)
            .map_err(|error| explain::schema_error(&error))?;
        Ok(Self { validator, bounds, schema: own, types_only: false })
    }

    /// A schema that asks for the types which another one declares, and for nothing else.
    ///
    /// # Errors
    /// As [`ArgumentSchema::compile`].
    pub fn compile_types(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { types_only: true, ..Self::compile(&types::types_only(schema))? })
    }

    /// Whether it declares a member of this name for the object at a place in the arguments.
    pub fn declares(&self, place: &[Step], name: &str) -> bool {
        declared::declares(&self.schema, place, name)
    }

    /// Checks an instance. Says at most eight problems.
    pub fn check(&self, instance: &Value) -> Result<(), Vec<Violation>> {
        let whole = |message: &str| {
            let message = message.to_owned();
            vec![Violation { pointer: String::new(), message, suggestion: None }]
        };
        let size = Size::of(instance).map_err(whole)?;
        if size.has_long_number() && !self.types_only {
            return Err(whole("the arguments hold a number with too many digits"));
        }
        if !self.bounds.can_judge(&size) {
            return Err(whole("the arguments are too large or too deep to be checked against this schema"));
        }
        if self.validator.is_valid(instance) {
            return Ok(());
        }
        if !self.bounds.can_explain(&size) {
            return Err(whole("the arguments do not fit the schema, and are too large to say where"));
        }
        let mut violations = Vec::new();
        for error in self.validator.iter_errors(instance) {
            explain::explain(&self.schema, instance, &error, &mut violations);
            if violations.len() >= MAX_VIOLATIONS {
                break;
            }
        }
        violations.truncate(MAX_VIOLATIONS);
        if violations.is_empty() {
            Err(whole("the arguments do not fit the schema"))
        } else {
            Err(violations)
        }
    }

    /// What was probably meant, as one sentence, where names or values are near to known ones. Names of arguments are
    /// compared even where the schema allows unknown ones.
    pub fn suggest(&self, instance: &Value) -> Option<String> {
        let violations = self.check(instance).err().unwrap_or_default();
        let mut suggestions: Vec<String> = Vec::new();
        for suggestion in violations
            .into_iter()
            .filter_map(|violation| violation.suggestion)
            .chain(self.misspelled(instance))
        {
            if !suggestions.contains(&suggestion) {
                suggestions.push(suggestion);
            }
        }
        suggestions.truncate(MAX_VIOLATIONS);
        (!suggestions.is_empty()).then(|| suggestions.join("; "))
    }

    /// The names of the arguments that the schema's root requires, in its order.
    pub fn required_names(&self) -> impl Iterator<Item = &str> {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The names of the arguments that the schema's root declares.
    pub fn property_names(&self) -> impl Iterator<Item = &str> {
        words::properties(&self.schema)
            .into_iter()
            .flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// The values to which an argument of the root is limited by `enum` or `const`; empty where it is not.
    pub fn enum_values(&self, property: &str) -> Vec<&Value> {
        let Some(schema) = words::property(&self.schema, &self.schema, property) else { return Vec::new() };
        match (schema.get("enum").and_then(Value::as_array), schema.get("const")) {
            (Some(values), _) => values.iter().collect(),
            (None, Some(value)) => vec![value],
            (None, None) => Vec::new(),
        }
    }

    fn misspelled(&self, instance: &Value) -> Vec<String> {
        let arguments = instance.as_object().into_iter().flat_map(|arguments| arguments.keys());
        let unknown = arguments.filter(|given| self.property_names().all(|known| known != given.as_str()));
        unknown
            .filter_map(|given| {
                let absent = self.property_names().filter(|known| instance.get(known).is_none());
                Some(words::instead(&name(nearest(given, absent)?), &name(given)))
            })
            .take(MAX_VIOLATIONS)
            .collect()
    }
}

#[cfg(test)]
mod tests;
