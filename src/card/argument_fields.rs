//! The arguments of a call, and an approver's changes to them, as fields: first those that policies read, then those that the
//! tool requires, then the others.

use super::model::{CardField, FieldKind};
use super::truncation::{CardLimits, Shown, quoted, value};
use crate::json::{Key, Map, Value};

/// The label of arguments shown as a whole; a note explains it.
const WHOLE_INPUT_LABEL: &str = "input";

/// Formats arguments as fields.
pub(super) struct ArgumentFields<'a> {
    pub(super) limits: &'a CardLimits,
    /// JSON pointers to the most relevant arguments and their parts.
    pub(super) relevant: &'a [String],
}

impl<'a> ArgumentFields<'a> {
    /// Returns the arguments of the call.
    pub(super) fn fields(&self, input: Option<&Value>) -> Vec<CardField> {
        match input {
            None => vec![CardField::with_text(
                FieldKind::LeftOut,
                "Not shown",
                "the arguments: the request does not contain them".to_owned(),
            )],
            Some(Value::Object(map)) if map.is_empty() => {
                vec![CardField::with_text(FieldKind::Note, "Arguments", "none".to_owned())]
            }
            Some(input @ Value::Object(map)) => {
                let entries = self.members_by_relevance(map);
                let fields = entries.map(|(key, item)| self.argument(FieldKind::Argument, key, item));
                self.limit_fields(fields, map.len(), input)
            }
            Some(other) => {
                vec![not_an_object_note(), self.argument(FieldKind::Argument, WHOLE_INPUT_LABEL, other)]
            }
        }
    }

    /// Returns the arguments that an approver changed, then the others.
    pub(super) fn changed_fields(&self, original: Option<&Value>, edited: &Value) -> Vec<CardField> {
        let (Some(Value::Object(original)), Value::Object(map)) = (original, edited) else {
            let was = original.map(|original| self.value(original));
            let label = self.label(WHOLE_INPUT_LABEL);
            return vec![
                not_an_object_note(),
                CardField::argument(FieldKind::Changed, label, self.value(edited), was),
            ];
        };
        let is_removed = |(key, _): &(&Key, &Value)| !map.contains_key(key);
        let removed = self.members_by_relevance(original).filter(is_removed).map(|(key, item)| {
            let nothing = Shown { text: "removed".to_owned(), left_out: 0 };
            CardField::argument(FieldKind::Removed, self.label(key), nothing, Some(self.value(item)))
        });
        let differs = |(key, item): &(&Key, &Value)| !original.get(key).is_some_and(|was| was == *item);
        let changed =
            self.members_by_relevance(map).filter(differs).map(|(key, item)| match original.get(key) {
                Some(was) => CardField::argument(
                    FieldKind::Changed,
                    self.label(key),
                    self.value(item),
                    Some(self.value(was)),
                ),
                None => self.argument(FieldKind::Added, key, item),
            });
        let unchanged = self.members_by_relevance(map).filter(|entry| !differs(entry));
        let unchanged = unchanged.map(|(key, item)| self.argument(FieldKind::Argument, key, item));
        let count = map.len() + original.iter().filter(is_removed).count();
        self.limit_fields(changed.chain(removed).chain(unchanged), count, edited)
    }

    fn argument(&self, kind: FieldKind, key: &str, item: &Value) -> CardField {
        CardField::argument(kind, self.label(key), self.value(item), None)
    }

    fn label(&self, key: &str) -> Shown {
        quoted(key, self.limits.label)
    }

    fn value(&self, item: &Value) -> Shown {
        value(item, self.limits.value)
    }

    /// The members, the relevant ones first.
    fn members_by_relevance<'m>(&self, map: &'m Map) -> impl Iterator<Item = (&'m Key, &'m Value)> + use<'m> {
        let mut first: Vec<(&Key, &Value)> = Vec::new();
        for steps in self.relevant.iter().filter_map(|pointer| pointer_segments(pointer)) {
            if let [key] = steps.as_slice()
                && let Some(entry) = map.get_key_value(key.as_str())
                && !first.contains(&entry)
            {
                first.push(entry);
            }
        }
        let keys: Vec<&Key> = first.iter().map(|(key, _)| *key).collect();
        first.into_iter().chain(map.iter().filter(move |(key, _)| !keys.contains(key)))
    }

    /// Limits the fields, and adds the relevant parts of truncated arguments and the number of fields not shown.
    fn limit_fields(
        &self,
        fields: impl Iterator<Item = CardField>,
        count: usize,
        input: &Value,
    ) -> Vec<CardField> {
        let mut visible: Vec<CardField> = fields.take(self.limits.arguments).collect();
        let left_out = count.saturating_sub(visible.len());
        let is_cut = visible.iter().any(|field| field.left_out > 0) || left_out > 0;
        let parts = if is_cut { self.part_fields(input) } else { Vec::new() };
        let parts_left_out = parts.len().saturating_sub(self.limits.parts);
        visible.extend(parts.into_iter().take(self.limits.parts));
        let mut add_left_out = |count: usize, all: String| {
            if count > 0 {
                visible.push(CardField::with_text(FieldKind::LeftOut, "Not shown", format!("{count} {all}")));
            }
        };
        add_left_out(left_out, format!("of {count} arguments"));
        add_left_out(parts_left_out, "more parts of arguments that policies read".to_owned());
        visible
    }

    /// The relevant parts of arguments that are too long to be shown in full.
    fn part_fields(&self, input: &Value) -> Vec<CardField> {
        let part = |pointer: &String| {
            let steps = pointer_segments(pointer).filter(|steps| steps.len() > 1)?;
            let (argument, part) = (input.get(steps.first()?)?, input.pointer(pointer)?);
            if self.value(argument).left_out == 0 {
                return None;
            }
            let (mut label, mut at) = (String::new(), input);
            for step in &steps {
                match at {
                    Value::Array(_) => label.push_str(&format!("[{step}]")),
                    _ => {
                        let dot = if label.is_empty() { "" } else { "." };
                        label.push_str(&format!("{dot}{}", self.label(step).text));
                    }
                }
                at = match at {
                    Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                    other => other.get(step)?,
                };
            }
            let label = Shown { text: label, left_out: 0 };
            Some(CardField::argument(FieldKind::Part, label, self.value(part), None))
        };
        self.relevant.iter().filter_map(part).collect()
    }
}

/// Distinguishes `"x"` from `{"input": "x"}`.
fn not_an_object_note() -> CardField {
    CardField::with_text(
        FieldKind::Note,
        "Note",
        "the arguments are unknown or not an object, and shown as a whole".to_owned(),
    )
}

/// The segments of a JSON pointer. Returns `None` if it is not a JSON pointer.
fn pointer_segments(pointer: &str) -> Option<Vec<String>> {
    let rest = pointer.strip_prefix('/')?;
    Some(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}
