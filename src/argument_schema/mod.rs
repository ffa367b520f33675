//! JSON Schema validation of tool arguments: compiled once, checked per call, with error messages that let a model correct its call.
//!
//! Only `validator` uses the schema library. `$schema` selects the dialect, 2020-12 by default. The cost of a schema is bounded
//! before it is compiled: schemas come from tools, and tools are not trusted. Without the feature `json-schema` no schema compiles, so
//! that none is silently ignored.

mod schema_error;
mod property_names;
mod cost_bounds;
mod declared_properties;
mod types_only;
#[cfg(feature = "json-schema")]
mod validator;
#[cfg(not(feature = "json-schema"))]
#[path = "unsupported_validator.rs"]
mod validator;

use std::sync::Arc;

use crate::diagnostic::closest_match;
use crate::json::{Key, Value};
use crate::path::PathStep;
use cost_bounds::{CostBounds, ValueSize};
pub use declared_properties::applicable_schemas;
use property_names::{properties, property_schema, quote_name, replacement_hint};
pub use schema_error::{SchemaError, Violation, summarize};
use validator::SchemaValidator;

/// The maximum number of problems listed; the next attempt shows the rest.
const MAX_VIOLATIONS: usize = 8;

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct ArgumentSchema {
    validator: SchemaValidator,
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
    /// Returns [`SchemaError`] for an invalid or rejected schema, and for every schema without the feature `json-schema`.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let bounds = CostBounds::from_schema(schema)?;
        let own = Arc::new(schema.clone());
        let validator = SchemaValidator::compile(&own)?;
        Ok(Self { validator, bounds, schema: own, types_only: false })
    }

    /// Compiles a schema that checks only the types declared by another one.
    ///
    /// # Errors
    /// As [`ArgumentSchema::compile`].
    pub fn compile_types(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { types_only: true, ..Self::compile(&types_only::types_only(schema))? })
    }

    /// Whether schemas can be compiled at all.
    ///
    /// # Errors
    /// Callgate was built without the feature `json-schema`.
    pub fn check_support() -> Result<(), SchemaError> {
        validator::check_support()
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
        let violations = self.validator.explain(&self.schema, instance, MAX_VIOLATIONS);
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
        properties(&self.schema).into_iter().flat_map(|properties| properties.keys().map(Key::as_str))
    }

    /// The values allowed by `enum` or `const` for an argument of the root; empty if unrestricted.
    pub fn enum_values(&self, property: &str) -> Vec<&Value> {
        let Some(schema) = property_schema(&self.schema, &self.schema, property) else {
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
                Some(replacement_hint(&quote_name(closest_match(given, absent)?), &quote_name(given)))
            })
            .take(MAX_VIOLATIONS)
            .collect()
    }
}

#[cfg(feature = "json-schema")]
#[cfg(test)]
mod tests;
