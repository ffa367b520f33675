//! What a test asks of one value. A value of the wrong type makes the answer undecided, never `no`.

use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

use super::domain::{DomainPattern, every_domain_matches};
use super::host::HostPattern;
use super::inside::Directory;
use super::operand::{self, Compared, Operand, OperandSet, PatternSet};
use super::truth::Truth;
use crate::authoring::{Field, Reader, Record, Shape};
use crate::call::{CallView, Node};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE, INVALID_OPERAND};
use crate::json::{Decimal, JsonType};
use crate::source;

/// `{ path: … }` in an operand's place.
pub static PATH_OPERAND: Record = Record {
    name: "path_operand",
    doc: "Another place of the call document to compare with.",
    fields: &[Field::required("path", Shape::Text("a JSONPath such as `$.context.tenant`"), "The place.")],
};

/// A number of characters, items or members.
pub const COUNT: Shape = Shape::Integer(0, i64::MAX);

/// Examples of patterns for hosts and domains.
const HOSTS: &str = "`example.com`, or `*.example.com` for what is below it";

/// What `length:` may ask.
pub static LENGTH_RECORD: Record = Record {
    name: "length",
    doc: "Bounds on a length.",
    fields: &[
        Field::optional("eq", COUNT, "It is this long."),
        Field::optional("ne", COUNT, "It is not this long."),
        Field::optional("gt", COUNT, "It is longer."),
        Field::optional("gte", COUNT, "It is this long, or longer."),
        Field::optional("lt", COUNT, "It is shorter."),
        Field::optional("lte", COUNT, "It is this long, or shorter."),
    ],
};

/// The order of two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
}

impl Comparison {
    const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Gt, Self::Gte, Self::Lt, Self::Lte];

    fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
        }
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
        }
    }

    fn eval(self, node: Node<'_>, operand: Compared<'_>) -> Truth {
        if matches!(self, Self::Eq | Self::Ne) {
            return equality(node, operand, self.name())
                .map_or_else(|open| open, |equal| (equal == (self == Self::Eq)).into());
        }
        let operand = operand.value;
        let ordering = match (node, operand) {
            (Node::Json(Value::Number(a)), Node::Json(Value::Number(b))) => {
                Decimal::of(a).cmp(&Decimal::of(b))
            }
            (a, b) => match (a.as_str(), b.as_str()) {
                (Some(a), Some(b)) => a.cmp(b),
                _ => return mistyped(node, self.name(), operand.json_type().name()),
            },
        };
        self.holds(ordering).into()
    }
}

/// What is asked of a value.
#[derive(Debug)]
pub enum Operator {
    Compare(Comparison, Operand),
    In { set: OperandSet, negated: bool },
    Contains(Operand),
    StartsWith(PatternSet<String>),
    EndsWith(PatternSet<String>),
    Matches(Regex),
    Type(Vec<String>),
    Length(Vec<(Comparison, u64)>),
    Inside { directories: PatternSet<Directory>, base: Option<String> },
    Host(PatternSet<HostPattern>),
    Domain(PatternSet<DomainPattern>),
}

