//! Values that leave a script: one that is passed on unchanged is borrowed, only a new one is owned.

use std::ops::Deref;
use std::sync::Arc;

use crate::json::Value;

/// A JSON value that a script exports. Cloning copies no data.
#[derive(Clone, Debug)]
pub enum ExportedValue<'c> {
    /// A whole part of the call, unchanged: its input, context or options, or the annotations.
    Call(&'c Value),
    /// A whole effect result, unchanged, or a value that the script created.
    Shared(Arc<Value>),
}

impl ExportedValue<'_> {
    /// Whether it is this very value in memory; does not compare contents.
    pub fn is_same_instance(&self, value: &Value) -> bool {
        std::ptr::eq(&raw const **self, value)
    }

    /// Converts into an owned value. Copies a value that belongs to the call or is still shared.
    pub fn into_value(self) -> Value {
        match self {
            Self::Call(value) => value.clone(),
            Self::Shared(value) => Arc::unwrap_or_clone(value),
        }
    }

    /// Whether both are equal JSON.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        self.is_same_instance(other) || **self == **other
    }
}

impl Deref for ExportedValue<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Call(value) => value,
            Self::Shared(value) => value,
        }
    }
}
