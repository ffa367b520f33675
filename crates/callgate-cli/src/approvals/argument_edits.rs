//! `--set PATH=JSON`: edits of the arguments shown in an approval request.

use crate::exit::CommandError;
use callgate::call::Root;
use callgate::json::{self, Map, Value};
use callgate::path::{Path, PathStep};
use callgate::safe_text::escape_controls;

/// Applies the changes to the shown arguments.
pub(super) fn apply_changes(displayed: &Value, changes: &[String]) -> Result<Value, CommandError> {
    let mut edited = displayed.clone();
    for change in changes {
        let (steps, value) = parse_change(change)?;
        let target = resolve_path(&mut edited, &steps).ok_or_else(|| {
            CommandError::new(format!("`--set {}`: the arguments have no such path", escape_controls(change)))
        })?;
        *target = value;
    }
    Ok(edited)
}

/// Parses a change into path and value. As keys can contain `=`, the first `=` between a valid path and valid JSON is the separator.
fn parse_change(change: &str) -> Result<(Vec<PathStep>, Value), CommandError> {
    let mut problem = None;
    for (at, _) in change.match_indices('=') {
        let (Some(left), Some(right)) = (change.get(..at), change.get(at + 1..)) else { continue };
        let Some(steps) = parse_path(left) else { continue };
        match json::parse(right) {
            Ok(value) => return Ok((steps, value)),
            Err(_) => problem = problem.or(Some(right)),
        }
    }
    Err(CommandError::new(match problem {
        Some(text) => {
            format!(
                "`{}` in `--set` is not valid JSON; strings need quotes, as in 'note=\"late\"'",
                escape_controls(text)
            )
        }
        None => format!(
            "`--set {}` has no path into the arguments; write PATH=JSON, as in '$.input.note=\"late\"'",
            escape_controls(change)
        ),
    }))
}

fn parse_path(text: &str) -> Option<Vec<PathStep>> {
    let text = if text.starts_with('$') { text.to_owned() } else { format!("$.input.{text}") };
    let path = Path::parse(&text).ok().filter(|path| path.root() == Root::Input)?;
    path.steps().filter(|steps| !steps.is_empty()).map(<[PathStep]>::to_vec)
}

/// Finds the value at a path; a missing last member is added.
fn resolve_path<'v>(value: &'v mut Value, steps: &[PathStep]) -> Option<&'v mut Value> {
    let (last, before) = steps.split_last()?;
    let mut at = value;
    for step in before {
        at = match step {
            PathStep::Name(name) => at.get_mut(name.as_str())?,
            PathStep::Index(index) => item(at, *index)?,
        };
    }
    match (last, at) {
        (PathStep::Name(name), Value::Object(members)) => Some(member(members, name)),
        (PathStep::Index(index), at) => item(at, *index),
        _ => None,
    }
}

fn member<'v>(members: &'v mut Map, name: &str) -> &'v mut Value {
    members.entry(name).or_insert(Value::Null)
}

fn item(value: &mut Value, index: i64) -> Option<&mut Value> {
    let items = value.as_array_mut()?;
    let index = match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => items.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    items.get_mut(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    #[test]
    fn applies_changes_and_rejects_invalid_paths() {
        let displayed = json!({ "note": "a", "items": [{ "n": 1 }, { "n": 2 }], "a=b": 1 });
        let set = |changes: &[&str]| {
            let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
            apply_changes(&displayed, &changes).map_err(|stop| format!("{stop:?}"))
        };
        assert_eq!(set(&["note=\"b\""]).unwrap()["note"], "b");
        assert_eq!(set(&["$.input.note=null"]).unwrap()["note"], Value::Null);
        assert_eq!(
            set(&["items[-1].n=3", "items[0].n=0"]).unwrap()["items"],
            json!([{ "n": 0 }, { "n": 3 }])
        );
        assert_eq!(set(&["$.input['a=b']=\"c=d\""]).unwrap()["a=b"], "c=d");
        assert_eq!(set(&["fresh={\"x\":1}"]).unwrap()["fresh"], json!({ "x": 1 }));
        for (change, problem) in [
            ("note=b", "is not valid JSON"),
            ("note", "has no path"),
            ("$.tool=\"x\"", "has no path"),
            ("$.input={}", "has no path"),
            ("$.input.*=1", "has no path"),
            ("items[5]=1", "no such path"),
            ("none.there=1", "no such path"),
        ] {
            let error = set(&[change]).unwrap_err();
            assert!(error.contains(problem), "{change}: {error}");
        }
    }
}
