//! Tests of one scalar against literals, which most conditions consist of: a form that decides without the call, for a value of the type
//! that it compares with.

use super::comparison::FieldComparison;
use crate::json::{Number, Value};
use crate::work_limit;

/// What a singular path leads to, as far as tests of scalars need to know it.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    /// Nothing.
    Absent,
    /// A string.
    Text(&'a str),
    /// A number.
    Number(&'a Number),
    /// A boolean.
    Boolean(bool),
    /// Another value, or one that can't be read.
    Other,
}

impl<'a> From<&'a Value> for Scalar<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Number(number) => Self::Number(number),
            Value::Bool(value) => Self::Boolean(*value),
            Value::Null | Value::Array(_) | Value::Object(_) => Self::Other,
        }
    }
}

/// A test of one scalar against literals.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScalarTest {
    /// The result for an absent value, if it does not depend on the policy.
    pub(super) absent: Option<bool>,
    /// The comparisons, which must all hold.
    pub(super) comparisons: Box<[ScalarComparison]>,
}

/// A comparison of one scalar with literals.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum ScalarComparison {
    Text(FieldComparison, Box<str>),
    Number(FieldComparison, Number),
    Boolean { value: bool, negated: bool },
    OneOf { texts: Box<[Box<str>]>, negated: bool },
    StartsWith(Box<[String]>),
    EndsWith(Box<[String]>),
    Contains(Box<str>),
}

impl ScalarTest {
    /// How seldom and how cheaply a test of this kind holds: of tests that must all hold, those with smaller ranks are best evaluated first.
    pub fn rank(&self) -> usize {
        let ranks = self.comparisons.iter().map(|comparison| match comparison {
            ScalarComparison::Text(FieldComparison::Eq, _)
            | ScalarComparison::Number(FieldComparison::Eq, _) => 0,
            ScalarComparison::Boolean { .. } | ScalarComparison::OneOf { negated: false, .. } => 1,
            ScalarComparison::StartsWith(_) | ScalarComparison::EndsWith(_) => 2,
            ScalarComparison::Number(FieldComparison::Ne, _)
            | ScalarComparison::Text(FieldComparison::Ne, _) => 5,
            ScalarComparison::Number(..) | ScalarComparison::Text(..) => 3,
            ScalarComparison::Contains(_) => 4,
            ScalarComparison::OneOf { negated: true, .. } => 5,
        });
        ranks.min().unwrap_or_default()
    }

    /// Whether the test holds. Returns `None` if that takes the whole evaluation: for a value of another type, which makes the test
    /// undecided, and after the work limit.
    #[inline]
    pub fn holds(&self, value: Scalar<'_>) -> Option<bool> {
        match value {
            Scalar::Absent => return self.absent,
            Scalar::Other => return None,
            Scalar::Text(_) | Scalar::Number(_) | Scalar::Boolean(_) => {}
        }
        let mut is_open = false;
        for comparison in &self.comparisons {
            match comparison.holds(value) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => is_open = true,
            }
        }
        (!is_open).then_some(true)
    }
}

impl ScalarComparison {
    #[inline]
    fn holds(&self, value: Scalar<'_>) -> Option<bool> {
        match (self, value) {
            (Self::Text(comparison, operand), Scalar::Text(text)) => Some(match comparison {
                FieldComparison::Eq => *text == **operand,
                FieldComparison::Ne => *text != **operand,
                order => order.holds(text.cmp(operand)),
            }),
            (Self::Number(comparison, operand), Scalar::Number(number)) => {
                Some(comparison.holds(number.cmp(operand)))
            }
            (Self::Boolean { value, negated }, Scalar::Boolean(found)) => Some((found == *value) != *negated),
            (Self::OneOf { texts, negated }, Scalar::Text(text)) => {
                Some(texts.iter().any(|known| **known == *text) != *negated)
            }
            (Self::StartsWith(starts), Scalar::Text(text)) => {
                Some(starts.iter().any(|start| text.starts_with(start.as_str())))
            }
            (Self::EndsWith(ends), Scalar::Text(text)) => {
                Some(ends.iter().any(|end| text.ends_with(end.as_str())))
            }
            (Self::Contains(part), Scalar::Text(text)) => {
                work_limit::spend_for(text.len(), 8).ok()?;
                Some(text.contains(&**part))
            }
            _ => None,
        }
    }
}