impl Operator {
    /// Reads the operators of a test; `None` in place of each that could not be read.
    pub fn read_all(test: &source::Node, reader: &mut Reader<'_>) -> Vec<Option<Self>> {
        let base = test.get("base").and_then(source::Node::as_str);
        let relative =
            test.get("base").filter(|node| node.as_str().is_some_and(|base| !base.starts_with('/')));
        if let Some(node) = relative {
            reader.report(
                Diagnostic::new(&INVALID_OPERAND, node.span, "`base` must be an absolute directory")
                    .help("write for example `base: /srv`"),
            );
            return vec![None];
        }
        let entries = test.entries().unwrap_or_default().iter();
        let operators =
            entries.filter_map(|entry| Self::read(&entry.key, &entry.value, base, reader)).collect();
        if let (Some(base), None) = (test.get("base"), test.get("inside")) {
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, base.span, "`base` means nothing without `inside`")
                    .help("add `inside:`, or leave `base` out"),
            );
        }
        operators
    }

    /// Reads one operator; `None` where the key is none.
    fn read(
        key: &str,
        node: &source::Node,
        base: Option<&str>,
        reader: &mut Reader<'_>,
    ) -> Option<Option<Self>> {
        if let Some(comparison) = Comparison::ALL.into_iter().find(|comparison| comparison.name() == key) {
            let operand = Operand::read(node, reader);
            return Some(operand.and_then(|operand| comparable(comparison, operand, node, reader)));
        }
        Some(match key {
            "in" | "not_in" => {
                OperandSet::read(node, reader).map(|set| Self::In { set, negated: key == "not_in" })
            }
            "contains" => Operand::read(node, reader).map(Self::Contains),
            "starts_with" => PatternSet::read(node, reader, "`abc`", literal).map(Self::StartsWith),
            "ends_with" => PatternSet::read(node, reader, "`abc`", literal).map(Self::EndsWith),
            "matches" => reader.regex(node).map(Self::Matches),
            "type" => {
                let words = node.items().unwrap_or(std::slice::from_ref(node)).iter();
                words.map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>().map(Self::Type)
            }
            "length" => read_length(node, reader).map(Self::Length),
            "inside" => PatternSet::read(
                node,
                reader,
                "`/srv/data`, or say with `base:` where relative paths start",
                |text| Directory::parse(text, base),
            )
            .map(|directories| Self::Inside { directories, base: base.map(str::to_owned) }),
            "host" => PatternSet::read(node, reader, HOSTS, HostPattern::parse).map(Self::Host),
            "domain" => PatternSet::read(node, reader, HOSTS, DomainPattern::parse).map(Self::Domain),
            _ => return None,
        })
    }

    /// What the operator says of a value. Reasons speak of the value as "it".
    pub fn eval(&self, node: Node<'_>, view: &CallView<'_>) -> Truth {
        match self {
            Self::Compare(comparison, operand) => match operand.value(view) {
                Ok(operand) => comparison.eval(node, operand),
                Err(open) => open,
            },
            Self::In { set, negated } => {
                let operator = if *negated { "not_in" } else { "in" };
                let found =
                    match set {
                        OperandSet::Literals(values) => member(node, values, operator),
                        OperandSet::Path(path) => match operand::listed(path, view) {
                            Ok(values) => Truth::any(values.iter().map(|value| {
                                equals(node, Compared { value: *value, written: false }, operator)
                            })),
                            Err(open) => return open,
                        },
                    };
                if *negated { !found } else { found }
            }
            Self::Contains(operand) => match operand.value(view) {
                Ok(operand) => contains(node, operand),
                Err(open) => open,
            },
            Self::StartsWith(texts) => on_text(node, "starts_with", |text| {
                texts.with(view, literal, |texts| {
                    texts.iter().any(|start| text.starts_with(start.as_str())).into()
                })
            }),
            Self::EndsWith(texts) => on_text(node, "ends_with", |text| {
                texts.with(view, literal, |texts| texts.iter().any(|end| text.ends_with(end.as_str())).into())
            }),
            Self::Matches(regex) => on_text(node, "matches", |text| regex.is_match(text).into()),
            Self::Type(words) => words.iter().any(|word| is_of_type(node, word)).into(),
            Self::Length(bounds) => length(node, bounds),
            Self::Inside { directories, base } => on_text(node, "inside", |text| {
                directories.with(
                    view,
                    |operand| Directory::parse(operand, base.as_deref()),
                    |directories| decide_any(directories, |directory| directory.contains(text)),
                )
            }),
            Self::Host(patterns) => on_text(node, "host", |text| {
                patterns.with(view, HostPattern::parse, |patterns| {
                    decide_any(patterns, |pattern| pattern.matches(text))
                })
            }),
            Self::Domain(patterns) => on_text(node, "domain", |text| {
                patterns.with(view, DomainPattern::parse, |patterns| {
                    every_domain_matches(patterns, text)
                        .map_or_else(|why| Truth::Undecided(why.to_string()), Truth::from)
                })
            }),
        }
    }

    /// The literals one of which the value must equal, where the operator asks that.
    pub fn literals(&self) -> Option<&[Value]> {
        match self {
            Self::Compare(Comparison::Eq, Operand::Literal(value)) => Some(std::slice::from_ref(value)),
            Self::In { set: OperandSet::Literals(values), negated: false } => Some(values),
            _ => None,
        }
    }
}

