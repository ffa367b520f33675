//! Validation by the schema library: the only module that uses it.

mod message_fragments;
mod error_messages;
mod library_adapter;
mod exact_numbers;

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};

use super::schema_error::{SchemaError, Violation};
use crate::json::{InexactNumber, Value};
use exact_numbers::NumberSource;
use library_adapter::ExactJson;

/// The maximum size in bytes of one compiled `pattern`.
const PATTERN_SIZE: usize = 4 << 20;

/// Schemas can be compiled.
pub(super) fn check_support() -> Result<(), SchemaError> {
    Ok(())
}

/// A compiled schema of the library.
#[derive(Clone, Debug)]
pub(super) struct SchemaValidator(Validator<ExactJson>);

impl SchemaValidator {
    /// Compiles a schema whose cost is bounded.
    pub(super) fn compile(schema: &Arc<Value>) -> Result<Self, SchemaError> {
        let (library, numbers) = match Value::clone(schema).try_into() {
            Ok(library) => (library, NumberSource::Library),
            Err(_) => {
                let library = library_adapter::to_library_schema(schema)
                    .map_err(|InexactNumber(number)| error_messages::inexact_number_error(&number))?;
                (library, NumberSource::Schema(Arc::clone(schema)))
            }
        };
        let options = jsonschema::options_for::<ExactJson>()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE));
        exact_numbers::with_exact_numbers(options, &numbers)
            .build(&library)
            .map(Self)
            .map_err(|error| error_messages::schema_error(&error))
    }

    /// Whether an instance matches the schema.
    pub(super) fn is_valid(&self, instance: &Value) -> bool {
        self.0.is_valid(instance)
    }

    /// Describes at most `limit` problems of an instance.
    pub(super) fn explain(&self, schema: &Value, instance: &Value, limit: usize) -> Vec<Violation> {
        let mut violations = Vec::new();
        for error in self.0.iter_errors(instance) {
            error_messages::explain(schema, instance, &error, &mut violations);
            if violations.len() >= limit {
                break;
            }
        }
        violations.truncate(limit);
        violations
    }
}
