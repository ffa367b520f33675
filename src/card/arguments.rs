//! The arguments of a call, and what a person changed in them, as fields.

use super::model::{Field, FieldKind};
use super::shown::{MAX_ARGUMENTS, MAX_VALUE, Shown, value};
use crate::json::{Map, Value};

/// The label where arguments are shown as a whole, which a note says.
const WHOLE: &str = "input";

/// The arguments that the call is to run with.
pub(super) fn arguments(input: Option<&Value>) -> Vec<Field> {
    match input {
        None => vec![Field::told(
            FieldKind::LeftOut,
            "Not shown",
            "the arguments: the request does not say them".to_owned(),
        )],
        Some(Value::Object(map)) if map.is_empty() => {
            vec![Field::told(FieldKind::Note, "Arguments", "none".to_owned())]
        }
        Some(Value::Object(map)) => {
            bounded(map.iter().map(|(key, item)| argument(FieldKind::Argument, key, item)), map.len())
        }
        Some(other) => vec![no_object(), argument(FieldKind::Argument, WHOLE, other)],
    }
}

/// The arguments that a person changed, which come first, and the others.
pub(super) fn changes(asked: Option<&Value>, edited: &Value) -> Vec<Field> {
    let (Some(Value::Object(asked)), Value::Object(edited)) = (asked, edited) else {
        let was = asked.map(|asked| value(asked, MAX_VALUE));
        return vec![no_object(), Field::argument(FieldKind::Changed, WHOLE, value(edited, MAX_VALUE), was)];
    };
    let removed = asked.iter().filter(|(key, _)| !edited.contains_key(*key)).map(|(key, item)| {
        let nothing = Shown { text: "removed".to_owned(), left_out: 0 };
        Field::argument(FieldKind::Removed, key, nothing, Some(value(item, MAX_VALUE)))
    });
    let differs = |(key, item): &(&String, &Value)| !asked.get(*key).is_some_and(|was| was == *item);
    let changed = edited.iter().filter(differs).map(|(key, item)| changed(asked, key, item));
    let kept = edited.iter().filter(|entry| !differs(entry));
    let kept = kept.map(|(key, item)| argument(FieldKind::Argument, key, item));
    let count = edited.len() + asked.keys().filter(|key| !edited.contains_key(*key)).count();
    bounded(changed.chain(removed).chain(kept), count)
}

/// Tells `"x"` from `{"input": "x"}`.
fn no_object() -> Field {
    Field::told(
        FieldKind::Note,
        "Note",
        "the arguments are no object or not known, and shown as a whole".to_owned(),
    )
}

fn changed(asked: &Map, key: &str, item: &Value) -> Field {
    match asked.get(key) {
        Some(was) => {
            Field::argument(FieldKind::Changed, key, value(item, MAX_VALUE), Some(value(was, MAX_VALUE)))
        }
        None => argument(FieldKind::Added, key, item),
    }
}

fn argument(kind: FieldKind, key: &str, item: &Value) -> Field {
    Field::argument(kind, key, value(item, MAX_VALUE), None)
}

/// As many as are shown, and how many are not.
fn bounded(fields: impl Iterator<Item = Field>, count: usize) -> Vec<Field> {
    let mut shown: Vec<Field> = fields.take(MAX_ARGUMENTS).collect();
    let left_out = count.saturating_sub(shown.len());
    if left_out > 0 {
        let text = format!("{left_out} of {count} arguments");
        shown.push(Field::told(FieldKind::LeftOut, "Not shown", text));
    }
    shown
}
