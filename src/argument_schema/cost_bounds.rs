//! Cost bounds of a schema, computed before it is compiled: how many of its subschemas can apply to one value, and how
//! deeply they nest. Otherwise a few lines of `allOf` and `$ref` can keep a validator busy for years.

use super::schema_error::SchemaError;
use crate::json::{MAX_DEPTH, Number, Value, is_deeper_than};
use crate::safe_text::{escape_controls, truncate};
use crate::work_limit;

mod subschema_graph;

use subschema_graph::SubschemaGraph;

/// The maximum number of values (of any type, at any depth) in one schema.
const MAX_VALUES: usize = 20_000;

/// The maximum number of digits and the maximum exponent of a number. Some checks expand a number to its digits.
const MAX_DIGITS: usize = 1_000;

/// The maximum number of subschemas applied to one value.
const MAX_APPLICATIONS: f64 = 100_000.0;

/// The maximum nesting of subschema evaluations in one check: each uses stack.
const MAX_CHAIN: usize = 800;

/// The maximum number of applications (per value, times the values) for a verdict.
const MAX_CHECK_COST: f64 = 10_000_000.0;

/// The maximum number of applications for explaining errors; more expensive, because errors copy their instance.
const MAX_EXPLANATION_COST: f64 = 500_000.0;

/// The cost factor of an application with error messages.
const EXPLANATION_FACTOR: u64 = 10;

/// The maximum cost at or above one depth of an instance.
#[derive(Clone, Copy, Debug, Default)]
struct CostLevel {
    applications: f64,
    chain: usize,
}

/// The cost of checking against one schema, by the depth of the instance.
#[derive(Clone, Debug)]
pub(super) struct CostBounds {
    levels: Vec<CostLevel>,
}

impl CostBounds {
    /// Reads a schema's subschemas and references.
    ///
    /// # Errors
    /// Returns [`SchemaError`] for references that leave the schema or form cycles, embedded `$id`s, and everything over the limits.
    pub(super) fn from_schema(schema: &Value) -> Result<Self, SchemaError> {
        if is_deeper_than(schema, MAX_DEPTH) {
            return Err(SchemaError::at("", format!("the schema is nested deeper than {MAX_DEPTH} levels")));
        }
        let size = ValueSize::measure(schema)
            .map_err(|message| SchemaError::at("", message.replace("arguments", "schema")))?;
        if size.has_long_number {
            return Err(SchemaError::at("", "the schema contains a number with too many digits"));
        }
        if size.values > MAX_VALUES {
            return Err(SchemaError::at("", format!("the schema contains more than {MAX_VALUES} values")));
        }
        let levels = SubschemaGraph::read(schema)?.levels()?;
        if levels.first().is_some_and(|level| level.applications > MAX_APPLICATIONS) {
            let message =
                "the schema's combinations of `$ref` and `allOf` are too expensive to check: simplify them";
            return Err(SchemaError::at("", message));
        }
        Ok(Self { levels })
    }

    fn level(&self, depth: usize) -> CostLevel {
        self.levels.get(depth).or(self.levels.last()).copied().unwrap_or_default()
    }

    /// Whether an instance of this size gets a verdict within bounded time and stack, and within the call's remaining work.
    pub(super) fn allows_check(&self, size: &ValueSize) -> bool {
        let level = self.level(size.depth);
        let effort = level.applications * size.weight();
        level.chain <= MAX_CHAIN && effort <= MAX_CHECK_COST && work_limit::spend(effort as u64).is_ok()
    }

    /// Whether the errors of an instance of this size can be explained within bounded time and memory.
    pub(super) fn allows_explanation(&self, size: &ValueSize) -> bool {
        let effort = self.level(size.depth).applications * size.weight();
        effort <= MAX_EXPLANATION_COST && work_limit::spend(effort as u64 * EXPLANATION_FACTOR).is_ok()
    }
}

/// The size of a JSON value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueSize {
    depth: usize,
    values: usize,
    bytes: usize,
    has_long_number: bool,
}

impl ValueSize {
    /// Measures a value.
    ///
    /// # Errors
    /// Returns a message for the model if the value is nested deeper than [`MAX_DEPTH`].
    pub(super) fn measure(value: &Value) -> Result<Self, &'static str> {
        let mut size = Self::default();
        size.add(value, 0)?;
        Ok(size)
    }

    fn add(&mut self, value: &Value, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("the arguments are nested too deeply");
        }
        self.depth = self.depth.max(depth);
        self.values += 1;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item, depth + 1)),
            Value::Object(map) => map.iter().try_for_each(|(key, item)| {
                self.bytes += key.len();
                self.add(item, depth + 1)
            }),
            Value::String(text) => {
                self.bytes += text.len();
                Ok(())
            }
            Value::Number(number) => {
                self.has_long_number |= is_too_long(number);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether it contains a number over [`MAX_DIGITS`], which must not reach a check that expands numbers.
    pub(super) fn has_long_number(&self) -> bool {
        self.has_long_number
    }

    fn weight(&self) -> f64 {
        (self.values + self.bytes / 64) as f64
    }
}

fn is_too_long(number: &Number) -> bool {
    let text = number.text();
    let exponent = text.split_once(['e', 'E']).map_or("0", |(_, exponent)| exponent);
    let written_out =
        exponent.parse::<i32>().is_ok_and(|exponent| exponent.unsigned_abs() as usize <= MAX_DIGITS);
    text.len() > MAX_DIGITS || !written_out
}

/// Escapes a string of the schema for a message.
fn quote(text: &str) -> String {
    format!("`{}`", truncate(&escape_controls(text)))
}
