//! Operators on single values. A value of the wrong type makes the result [`Truth::Undecided`], never `No`.

use std::cmp::Ordering;

use super::operand::ResolvedOperand;
use super::truth::Truth;
use super::work_units::spend_for;
use crate::call::NodeRef;
use crate::json::{JsonType, Value};

/// Comparison operator for two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldComparison {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
}

impl FieldComparison {
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Gt, Self::Gte, Self::Lt, Self::Lte];

    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
        }
    }

    pub(super) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
        }
    }

    pub fn eval(self, node: NodeRef<'_>, operand: ResolvedOperand<'_>) -> Truth {
        if matches!(node, NodeRef::Time(_)) || matches!(operand.value, NodeRef::Time(_)) {
            return self.eval_times(node, operand.value);
        }
        if matches!(self, Self::Eq | Self::Ne) {
            return try_equals(node, operand, self.name())
                .map_or_else(|open| open, |equal| (equal == (self == Self::Eq)).into());
        }
        let operand = operand.value;
        let ordering = match (node, operand) {
            (NodeRef::Json(Value::Number(a)), NodeRef::Json(Value::Number(b))) => a.cmp(b),
            (a, b) => match (a.as_str(), b.as_str()) {
                (Some(a), Some(b)) => a.cmp(b),
                _ => return type_mismatch(node, self.name(), operand.json_type().with_article()),
            },
        };
        self.holds(ordering).into()
    }
}

impl FieldComparison {
    /// Compares two times or two durations. A time is never compared with a string.
    fn eval_times(self, node: NodeRef<'_>, operand: NodeRef<'_>) -> Truth {
        let order = match (node, operand) {
            (NodeRef::Time(a), NodeRef::Time(b)) => a.value.compare(b.value),
            _ => None,
        };
        order.map_or_else(
            || {
                let (a, b) = (type_name(node), type_name(operand));
                Truth::Undecided(format!(
                    "it is of type {a}, and `{}` compares it with the type {b}",
                    self.name()
                ))
            },
            |order| self.holds(order).into(),
        )
    }
}

/// The name of a type, also of times and durations.
pub(super) fn type_name(node: NodeRef<'_>) -> &'static str {
    match node {
        NodeRef::Time(time) => time.value.type_name(),
        other => other.json_type().name(),
    }
}

pub fn with_string(node: NodeRef<'_>, operator: &str, test: impl FnOnce(&str) -> Truth) -> Truth {
    match node.as_str() {
        Some(text) => test(text),
        None => type_mismatch(node, operator, "a string"),
    }
}

pub(super) fn type_mismatch(node: NodeRef<'_>, operator: &str, wanted: &str) -> Truth {
    Truth::Undecided(format!("it is {}, `{operator}` needs {wanted}", node.json_type().with_article()))
}

/// Returns whether two values of one type are equal. Only a `null` written in the rules can be compared with values of every type; a
/// `null` in the call is a value of another type.
fn try_equals(node: NodeRef<'_>, operand: ResolvedOperand<'_>, operator: &str) -> Result<bool, Truth> {
    let ResolvedOperand { value, is_literal } = operand;
    let asks_for_null = is_literal && value.json_type() == JsonType::Null;
    if asks_for_null || node.json_type() == value.json_type() {
        Ok(node.equals(value))
    } else {
        Err(type_mismatch(node, operator, value.json_type().with_article()))
    }
}

pub fn equals(node: NodeRef<'_>, operand: ResolvedOperand<'_>, operator: &str) -> Truth {
    try_equals(node, operand, operator).map_or_else(|open| open, Truth::from)
}

/// Returns whether a value is one of the literals. A set with several types is decided for values of each of its types.
pub fn is_member(node: NodeRef<'_>, values: &[Value], operator: &str) -> Truth {
    if values.iter().any(|value| node.equals(NodeRef::Json(value))) {
        return Truth::Yes;
    }
    let types = || values.iter().map(JsonType::from_value).filter(|json_type| *json_type != JsonType::Null);
    match types().next() {
        Some(other) if types().all(|json_type| json_type != node.json_type()) => {
            type_mismatch(node, operator, other.with_article())
        }
        _ => Truth::No,
    }
}

pub fn contains(node: NodeRef<'_>, operand: ResolvedOperand<'_>) -> Truth {
    match node {
        NodeRef::Json(Value::Array(items)) => {
            Truth::any(items.iter().map(|item| equals(NodeRef::Json(item), operand, "contains")))
        }
        _ => match (node.as_str(), operand.value.as_str()) {
            (Some(text), Some(part)) => text.contains(part).into(),
            (Some(_), None) => operand_mismatch(),
            (None, _) => type_mismatch(node, "contains", "a string or an array"),
        },
    }
}

/// The result of `contains` for a string and another operand.
pub(super) fn operand_mismatch() -> Truth {
    Truth::Undecided("it is a string, and the operand of `contains` is not".to_owned())
}

pub fn is_of_type(node: NodeRef<'_>, word: &str) -> bool {
    match node {
        NodeRef::Json(Value::Number(number)) if word == "integer" => number.is_integer(),
        _ => node.json_type().name() == word,
    }
}

/// Whether `test` is true for a string inside an array or an object, at any depth.
pub fn any_nested_string(value: &Value, test: &mut impl FnMut(&Value) -> bool) -> bool {
    let mut open: Vec<&Value> = vec![value];
    while let Some(next) = open.pop() {
        match next {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::String(_) if !std::ptr::eq(next, value) && test(next) => return true,
            _ => {}
        }
    }
    false
}

/// Whether one of the patterns matches a text. Each of them reads the text again.
pub fn any_matches<P, E: std::fmt::Display>(
    patterns: &[P],
    text: &str,
    test: impl Fn(&P) -> Result<bool, E>,
) -> Truth {
    match spend_for(patterns.len().saturating_mul(text.len().saturating_add(8)), 1) {
        Ok(()) => Truth::any(patterns.iter().map(|pattern| match test(pattern) {
            Ok(value) => value.into(),
            Err(why) => Truth::Undecided(why.to_string()),
        })),
        Err(exceeded) => exceeded,
    }
}
