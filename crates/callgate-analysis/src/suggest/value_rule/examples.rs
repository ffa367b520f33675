//! An example that a rule permits, and examples that it does not.

use callgate::json::{Number, Value, json};

use super::{FieldRule, ValueRule};

/// A value that a rule does not permit, with its name.
pub(in crate::suggest) type Counterexample = (String, Value);

/// The longest string of an example.
const MAX_EXAMPLE_LENGTH: u64 = 400;
/// A name outside of every host, domain and directory of a draft, reserved by RFC 2606.
const OUTSIDE: &str = "outside.invalid";

impl FieldRule {
    /// A value that the rule permits.
    pub(in crate::suggest) fn example(&self) -> Value {
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
    pub(in crate::suggest) fn counterexamples(&self) -> Vec<Counterexample> {
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
