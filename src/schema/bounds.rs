//! How much work a schema can ask for, known before it is compiled: how many of its parts can meet on one value, and how
//! deep they call each other. A few lines of `allOf` and `$ref` can otherwise keep a validator busy for years.

use super::SchemaError;
use crate::json::{MAX_DEPTH, Number, Value, deeper_than};
use crate::meter;
use crate::text::{cut, inert};

mod graph;

use graph::Graph;

/// Values (of any kind, at any depth) that one schema may hold.
const MAX_VALUES: usize = 20_000;

/// Digits of a number, and its largest exponent. Some checks write a number out.
const MAX_DIGITS: usize = 1_000;

/// Parts of a schema that may be applied to one value.
const MAX_APPLICATIONS: f64 = 100_000.0;

/// Parts of a schema that may be under way inside each other during one check: each takes stack.
const MAX_CHAIN: usize = 800;

/// Applications (per value, times the values) that are spent on a verdict.
const JUDGE_EFFORT: f64 = 10_000_000.0;

/// Applications that are spent on saying why; dearer, since errors copy what they are about.
const EXPLAIN_EFFORT: f64 = 500_000.0;

/// How many times dearer an application is whose errors are told.
const EXPLAINING: u64 = 10;

/// The most that can happen at or above one depth of an instance.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    applications: f64,
    chain: usize,
}

/// What checking against one schema costs, by the depth of the instance.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    levels: Vec<Level>,
}

impl Bounds {
    /// Reads a schema's parts and references. Errors: references out of the schema or in circles, embedded `$id`s, and
    /// anything past the limits.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        if deeper_than(schema, MAX_DEPTH) {
            return Err(SchemaError::at("", format!("the schema is nested deeper than {MAX_DEPTH} levels")));
        }
        let size = Size::of(schema)
            .map_err(|message| SchemaError::at("", message.replace("arguments", "schema")))?;
        if size.has_long_number {
            return Err(SchemaError::at("", "the schema holds a number with too many digits"));
        }
        if size.values > MAX_VALUES {
            return Err(SchemaError::at("", format!("the schema holds more than {MAX_VALUES} values")));
        }
        let levels = Graph::read(schema)?.levels()?;
        if levels.first().is_some_and(|level| level.applications > MAX_APPLICATIONS) {
            let message =
                "the schema's `$ref`s and `allOf`s multiply past what can be checked in reasonable time";
            return Err(SchemaError::at("", message));
        }
        Ok(Self { levels })
    }

    fn level(&self, depth: usize) -> Level {
        self.levels.get(depth).or(self.levels.last()).copied().unwrap_or_default()
    }

    /// Whether an instance of this size gets a verdict in reasonable time and stack, and with the work that is left for the call.
    pub(super) fn can_judge(&self, size: &Size) -> bool {
        let level = self.level(size.depth);
        let effort = level.applications * size.weight();
        level.chain <= MAX_CHAIN && effort <= JUDGE_EFFORT && meter::spend(effort as u64).is_ok()
    }

    /// Whether the errors of an instance of this size can be told in reasonable time and memory.
    pub(super) fn can_explain(&self, size: &Size) -> bool {
        let effort = self.level(size.depth).applications * size.weight();
        effort <= EXPLAIN_EFFORT && meter::spend(effort as u64 * EXPLAINING).is_ok()
    }
}

/// The size of a JSON value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    depth: usize,
    values: usize,
    bytes: usize,
    has_long_number: bool,
}

impl Size {
    /// Measures a value. Errors, in words for a model: nesting past [`MAX_DEPTH`].
    pub(super) fn of(value: &Value) -> Result<Self, &'static str> {
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
                self.has_long_number |= too_long(number);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether it holds a number past [`MAX_DIGITS`], which a check that writes numbers out must not be given.
    pub(super) fn has_long_number(&self) -> bool {
        self.has_long_number
    }

    fn weight(&self) -> f64 {
        (self.values + self.bytes / 64) as f64
    }
}

fn too_long(number: &Number) -> bool {
    let text = number.text();
    let exponent = text.split_once(['e', 'E']).map_or("0", |(_, exponent)| exponent);
    let written_out =
        exponent.parse::<i32>().is_ok_and(|exponent| exponent.unsigned_abs() as usize <= MAX_DIGITS);
    text.len() > MAX_DIGITS || !written_out
}

/// Text of a schema as part of a message.
fn quoted(text: &str) -> String {
    format!("`{}`", cut(&inert(text)))
}
