//! Why a path has no answer, which is something else than an answer without nodes.

use crate::json::JsonType;

/// Why a path could not be evaluated. Absence is none of these: a path that leads nowhere yields no nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A segment met a value of a type that it cannot select from.
    #[error("segment {segment} of the path needs {expected}, and there is {}", found.with_article())]
    Type {
        /// Which segment after `$`, counted from 1; the root's own name is the first.
        segment: usize,
        /// What it needs.
        expected: Expected,
        /// What it met.
        found: JsonType,
    },
    /// A filter met a value of a type that it does not expect.
    #[error("a filter of the path needs {wanted}, and there is {}", found.with_article())]
    Filter {
        /// What it needs.
        wanted: &'static str,
        /// What it met.
        found: JsonType,
    },
    /// A filter compares values of different types.
    #[error("a filter of the path compares {} with {}", left.with_article(), right.with_article())]
    Compared {
        /// The type on the left.
        left: JsonType,
        /// The type on the right.
        right: JsonType,
    },
    /// The path reads a label or fact of the session that could not be decided.
    #[error("the path reads a part of the session that could not be decided")]
    Unsettled,
    /// The evaluation would visit more, or nest deeper, than is allowed.
    #[error("the path visits too much of the call")]
    TooMuch,
}

/// What a segment can select from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A name selects from objects.
    Object,
    /// An index or a slice selects from arrays.
    Array,
    /// A wildcard or a filter selects from both.
    ObjectOrArray,
}

impl Expected {
    /// What either of two can select from.
    pub(super) fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::ObjectOrArray }
    }

    pub(super) fn includes(self, found: JsonType) -> bool {
        match self {
            Self::Object => found == JsonType::Object,
            Self::Array => found == JsonType::Array,
            Self::ObjectOrArray => matches!(found, JsonType::Object | JsonType::Array),
        }
    }
}

impl Expected {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::ObjectOrArray => "an object or an array",
        }
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}
