//! Edits of arguments by an approver: real, shown and edited arguments → the arguments to run with.

use crate::json::{Map, Value};
use crate::path::{Path, PathStep};

/// Why edited arguments are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentEditError {
    /// The path is not one that approvers may change.
    #[error("`{0}` may not be changed by the approver")]
    NotAllowed(String),
    /// The edited arguments are not an object.
    #[error("the edited arguments are not an object")]
    NotAnObject,
}

/// Applies an approver's edits. The approver sees `displayed`, with secrets redacted, and returns `given`; values that they left
/// unchanged keep their real value. Only values at or below one of the `allowed` paths may differ.
///
/// # Errors
/// `given` is not an object, or changes a value that no allowed path covers.
pub fn apply_edits(
    real: &Value,
    displayed: &Value,
    given: &Value,
    allowed: &[&[PathStep]],
) -> Result<Value, ArgumentEditError> {
    if !given.is_object() {
        return Err(ArgumentEditError::NotAnObject);
    }
    EditMerge { allowed, path: Vec::new() }.merge(real, displayed, given)
}

struct EditMerge<'e> {
    allowed: &'e [&'e [PathStep]],
    path: Vec<PathStep>,
}

impl EditMerge<'_> {
    fn merge(&mut self, real: &Value, displayed: &Value, given: &Value) -> Result<Value, ArgumentEditError> {
        if displayed == given {
            return Ok(real.clone());
        }
        match (real, displayed, given) {
            (Value::Object(real), Value::Object(displayed), Value::Object(given)) => {
                self.merge_object(real, displayed, given)
            }
            (Value::Array(real), Value::Array(displayed), Value::Array(given))
                if real.len() == displayed.len() && displayed.len() == given.len() =>
            {
                let items = real.iter().zip(displayed).zip(given).enumerate();
                let items = items.map(|(index, ((real, displayed), given))| {
                    self.descend(PathStep::Index(i64::try_from(index).unwrap_or(i64::MAX)), |edit| {
                        edit.merge(real, displayed, given)
                    })
                });
                items.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            _ => self.replace(given),
        }
    }

    fn merge_object(&mut self, real: &Map, displayed: &Map, given: &Map) -> Result<Value, ArgumentEditError> {
        let mut members = Map::new();
        for (name, value) in real {
            let merged = self.descend(PathStep::Name(name.to_string()), |edit| {
                match (displayed.get(name), given.get(name)) {
                    (Some(displayed), Some(given)) => edit.merge(value, displayed, given).map(Some),
                    // The approver cannot return a member that was not shown at all.
                    (None, None) => Ok(Some(value.clone())),
                    (None, Some(given)) => edit.replace(given).map(Some),
                    (Some(_), None) => edit.replace(&Value::Null).map(|_| None),
                }
            })?;
            members.extend(merged.map(|value| (name.clone(), value)));
        }
        for (name, value) in given.iter().filter(|(name, _)| !real.contains_key(name)) {
            let value = self.descend(PathStep::Name(name.to_string()), |edit| edit.replace(value))?;
            members.insert(name.clone(), value);
        }
        Ok(members.into())
    }

    fn descend<T>(&mut self, step: PathStep, there: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = there(self);
        self.path.pop();
        result
    }

    fn replace(&self, given: &Value) -> Result<Value, ArgumentEditError> {
        match self.allowed.iter().any(|path| self.path.starts_with(path)) {
            true => Ok(given.clone()),
            false => Err(ArgumentEditError::NotAllowed(self.path_text())),
        }
    }

    fn path_text(&self) -> String {
        self.path.iter().fold("$.input".to_owned(), |text, step| format!("{text}{step}"))
    }
}

/// The paths that every policy allows to change: those at or below a path of each.
pub(super) fn common_editable_paths(edits: &[Vec<Path>]) -> Vec<Vec<PathStep>> {
    let steps = |paths: &Vec<Path>| -> Vec<Vec<PathStep>> {
        paths.iter().filter_map(|path| path.steps().map(<[PathStep]>::to_vec)).collect()
    };
    let mut all = edits.iter().map(steps);
    let Some(first) = all.next() else { return Vec::new() };
    all.fold(first, |common, other| {
        let narrower = |a: &Vec<PathStep>, b: &Vec<PathStep>| match (a.starts_with(b), b.starts_with(a)) {
            (true, _) => Some(a.clone()),
            (_, true) => Some(b.clone()),
            _ => None,
        };
        common.iter().flat_map(|a| other.iter().filter_map(move |b| narrower(a, b))).collect()
    })
}
