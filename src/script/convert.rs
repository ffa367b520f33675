//! JSON into values of the engine, within a budget, and without losing digits.

use rhai::{Array, Dynamic, Map};
use serde_json::Value;

use super::value::{EXACT_FLOATS, Number};
use crate::json::{Decimal, MAX_DEPTH};

/// How much one evaluation may copy out of a call.
pub(super) const MAX_NODES: usize = 100_000;
/// How many bytes of text one evaluation may copy out of a call.
pub(super) const MAX_TEXT: usize = 16 << 20;

/// What one evaluation has copied so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    pub(super) nodes: usize,
    pub(super) text: usize,
}

impl Budget {
    /// Counts one value. Errors: more than an evaluation may copy.
    pub(super) fn node(&mut self) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(format!("the expression reads more than {MAX_NODES} values of the call"));
        }
        Ok(())
    }

    /// Counts text. Errors: more than an evaluation may copy.
    pub(super) fn text<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        self.text = self.text.saturating_add(text.len());
        if self.text > MAX_TEXT {
            return Err(format!("the expression reads more than {MAX_TEXT} bytes of text of the call"));
        }
        Ok(text)
    }
}

/// Copies a whole value. Errors: the budget, nesting deeper than [`MAX_DEPTH`], a number that would lose digits.
pub(super) fn whole(value: &Value, budget: &mut Budget) -> Result<Dynamic, String> {
    nested(value, budget, 0)
}

fn nested(value: &Value, budget: &mut Budget, depth: usize) -> Result<Dynamic, String> {
    if depth > MAX_DEPTH {
        return Err(format!("the expression reads a value nested deeper than {MAX_DEPTH} levels"));
    }
    budget.node()?;
    Ok(match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(value) => Dynamic::from_bool(*value),
        Value::Number(value) => number(value)?.into_dynamic(),
        Value::String(text) => budget.text(text)?.into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| nested(item, budget, depth + 1));
            Dynamic::from_array(items.collect::<Result<Array, _>>()?)
        }
        Value::Object(members) => {
            let mut map = Map::new();
            for (key, member) in members {
                map.insert(budget.text(key)?.into(), nested(member, budget, depth + 1)?);
            }
            Dynamic::from_map(map)
        }
    })
}

/// A JSON number: whole numbers exactly or not at all, decimals as the nearest float. Errors: a whole number that
/// neither an i64 nor a float is equal to, and what is too large or too small for a float.
pub(super) fn number(number: &serde_json::Number) -> Result<Number, String> {
    if let Some(whole) = number.as_i64() {
        return Ok(Number::Whole(whole));
    }
    let lost =
        || format!("the number {} is too large or too fine to be read exactly", shortened(number.as_str()));
    let float: f64 = number.as_str().parse().map_err(|_| lost())?;
    let value = Number::of_float(float).map_err(|_| lost())?;
    let exact_needed = float.abs() >= EXACT_FLOATS || float == 0.0;
    if exact_needed && !equals_exactly(number, float) {
        return Err(lost());
    }
    Ok(value)
}

fn equals_exactly(number: &serde_json::Number, float: f64) -> bool {
    // `{:.0}` writes every digit of a float that is a whole number.
    let text = format!("{float:.0}");
    text.parse::<serde_json::Number>().is_ok_and(|float| Decimal::of(&float) == Decimal::of(number))
}

fn shortened(text: &str) -> String {
    if text.len() <= 24 { text.to_owned() } else { text.chars().take(20).chain("…".chars()).collect() }
}
