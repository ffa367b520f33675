//! The validator of a build without the feature `json-schema`: no schema compiles.

use std::sync::Arc;

use super::schema_error::{SchemaError, Violation};
use crate::json::Value;

/// Always returns the error that names the feature.
pub(super) fn check_support() -> Result<(), SchemaError> {
    Err(SchemaError::unsupported())
}

/// A compiled schema, of which there is none.
#[derive(Clone, Debug)]
pub(super) enum SchemaValidator {}

impl SchemaValidator {
    /// Always returns the error that names the feature.
    pub(super) fn compile(_: &Arc<Value>) -> Result<Self, SchemaError> {
        Err(SchemaError::unsupported())
    }

    pub(super) fn is_valid(&self, _: &Value) -> bool {
        match *self {}
    }

    pub(super) fn explain(&self, _: &Value, _: &Value, _: usize) -> Vec<Violation> {
        match *self {}
    }
}
