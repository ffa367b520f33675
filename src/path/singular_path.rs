//! Fast path for singular paths (names and indices only), which most paths are: no allocation, no filters, no budget.

use super::ast::PathStep;
use super::evaluation_error::{ExpectedType, PathEvaluationError};
use crate::call::NodeRef;
use crate::json::Value;

/// Follows `steps` from `from`. Returns `None` if the value is absent. The first step is segment 2 of its path (segment 1 names the
/// root).
///
/// # Errors
/// [`PathEvaluationError::WrongType`] if a step needs members or items and the value has none.
pub fn follow_steps<'a>(
    from: NodeRef<'a>,
    steps: &[PathStep],
) -> Result<Option<NodeRef<'a>>, PathEvaluationError> {
    let mut at = from;
    for (passed, step) in steps.iter().enumerate() {
        match select_child(at, step) {
            Ok(Some(value)) => at = NodeRef::Json(value),
            Ok(None) => return Ok(None),
            Err(expected) => {
                return Err(PathEvaluationError::WrongType {
                    segment: passed + 2,
                    expected,
                    found: at.json_type(),
                });
            }
        }
    }
    Ok(Some(at))
}

/// The JSON value at `steps` below `from`. Returns `Ok(None)` if it is absent.
///
/// # Errors
/// A step needs members or items and the value has none.
pub fn follow_json<'a>(from: &'a Value, steps: &[PathStep]) -> Result<Option<&'a Value>, ExpectedType> {
    let mut at = from;
    for step in steps {
        match select_child(NodeRef::Json(at), step)? {
            Some(value) => at = value,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Like [`follow_steps`], by the rules of RFC 9535 for filters: a step into a value of the wrong type selects nothing.
pub(super) fn follow_steps_leniently<'a>(from: NodeRef<'a>, steps: &[PathStep]) -> Option<NodeRef<'a>> {
    steps.iter().try_fold(from, |at, step| select_child(at, step).ok().flatten().map(NodeRef::Json))
}

#[inline]
fn select_child<'a>(at: NodeRef<'a>, step: &PathStep) -> Result<Option<&'a Value>, ExpectedType> {
    match (step, at) {
        (PathStep::Name(name), NodeRef::Json(Value::Object(members))) => Ok(members.get(name)),
        (PathStep::Index(index), NodeRef::Json(Value::Array(items))) => {
            Ok(resolve_index(*index, items.len()).and_then(|index| items.get(index)))
        }
        (PathStep::Name(_), _) => Err(ExpectedType::Object),
        (PathStep::Index(_), _) => Err(ExpectedType::Array),
    }
}

/// Converts an index, which counts from the end if negative, into a position among `len` items. Returns `None` if out of range.
pub(super) fn resolve_index(index: i64, len: usize) -> Option<usize> {
    let counted = usize::try_from(index.unsigned_abs()).ok()?;
    let position = if index < 0 { len.checked_sub(counted)? } else { counted };
    (position < len).then_some(position)
}
