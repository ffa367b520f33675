//! Evaluation errors of paths, as opposed to a result without nodes.

use crate::call::UnknownMember;
use crate::json::JsonType;

/// An evaluation error of a path. Absence is not an error: such a path yields no nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathEvaluationError {
    /// A segment cannot select from the type of a value.
    #[error("segment {segment} of the path expects {expected}, found {}", found.with_article())]
    WrongType {
        /// The number of the segment after `$`, from 1; the root's own name is the first.
        segment: usize,
        /// The expected type.
        expected: ExpectedType,
        /// The type of the value.
        found: JsonType,
    },
    /// An element has no value at this segment, and the path ends in a value of each element.
    #[error("an element has no value at segment {segment} of the path")]
    MissingMember {
        /// The number of the segment after `$`, from 1.
        segment: usize,
    },
    /// A filter does not expect the type of a value.
    #[error("a filter of the path expects {wanted}, found {}", found.with_article())]
    WrongTypeInFilter {
        /// The expected type.
        wanted: &'static str,
        /// The type of the value.
        found: JsonType,
    },
    /// A filter compares values of different types.
    #[error("a filter of the path compares {} with {}", left.with_article(), right.with_article())]
    DifferentTypes {
        /// The type on the left.
        left: JsonType,
        /// The type on the right.
        right: JsonType,
    },
    /// The path reads a label or fact of the session that could not be decided.
    #[error("the path reads a part of the session that could not be decided")]
    Undecided,
    /// The path reads a member of the call that is unknown.
    #[error("{0}")]
    Unknown(#[from] UnknownMember),
    /// The evaluation exceeds the limit of visited values or of nesting.
    #[error("the path visits too many values of the call")]
    LimitExceeded,
}

/// The types from which a segment can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedType {
    /// A name selects from objects.
    Object,
    /// An index or a slice selects from arrays.
    Array,
    /// A wildcard or a filter selects from both.
    ObjectOrArray,
}

impl ExpectedType {
    /// The types from which at least one of two can select.
    pub(super) fn union(self, other: Self) -> Self {
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

impl ExpectedType {
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::ObjectOrArray => "an object or an array",
        }
    }
}

impl std::fmt::Display for ExpectedType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.with_article())
    }
}
