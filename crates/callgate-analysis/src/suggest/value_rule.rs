//! What a draft permits at one path: the rule, as a condition, a JSON Schema, an example that passes and examples that do not.

use std::collections::BTreeMap;

use callgate::json::{Map, Number, Value, json};
use callgate::path::PathStep;

use super::string_shape::StringShape;

/// What is permitted for one value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldRule {
    /// The permitted types but null; empty for any.
    pub(super) types: Vec<&'static str>,
    pub(super) is_nullable: bool,
    pub(super) rule: ValueRule,
    /// What was seen, for a comment.
    pub(super) evidence: String,
}

/// What is permitted beyond the type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueRule {
    /// Every value of the type.
    Unlimited,
    /// None: the member must be absent.
    Absent,
    /// One of these.
    OneOf(Vec<Value>),
    /// A number of this range.
    Range { least: Number, most: Number },
    /// A string of at most this many characters.
    Length(u64),
    /// A string that matches one of these patterns.
    Shapes(Vec<ShapeRule>),
    /// A URL with one of these hosts.
    Hosts { hosts: Vec<String>, only_https: bool },
    /// Mail addresses in these domains.
    Domains(Vec<String>),
    /// A path in one of these directories.
    Directories { directories: Vec<String>, is_relative: bool },
    /// An array of at most so many items.
    Items { most: u64, item: Box<FieldRule> },
    /// An object with these members and no others.
    Members(BTreeMap<String, MemberRule>),
}

/// A shape with the lengths of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShapeRule {
    pub(super) shape: StringShape,
    pub(super) lengths: Vec<(u64, u64)>,
}

/// What is permitted for a member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MemberRule {
    pub(super) is_required: bool,
    pub(super) field: FieldRule,
}

/// A condition, with the comment above it.
pub(super) struct CommentedCondition {
    pub(super) comment: String,
    pub(super) condition: Value,
}

/// A value that a rule does not permit, with its name.
pub(super) type Counterexample = (String, Value);

/// The longest string of an example.
const MAX_EXAMPLE_LENGTH: u64 = 400;
/// A name outside of every host, domain and directory of a draft, reserved by RFC 2606.
const OUTSIDE: &str = "outside.invalid";