fn literal(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// `gt` and its like need an operand that has an order.
fn comparable(
    comparison: Comparison,
    operand: Operand,
    node: &source::Node,
    reader: &mut Reader<'_>,
) -> Option<Operator> {
    let ordered = match &operand {
        Operand::Literal(value) => value.is_number() || value.is_string(),
        Operand::Path(_) => true,
    };
    if ordered || matches!(comparison, Comparison::Eq | Comparison::Ne) {
        return Some(Operator::Compare(comparison, operand));
    }
    reader.report(
        Diagnostic::new(
            &INVALID_OPERAND,
            node.span,
            format!("`{}` compares numbers or texts, this is {}", comparison.name(), node.type_name()),
        )
        .help("write a number, a text, or `{ path: … }`"),
    );
    None
}

fn read_length(node: &source::Node, reader: &mut Reader<'_>) -> Option<Vec<(Comparison, u64)>> {
    if node.entries().is_some_and(<[_]>::is_empty) {
        reader.report(
            Diagnostic::new(&EMPTY_VALUE, node.span, "`length` says nothing")
                .help("write for example `{ lte: 10 }`"),
        );
        return None;
    }
    if let Some(number) = node.as_number() {
        return Some(vec![(Comparison::Eq, number.as_u64()?)]);
    }
    let bound =
        |comparison: Comparison| Some((comparison, node.get(comparison.name())?.as_number()?.as_u64()?));
    Some(Comparison::ALL.into_iter().filter_map(bound).collect())
}

fn on_text(node: Node<'_>, operator: &str, test: impl FnOnce(&str) -> Truth) -> Truth {
    match node.as_str() {
        Some(text) => test(text),
        None => mistyped(node, operator, "string"),
    }
}

fn mistyped(node: Node<'_>, operator: &str, wanted: &str) -> Truth {
    Truth::Undecided(format!("it is of type {}, `{operator}` needs {wanted}", node.json_type()))
}

/// Whether two values of one type are equal. Whether something is null may be asked of every type, but only by the author:
/// a null that stands in the call is of another type like any other.
fn equality(node: Node<'_>, operand: Compared<'_>, operator: &str) -> Result<bool, Truth> {
    let Compared { value, written } = operand;
    let asks_for_null = written && value.json_type() == JsonType::Null;
    if asks_for_null || node.json_type() == value.json_type() {
        Ok(node.equals(value))
    } else {
        Err(mistyped(node, operator, value.json_type().name()))
    }
}

fn equals(node: Node<'_>, operand: Compared<'_>, operator: &str) -> Truth {
    equality(node, operand, operator).map_or_else(|open| open, Truth::from)
}

/// Whether a value is one of those that the author wrote. A set of several types is decided for each of its types.
fn member(node: Node<'_>, values: &[Value], operator: &str) -> Truth {
    if values.iter().any(|value| node.equals(Node::Json(value))) {
        return Truth::Yes;
    }
    let types = || values.iter().map(JsonType::of).filter(|json_type| *json_type != JsonType::Null);
    match types().next() {
        Some(other) if types().all(|json_type| json_type != node.json_type()) => {
            mistyped(node, operator, other.name())
        }
        _ => Truth::No,
    }
}

fn contains(node: Node<'_>, operand: Compared<'_>) -> Truth {
    match node {
        Node::Json(Value::Array(items)) => {
            Truth::any(items.iter().map(|item| equals(Node::Json(item), operand, "contains")))
        }
        _ => match (node.as_str(), operand.value.as_str()) {
            (Some(text), Some(part)) => text.contains(part).into(),
            (Some(_), None) => Truth::Undecided("it is text, and `contains` was given no text".to_owned()),
            (None, _) => mistyped(node, "contains", "string or array"),
        },
    }
}

fn is_of_type(node: Node<'_>, word: &str) -> bool {
    match node {
        Node::Json(Value::Number(number)) if word == "integer" => Decimal::of(number).is_integer(),
        _ => node.json_type().name() == word,
    }
}

fn length(node: Node<'_>, bounds: &[(Comparison, u64)]) -> Truth {
    let length = match node {
        Node::Json(Value::Array(items)) => items.len(),
        Node::Json(Value::Object(map)) => map.len(),
        _ => match node.as_str() {
            Some(text) => text.chars().count(),
            None => return mistyped(node, "length", "string, array or object"),
        },
    };
    bounds.iter().all(|(comparison, bound)| comparison.holds((length as u64).cmp(bound))).into()
}

fn decide_any<P, E: std::fmt::Display>(patterns: &[P], test: impl Fn(&P) -> Result<bool, E>) -> Truth {
    Truth::any(patterns.iter().map(|pattern| match test(pattern) {
        Ok(value) => value.into(),
        Err(why) => Truth::Undecided(why.to_string()),
    }))
}
