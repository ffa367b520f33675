//! Syntax tree of a query for evaluation: segments, selectors and filters.

use regex::Regex;

use super::evaluation_error::ExpectedType;
use super::pattern::MatchScope;
use crate::call::Root;
use crate::json::Value;

/// One step of a singular path, which selects at most one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    /// The member of an object.
    Name(String),
    /// The item of an array; a negative index counts from the end.
    Index(i64),
}

impl std::fmt::Display for PathStep {
    /// Path notation: `.note`, `['a note']`, `[0]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shorthand = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
        match self {
            Self::Name(name)
                if name.chars().all(shorthand)
                    && !name.is_empty()
                    && !name.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                write!(f, ".{name}")
            }
            Self::Name(name) => write!(f, "['{}']", name.replace('\\', r"\\").replace('\'', r"\'")),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Segment {
    Child(Selectors),
    Descendant(Selectors),
}

impl Segment {
    /// The step of a segment that selects at most one child. Returns `None` for any other segment.
    pub(super) fn as_step(&self) -> Option<PathStep> {
        let Self::Child(Selectors { list, .. }) = self else { return None };
        match list.as_slice() {
            [Selector::Name(name)] => Some(PathStep::Name(name.clone())),
            [Selector::Index(index)] => Some(PathStep::Index(*index)),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Selectors {
    pub(super) list: Vec<Selector>,
    /// The types from which at least one of them can select.
    pub(super) expected: ExpectedType,
}

impl Selectors {
    pub(super) fn new(list: Vec<Selector>) -> Self {
        let expected = list
            .iter()
            .map(Selector::expects)
            .reduce(ExpectedType::union)
            .unwrap_or(ExpectedType::ObjectOrArray);
        Self { list, expected }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Selector {
    Name(String),
    Index(i64),
    Wildcard,
    Slice(SliceSelector),
    Filter(Filter),
}

impl Selector {
    /// Whether it selects elements of an array, and not a value with a name or an index.
    pub(super) fn selects_elements(&self) -> bool {
        matches!(self, Self::Wildcard | Self::Filter(_) | Self::Slice(_))
    }

    fn expects(&self) -> ExpectedType {
        match self {
            Self::Name(_) => ExpectedType::Object,
            Self::Index(_) | Self::Slice(_) => ExpectedType::Array,
            Self::Wildcard | Self::Filter(_) => ExpectedType::ObjectOrArray,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SliceSelector {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) step: i64,
}

impl SliceSelector {
    /// The selected indices of an array of `len` items, in order (RFC 9535, section 2.3.4.2.2).
    pub(super) fn indices(self, len: usize) -> impl Iterator<Item = usize> {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let from_end = |bound: i64| if bound < 0 { bound.saturating_add(len) } else { bound };
        let (first, stop) = if self.step >= 0 {
            (self.start.map_or(0, from_end).clamp(0, len), self.end.map_or(len, from_end).clamp(0, len))
        } else {
            (
                self.start.map_or(len - 1, from_end).clamp(-1, len - 1),
                self.end.map_or(-1, from_end).clamp(-1, len - 1),
            )
        };
        std::iter::successors(Some(first), move |at| at.checked_add(self.step))
            .take_while(move |at| if self.step > 0 { *at < stop } else { self.step < 0 && *at > stop })
            .filter_map(|at| usize::try_from(at).ok())
    }
}

#[derive(Clone, Debug)]
pub(super) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Exists(ParsedQuery),
    Compare(Operand, ComparisonOperator, Operand),
    /// `match()` or `search()`: whether the operand is a string that matches the pattern.
    Matches(Operand, RegexPattern),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An operand, which has one value or none.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Literal(Value),
    Singular(QueryBase, Vec<PathStep>),
    Length(Box<Operand>),
    Count(ParsedQuery),
    Value(ParsedQuery),
}

/// The pattern of `match()` or `search()`.
#[derive(Clone, Debug)]
pub(super) enum RegexPattern {
    Compiled(Regex),
    /// Compiled for each value; only queries support it, paths reject it.
    Dynamic(MatchScope, Operand),
}

/// A query inside a filter.
#[derive(Clone, Debug)]
pub(super) struct ParsedQuery {
    pub(super) base: QueryBase,
    pub(super) segments: Vec<Segment>,
}

/// The start of a query inside a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryBase {
    /// `@`
    Current,
    /// `$` of a query over one JSON value
    Document,
    /// `$.input` and the like of a path over the call document
    CallMember(Root),
}
