//! Work units of tests: the size of a value, and spending units with a truth as the error.

use super::truth::Truth;
use crate::call::NodeRef;
use crate::json::Value;
use crate::work_limit;

/// Returns the approximate size of a value, in work units.
pub fn value_cost(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / 8,
        Value::Number(number) => number.text().len() / 8,
        Value::Array(items) => items.iter().map(|item| 1 + value_cost(item)).sum(),
        Value::Object(members) => {
            members.iter().map(|(key, member)| 1 + key.len() / 8 + value_cost(member)).sum()
        }
        Value::Null | Value::Bool(_) => 0,
    }
}

/// Returns the approximate size of a value, in work units.
pub fn node_cost(node: NodeRef<'_>) -> usize {
    match node {
        NodeRef::Text(text) => text.len() / 8,
        NodeRef::Time(_) => 1,
        NodeRef::Json(value) => value_cost(value),
    }
}

/// Spends work units for an amount of bytes or values, `per_unit` of them a unit.
///
/// # Errors
/// Returns [`Truth::Undecided`] if the units of the call are used up.
pub fn spend_for(amount: usize, per_unit: u64) -> Result<(), Truth> {
    work_limit::spend_for(amount, per_unit).map_err(|exceeded| Truth::Undecided(exceeded.to_string()))
}
