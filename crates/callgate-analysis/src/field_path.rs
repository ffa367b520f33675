//! Paths of the values that rules read: a root of the call document and steps. They set values in documents.

use callgate::json::{Map, Value};

/// A member of the call document that a sample call can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FieldRoot {
    Input,
    Context,
    Session,
    Task,
    Now,
}

impl FieldRoot {
    /// Returns the root with this name in rules. Returns `None` for members that exist only after the tool ran.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "input" => Self::Input,
            "context" => Self::Context,
            "session" => Self::Session,
            "task" => Self::Task,
            "now" => Self::Now,
            _ => return None,
        })
    }
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FieldStep {
    Member(String),
    Index(usize),
    /// The elements of an array, of which samples have one.
    Element,
    /// The member that is named by another value of the call.
    Dynamic(Box<FieldPath>),
}

/// A path below a root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FieldPath {
    pub(crate) root: FieldRoot,
    pub(crate) steps: Vec<FieldStep>,
}

/// The largest index that a sample fills an array up to.
const MAX_INDEX: usize = 16;
/// The member that stands for one whose name is unknown.
const UNKNOWN_MEMBER: &str = "k";

impl FieldPath {
    pub(crate) fn new(root: FieldRoot) -> Self {
        Self { root, steps: Vec::new() }
    }

    /// The path with one more step.
    pub(crate) fn with_step(&self, step: FieldStep) -> Self {
        let mut path = self.clone();
        path.steps.push(step);
        path
    }

    /// Sets the value at the path below the document of its root. `input` are the arguments, which name dynamic members. Arrays and
    /// objects on the way are created; other values on the way are replaced.
    pub(crate) fn set(&self, document: &mut Value, input: &Value, value: Option<Value>) {
        let mut at = document;
        let Some((last, before)) = self.steps.split_last() else {
            *at = value.unwrap_or(Value::Null);
            return;
        };
        for step in before {
            let Some(next) = step.enter(at, input) else { return };
            at = next;
        }
        match (value, last) {
            (Some(value), last) => {
                if let Some(place) = last.enter(at, input) {
                    *place = value;
                }
            }
            (None, FieldStep::Element) => *at = Value::Array(Vec::new()),
            (None, FieldStep::Index(_)) => {}
            (None, step) => {
                if let (Some(members), Some(name)) = (at.as_object_mut(), step.member_name(input)) {
                    members.remove(&name);
                }
            }
        }
    }
}

impl FieldStep {
    fn member_name(&self, input: &Value) -> Option<String> {
        match self {
            Self::Member(name) => Some(name.clone()),
            Self::Dynamic(path) => Some(path.text_in(input).unwrap_or_else(|| UNKNOWN_MEMBER.to_owned())),
            Self::Index(_) | Self::Element => None,
        }
    }

    /// The value of this step below another one, created if it is missing.
    fn enter<'v>(&self, value: &'v mut Value, input: &Value) -> Option<&'v mut Value> {
        if let Some(name) = self.member_name(input) {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            return Some(value.as_object_mut()?.entry(name.as_str()).or_insert(Value::Null));
        }
        let index = if let Self::Index(index) = self { (*index).min(MAX_INDEX) } else { 0 };
        if !value.is_array() {
            *value = Value::Array(Vec::new());
        }
        let items = value.as_array_mut()?;
        while items.len() <= index {
            items.push(Value::Null);
        }
        items.get_mut(index)
    }
}

impl FieldPath {
    /// The string or number at this path of the arguments.
    fn text_in(&self, input: &Value) -> Option<String> {
        if self.root != FieldRoot::Input {
            return None;
        }
        let mut at = input;
        for step in &self.steps {
            at = match step {
                FieldStep::Member(name) => at.get(name.as_str())?,
                FieldStep::Index(index) => at.get(*index)?,
                FieldStep::Element => at.get(0)?,
                FieldStep::Dynamic(_) => return None,
            };
        }
        match at {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.canonical_text()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate::json::json;

    fn path(root: FieldRoot, steps: &[FieldStep]) -> FieldPath {
        FieldPath { root, steps: steps.to_vec() }
    }

    #[test]
    fn values_are_set_in_objects_arrays_and_members_named_by_arguments() {
        let member = |name: &str| FieldStep::Member(name.to_owned());
        let mut input = json!({});
        let price = path(FieldRoot::Input, &[member("items"), FieldStep::Element, member("price")]);
        price.set(&mut input, &Value::Null, Some(json!(3)));
        let order = path(FieldRoot::Input, &[member("order")]);
        order.set(&mut input, &Value::Null, Some(json!("A1")));
        assert_eq!(input, json!({ "items": [{ "price": 3 }], "order": "A1" }));

        let mut session = json!({});
        let status = path(
            FieldRoot::Session,
            &[member("facts"), FieldStep::Dynamic(Box::new(order)), member("status")],
        );
        status.set(&mut session, &input, Some(json!("open")));
        assert_eq!(session, json!({ "facts": { "A1": { "status": "open" } } }));
        status.set(&mut session, &input, None);
        assert_eq!(session, json!({ "facts": { "A1": {} } }));
    }
}