/// How a test lets an absent value pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsentForm {
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
    pub(super) fn conditions(&self, absent: AbsentForm) -> Vec<CommentedCondition> {
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
        every.insert("path".to_owned(), format!("{path}[*]").into());
        if element.depth > 1 {
            every.insert("as".to_owned(), element.name().into());
        }
        every.insert("min".to_owned(), 0.into());
        every.insert("all".to_owned(), Value::Array(inner));
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

    /// The type, for `validate: { arguments }`: a name, or a JSON Schema.
    pub(super) fn argument_type(&self) -> Value {
        let schema = self.schema();
        let only_type = schema.as_object().filter(|members| members.len() == 1);
        match only_type.and_then(|members| members.get("type")).and_then(Value::as_str) {
            Some(name) if name != "array" && name != "null" => name.into(),
            _ => schema,
        }
    }

    fn schema(&self) -> Value {
        let mut schema = Map::new();
        let mut types = self.types.clone();
        types.extend(self.is_nullable.then_some("null").filter(|_| !types.is_empty()));
        match types.as_slice() {
            [] => return json!({}),
            [only] => schema.insert("type".to_owned(), (*only).into()),
            several => schema.insert("type".to_owned(), json!(several)),
        };
        match &self.rule {
            ValueRule::Items { item, .. } => {
                schema.insert("items".to_owned(), item.schema());
            }
            ValueRule::Members(members) => {
                let properties: Map =
                    members.iter().map(|(name, member)| (name.clone(), member.field.schema())).collect();
                let required: Vec<&String> =
                    members.iter().filter(|(_, member)| member.is_required).map(|(name, _)| name).collect();
                schema.insert("properties".to_owned(), properties.into());
                if !required.is_empty() {
                    schema.insert("required".to_owned(), json!(required));
                }
                schema.insert("additionalProperties".to_owned(), false.into());
            }
            _ => {}
        }
        Value::Object(schema)
    }

    /// A value that the rule permits.
    pub(super) fn example(&self) -> Value {
        match &self.rule {
            ValueRule::Absent => Value::Null,
            ValueRule::Unlimited => match self.types.first() {
                Some(&"boolean") => false.into(),
                Some(&("number" | "integer")) => 1.into(),
                Some(&"array") => json!([]),
                Some(&"object") => json!({}),
                Some(_) => "x".into(),
                None => Value::Null,
            },
            ValueRule::OneOf(values) => values.first().cloned().unwrap_or_default(),
            ValueRule::Range { least, .. } => Value::Number(least.clone()),
            ValueRule::Length(most) => text_of(*most.min(&1)),
            ValueRule::Shapes(shapes) => {
                shapes.first().map(|rule| rule.shape.example(&rule.lengths)).unwrap_or_default().into()
            }
            ValueRule::Hosts { hosts, .. } => {
                text_or_null(hosts.first().map(|host| format!("https://{host}/")))
            }
            ValueRule::Domains(domains) => {
                text_or_null(domains.first().map(|domain| format!("someone@{domain}")))
            }
            ValueRule::Directories { directories, is_relative } => {
                text_or_null(directories.first().map(|directory| {
                    let path = format!("{}/file", directory.trim_end_matches('/'));
                    if *is_relative { path.trim_start_matches('/').to_owned() } else { path }
                }))
            }
            ValueRule::Items { most: 0, .. } => json!([]),
            ValueRule::Items { item, .. } => json!([item.example()]),
            ValueRule::Members(members) => {
                let required = members.iter().filter(|(_, member)| member.is_required);
                Value::Object(required.map(|(name, member)| (name.clone(), member.field.example())).collect())
            }
        }
    }

    /// Values of a permitted type that the rule does not permit, one for each bound.
    pub(super) fn counterexamples(&self) -> Vec<Counterexample> {
        let one = |name: &str, value: Value| vec![(name.to_owned(), value)];
        match &self.rule {
            ValueRule::Unlimited | ValueRule::Absent => Vec::new(),
            ValueRule::OneOf(values) => match values.first() {
                Some(Value::Bool(value)) => one("another value", (!value).into()),
                Some(Value::Number(_)) => {
                    let numbers = values.iter().filter_map(Value::as_number);
                    let larger = numbers.max().and_then(larger_than);
                    larger.map(|number| one("another number", Value::Number(number))).unwrap_or_default()
                }
                _ => {
                    let mut other = "another value".to_owned();
                    while values.iter().any(|value| *value == other.as_str()) {
                        other.push('!');
                    }
                    one("another value", other.into())
                }
            },
            ValueRule::Range { least, most } => {
                let above = larger_than(most).map(|number| ("too large".to_owned(), Value::Number(number)));
                let below = smaller_than(least).map(|number| ("too small".to_owned(), Value::Number(number)));
                above.into_iter().chain(below).collect()
            }
            ValueRule::Length(most) if *most >= MAX_EXAMPLE_LENGTH => Vec::new(),
            ValueRule::Length(most) => one("too long", text_of(most + 1)),
            ValueRule::Shapes(_) => one("another form", "! another form !".into()),
            ValueRule::Hosts { .. } => one("another host", format!("https://{OUTSIDE}/").into()),
            ValueRule::Domains(_) => one("another domain", format!("someone@{OUTSIDE}").into()),
            ValueRule::Directories { is_relative: false, .. } => {
                one("another directory", format!("/{OUTSIDE}/file").into())
            }
            ValueRule::Directories { is_relative: true, .. } => {
                one("another directory", format!("{OUTSIDE}/file").into())
            }
            ValueRule::Items { most, item } => {
                let mut found: Vec<Counterexample> = item
                    .counterexamples()
                    .into_iter()
                    .filter(|_| *most > 0)
                    .map(|(name, value)| (format!("an item: {name}"), json!([value])))
                    .collect();
                if *most < 100 {
                    let items = vec![item.example(); usize::try_from(most + 1).unwrap_or_default()];
                    found.push(("too many items".to_owned(), Value::Array(items)));
                }
                found
            }
            ValueRule::Members(members) => {
                let mut found = Vec::new();
                for (name, member) in members {
                    for (problem, value) in member.field.counterexamples() {
                        let mut example = self.example();
                        if let Some(example) = example.as_object_mut() {
                            example.insert(name.clone(), value);
                        }
                        found.push((format!("{name}: {problem}"), example));
                    }
                }
                found
            }
        }
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
            test.insert("path".to_owned(), self.path.as_str().into());
        }
        let decides_absence =
            operators.get("exists").is_some() || operators.get("eq").is_some_and(Value::is_null);
        if let Value::Object(operators) = operators {
            test.extend(operators);
        }
        match (self.is_optional && !decides_absence, self.form) {
            (false, _) => Value::Object(test),
            (true, AbsentForm::Match) => {
                test.insert("absent".to_owned(), "match".into());
                Value::Object(test)
            }
            (true, AbsentForm::Any) => json!({ "any": [{ "path": &self.path, "exists": false }, test] }),
        }
    }
}

impl ShapeRule {
    pub(super) fn pattern(&self) -> String {
        self.shape.pattern(&self.lengths)
    }
}

fn text_or_null(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::from)
}

fn text_of(length: u64) -> Value {
    "x".repeat(usize::try_from(length).unwrap_or_default()).into()
}

/// A number that is certain to be larger.
fn larger_than(number: &Number) -> Option<Number> {
    let value = number.as_f64()?;
    let larger = Number::from_f64((value.abs() + value + 1.0).ceil())?;
    (larger > *number).then(|| plain(&larger))
}

fn smaller_than(number: &Number) -> Option<Number> {
    let value = number.as_f64()?;
    let smaller = Number::from_f64((value - value.abs() - 1.0).floor())?;
    (smaller < *number).then(|| plain(&smaller))
}

/// A whole number without a fraction in its text.
fn plain(number: &Number) -> Number {
    match number.as_f64() {
        Some(value) if value.abs() < 1e15 => Number::from(value as i64),
        _ => number.clone(),
    }
}
