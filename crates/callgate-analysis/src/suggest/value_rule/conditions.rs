//! Rules as conditions of policies.

use callgate::json::{Map, Value, json};
use callgate::path::PathStep;

use super::{FieldRule, ShapeRule, ValueRule};

/// A condition, with the comment above it.
pub(in crate::suggest) struct CommentedCondition {
    pub(in crate::suggest) comment: String,
    pub(in crate::suggest) condition: Value,
}

/// How a test lets an absent value pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::suggest) enum AbsentForm {
    /// `absent: match`, for policies that permit.
    Match,
    /// `any: [exists: false, …]`, for policies that restrict, where `absent: match` leaves a condition undecided.
    Any,
}

/// The place of a value in the arguments, or in an element of an array in them.
#[derive(Clone, Debug)]
struct ValuePath {
    /// Empty for the element itself.
    path: String,
    /// Whether the value may be absent.
    is_optional: bool,
    form: AbsentForm,
    /// The number of arrays around it.
    depth: usize,
}

impl FieldRule {
    /// The conditions on the members of the arguments.
    pub(in crate::suggest) fn conditions(&self, absent: AbsentForm) -> Vec<CommentedCondition> {
        let root = ValuePath { path: "$.input".to_owned(), form: absent, is_optional: false, depth: 0 };
        let mut conditions = Vec::new();
        self.add_conditions(&root, &mut conditions);
        conditions
    }

    fn add_conditions(&self, at: &ValuePath, conditions: &mut Vec<CommentedCondition>) {
        if let ValueRule::Members(members) = &self.rule {
            for (name, member) in members {
                let path = ValuePath {
                    path: format!("{}{}", at.prefix(), PathStep::Name(name.clone())),
                    is_optional: at.is_optional || self.is_nullable || !member.is_required,
                    depth: at.depth,
                    form: at.form,
                };
                member.field.add_conditions(&path, conditions);
            }
            return;
        }
        let add = |test: Value, conditions: &mut Vec<CommentedCondition>| {
            let condition = match self.is_nullable {
                true => json!({ "any": [at.test(json!({ "eq": null })), test] }),
                false => test,
            };
            conditions.push(CommentedCondition { comment: self.evidence.clone(), condition });
        };
        if let ValueRule::Items { most, item } = &self.rule {
            add(at.test(json!({ "length": { "of": "items", "lte": most } })), conditions);
            if let Some(every) = item.element_condition(at) {
                conditions.push(CommentedCondition { comment: item.evidence.clone(), condition: every });
            }
        } else if let Some(test) = self.test() {
            add(at.test(test), conditions);
        }
    }

    /// The condition on every element of the array at a path. Returns `None` if every element is permitted.
    fn element_condition(&self, array: &ValuePath) -> Option<Value> {
        let element =
            ValuePath { path: String::new(), depth: array.depth + 1, is_optional: false, form: array.form };
        let mut inner = Vec::new();
        self.add_conditions(&element, &mut inner);
        let inner: Vec<Value> = inner.into_iter().map(|commented| commented.condition).collect();
        if inner.is_empty() {
            return None;
        }
        let path = if array.path.is_empty() { array.prefix() } else { array.path.clone() };
        let mut every = Map::new();
        every.insert("path", format!("{path}[*]").into());
        if element.depth > 1 {
            every.insert("as", element.name().into());
        }
        every.insert("min", 0.into());
        every.insert("all", Value::Array(inner));
        Some(json!({ "every": every }))
    }

    /// The operators of the test.
    fn test(&self) -> Option<Value> {
        Some(match &self.rule {
            ValueRule::Unlimited | ValueRule::Items { .. } | ValueRule::Members(_) => return None,
            ValueRule::Absent => json!({ "exists": false }),
            ValueRule::OneOf(values) => match values.as_slice() {
                [value] => json!({ "eq": value }),
                values => json!({ "in": values }),
            },
            ValueRule::Range { least, most } if least == most => json!({ "eq": least }),
            ValueRule::Range { least, most } => json!({ "gte": least, "lte": most }),
            ValueRule::Length(most) => json!({ "length": { "of": "characters", "lte": most } }),
            ValueRule::Shapes(shapes) => {
                let patterns: Vec<String> = shapes.iter().map(ShapeRule::pattern).collect();
                match patterns.as_slice() {
                    [pattern] => json!({ "matches": pattern }),
                    patterns => json!({ "matches": patterns }),
                }
            }
            ValueRule::Hosts { hosts, only_https: true } => {
                json!({ "host": hosts, "starts_with": "https://" })
            }
            ValueRule::Hosts { hosts, only_https: false } => json!({ "host": hosts }),
            ValueRule::Domains(domains) => json!({ "domain": domains }),
            ValueRule::Directories { directories, is_relative: false } => json!({ "inside": directories }),
            ValueRule::Directories { directories, is_relative: true } => {
                json!({ "inside": directories, "base": "/", "matches": "^[^/]" })
            }
        })
    }
}

impl ValuePath {
    /// The name of the element that the path starts from.
    fn name(&self) -> String {
        if self.depth <= 1 { "item".to_owned() } else { format!("item_{}", self.depth) }
    }

    /// The path as the beginning of a longer one.
    fn prefix(&self) -> String {
        if self.path.is_empty() { format!("${}", self.name()) } else { self.path.clone() }
    }

    /// A test of the value: these operators.
    fn test(&self, operators: Value) -> Value {
        let mut test = Map::new();
        if !self.path.is_empty() {
            test.insert("path", self.path.as_str().into());
        }
        let decides_absence =
            operators.get("exists").is_some() || operators.get("eq").is_some_and(Value::is_null);
        if let Value::Object(operators) = operators {
            test.extend(operators);
        }
        match (self.is_optional && !decides_absence, self.form) {
            (false, _) => Value::Object(test),
            (true, AbsentForm::Match) => {
                test.insert("absent", "match".into());
                Value::Object(test)
            }
            (true, AbsentForm::Any) => json!({ "any": [{ "path": &self.path, "exists": false }, test] }),
        }
    }
}
