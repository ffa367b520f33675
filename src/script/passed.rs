//! Values on their way out of a script: what it passes on unchanged is pointed at, only what it made is a value of its own.

use std::ops::Deref;
use std::sync::Arc;

use crate::json::Value;

/// A JSON value that a script hands out. To clone it copies nothing.
#[derive(Clone, Debug)]
pub enum Passed<'c> {
    /// A whole part of the call, unchanged: its input, context or options, or the annotations.
    Call(&'c Value),
    /// A whole answer, unchanged, or what the script made.
    Shared(Arc<Value>),
}

impl Passed<'_> {
    /// Whether it is this very value in memory, which is no look inside.
    pub fn is(&self, value: &Value) -> bool {
        std::ptr::eq(&raw const **self, value)
    }

    /// The value itself: copied where it is the call's, or someone else still has it.
    pub fn into_value(self) -> Value {
        match self {
            Self::Call(value) => value.clone(),
            Self::Shared(value) => Arc::unwrap_or_clone(value),
        }
    }

    /// Whether both are equal JSON.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.is(other) || **self == **other
    }
}

impl Deref for Passed<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Call(value) => value,
            Self::Shared(value) => value,
        }
    }
}
