//! JSON Schema validation of tool arguments: compiled once, checked per call, with error messages that let a model correct its call.
//!
//! Only this module uses the schema library. `$schema` selects the dialect, 2020-12 by default. The cost of a schema is bounded
//! before it is compiled: schemas come from tools, and tools are not trusted.

mod cost_bounds;
mod declared_properties;
mod error_messages;
mod exact_numbers;
mod library_adapter;
mod types_only;
mod message_fragments;

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};

use crate::diagnostic::closest_match;
use crate::json::{InexactNumber, Value};
use crate::path::PathStep;
use cost_bounds::{CostBounds, ValueSize};
pub use declared_properties::applicable_schemas;
use exact_numbers::NumberSource;
use library_adapter::ExactJson;
use message_fragments::quote_name;

/// The maximum number of problems listed; the next attempt shows the rest.
const MAX_VIOLATIONS: usize = 8;

/// The maximum size in bytes of one compiled `pattern`.
const PATTERN_SIZE: usize = 4 << 20;

/// A schema that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// The problem and the fix, with the path in the schema.
    pub message: String,
    /// JSON pointer to the problem, if known; empty for the schema as a whole.
    pub pointer: Option<String>,
}

impl SchemaError {
    fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), pointer: Some(pointer.into()) }
    }
}

/// One problem of an instance, described for the model that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the instance; empty for the instance as a whole.
    pub pointer: String,
    /// The problem and the fix, with values truncated and escaped.
    pub message: String,
    /// The probable intention as a self-contained instruction: ``use `order_id` instead of `ordr_id` ``.
    pub suggestion: Option<String>,
}

/// Joins the problems into one message.
pub fn summarize(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct ArgumentSchema {
    validator: Validator<ExactJson>,
    bounds: CostBounds,
    schema: Arc<Value>,
    /// Whether it checks only types, which expands no number.
    types_only: bool,
}

impl ArgumentSchema {
    /// Compiles a schema.
    ///
    /// - Nothing is ever fetched: a `$ref` must point into the schema itself. An `$id` below the root is rejected,
    ///   because it would change the base of references.
    /// - `pattern` runs in linear time: look-around and back-references are errors.
    /// - `format` is asserted in every draft, as authors of `format: date` expect, for the names that the dialect
    ///   defines (date, date-time, time, email, uri, uuid, ipv4, ipv6, hostname and so on); other names are ignored.
    /// - Numbers are compared by their exact decimal values. A number in `const` or `enum` that is neither a 64-bit integer nor
    ///   exactly representable as a float is rejected.
    /// - A schema that is too large, nested too deeply, or that refers to itself without descending into a child value is rejected.
    ///
    /// # Errors
    /// Returns [`SchemaError`] for an invalid or rejected schema.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let bounds = CostBounds::from_schema(schema)?;
        let own = Arc::new(schema.clone());
        let (library, numbers) = match schema.clone().try_into() {
            Ok(library) => (library, NumberSource::Library),
            Err(_) => {
                let library = library_adapter::to_library_schema(schema)
                    .map_err(|InexactNumber(number)| error_messages::inexact_number_error(&number))?;
                (library, NumberSource::Schema(Arc::clone(&own)))
            }
        };
        let options = jsonschema::options_for::<ExactJson>()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE));
        let validator = exact_numbers::with_exact_numbers(options, &numbers)
            .build(&library)
            .map_err(|error| error_messages::schema_error(&error))?;
        Ok(Self { validator, bounds, schema: own, types_only: false })
    }

    /// Compiles a schema that checks only the types declared by another one.
    ///
    /// # Errors
    /// As [`ArgumentSchema::compile`].
    pub fn compile_types(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { types_only: true, ..Self::compile(&types_only::types_only(schema))? })
    }

    /// Whether it declares a property of this name for the object at a path in the arguments.
    pub fn declares(&self, path: &[PathStep], name: &str) -> bool {
        declared_properties::declares(&self.schema, path, name)
    }

    /// Checks an instance.
    ///
    /// # Errors
    /// Returns at most eight violations.
    pub fn check(&self, instance: &Value) -> Result<(), Vec<Violation>> {
        let whole = |message: &str| {
            let message = message.to_owned();
            vec![Violation { pointer: String::new(), message, suggestion: None }]
        };
        let size = ValueSize::measure(instance).map_err(whole)?;
        if size.has_long_number() && !self.types_only {
            return Err(whole("the arguments contain a number with too many digits"));
        }
        if !self.bounds.allows_check(&size) {
            return Err(whole("the arguments are too large or too deep to be validated against this schema"));
        }
        if self.validator.is_valid(instance) {
            return Ok(());
        }
        if !self.bounds.allows_explanation(&size) {
            return Err(whole("the arguments do not match the schema, and are too large to report where"));
        }
        let mut violations = Vec::new();
        for error in self.validator.iter_errors(instance) {
            error_messages::explain(&self.schema, instance, &error, &mut violations);
            if violations.len() >= MAX_VIOLATIONS {
                break;
            }
        }
        violations.truncate(MAX_VIOLATIONS);
        if violations.is_empty() {
            Err(whole("the arguments do not match the schema"))
        } else {
            Err(violations)
        }
    }

    /// Returns the probable intention in one sentence if names or values are close to known ones. Argument names are
    /// compared even if the schema allows unknown ones.
    pub fn suggest(&self, instance: &Value) -> Option<String> {
        let violations = self.check(instance).err().unwrap_or_default();
        let mut suggestions: Vec<String> = Vec::new();
        for suggestion in violations
            .into_iter()
            .filter_map(|violation| violation.suggestion)
            .chain(self.find_misspelled(instance))
        {
            if !suggestions.contains(&suggestion) {
                suggestions.push(suggestion);
            }
        }
        suggestions.truncate(MAX_VIOLATIONS);
        (!suggestions.is_empty()).then(|| suggestions.join("; "))
    }

    /// The names of the required arguments at the schema's root, in order.
    pub fn required_names(&self) -> impl Iterator<Item = &str> {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The names of the declared arguments at the schema's root.
    pub fn property_names(&self) -> impl Iterator<Item = &str> {
        message_fragments::properties(&self.schema)
            .into_iter()
            .flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// The values allowed by `enum` or `const` for an argument of the root; empty if unrestricted.
    pub fn enum_values(&self, property: &str) -> Vec<&Value> {
        let Some(schema) = message_fragments::property_schema(&self.schema, &self.schema, property) else {
            return Vec::new();
        };
        match (schema.get("enum").and_then(Value::as_array), schema.get("const")) {
            (Some(values), _) => values.iter().collect(),
            (None, Some(value)) => vec![value],
            (None, None) => Vec::new(),
        }
    }

    fn find_misspelled(&self, instance: &Value) -> Vec<String> {
        let arguments = instance.as_object().into_iter().flat_map(|arguments| arguments.keys());
        let unknown = arguments.filter(|given| self.property_names().all(|known| known != given.as_str()));
        unknown
            .filter_map(|given| {
                let absent = self.property_names().filter(|known| instance.get(known).is_none());
                Some(message_fragments::replacement_hint(
                    &quote_name(closest_match(given, absent)?),
                    &quote_name(given),
                ))
            })
            .take(MAX_VIOLATIONS)
            .collect()
    }
}

#[cfg(test)]
mod tests;
