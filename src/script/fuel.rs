//! Work limits of one evaluation (fuel). Every limit is always on, and no script can catch an exceeded limit.

use std::cell::Cell;

use crate::work_limit;

/// The maximum length of a script, in bytes.
pub const MAX_SCRIPT: usize = 64 << 10;

/// The limits of one evaluation.
#[derive(Debug)]
pub struct ScriptLimits {
    /// The subject of error messages: `the script`.
    pub(super) subject: &'static str,
    /// Steps, counted over all replays of a script.
    pub steps: u64,
    /// Bytes of one new string.
    pub string_bytes: usize,
    /// Bytes of all new strings.
    pub total_string_bytes: usize,
    /// New elements and members.
    pub values: usize,
    /// Bytes of exported values: arguments of effects, and the output, unless they are passed on unchanged. Each value
    /// counts as 64 bytes beside its text.
    pub output_bytes: usize,
    /// Nesting depth of functions and expressions.
    pub nesting: usize,
    /// Nesting depth of calls of the script's own functions.
    pub call_depth: usize,
}

/// The approximate size of a JSON value without its text, in bytes.
pub(super) const VALUE_BYTES: usize = 64;

/// Work units of a step.
const STEP_UNITS: u64 = 3;
/// Scanned bytes that cost one unit, and one step.
const SCANNED_PER_UNIT: u64 = 8;
const SCANNED_PER_STEP: u64 = 256;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The nesting depth of all evaluations that run on this thread, one inside the other.
pub(super) fn evaluation_depth() -> usize {
    DEPTH.get()
}

/// Counts a level of nesting while it exists.
pub(super) struct DepthGuard;

impl DepthGuard {
    pub(super) fn enter() -> Self {
        DEPTH.set(DEPTH.get().saturating_add(1));
        Self
    }
}

impl Drop for DepthGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// The work that an evaluation has spent.
#[derive(Debug)]
pub(super) struct Fuel {
    pub(super) limits: &'static ScriptLimits,
    steps: Cell<u64>,
    string_bytes: Cell<usize>,
    values: Cell<usize>,
    output: Cell<usize>,
}

/// The error of an operator or a function.
#[derive(Debug)]
pub(super) enum EvalError {
    /// Invalid arguments; a script can catch this.
    Error(String),
    /// Something that is read is missing; `??` and `exists` turn this into a value, and a script can catch it.
    Absent(String),
    /// An exceeded limit, which ends the evaluation.
    LimitExceeded(String),
}

impl EvalError {
    /// The error of a named value that has this error.
    pub(super) fn in_named(self, name: &str) -> Self {
        match self {
            Self::Absent(why) => Self::Absent(format!("`{name}` is absent: {why}")),
            Self::Error(why) => Self::Error(format!("`{name}` is undecided: {why}")),
            Self::LimitExceeded(why) => Self::LimitExceeded(format!("`{name}` is undecided: {why}")),
        }
    }
}

impl From<String> for EvalError {
    fn from(message: String) -> Self {
        Self::Error(message)
    }
}

impl From<&str> for EvalError {
    fn from(message: &str) -> Self {
        Self::Error(message.to_owned())
    }
}

impl Fuel {
    pub(super) fn new(limits: &'static ScriptLimits) -> Self {
        Self::with_steps_taken(limits, 0)
    }

    /// Starts with the number of steps that earlier replays took.
    pub(super) fn with_steps_taken(limits: &'static ScriptLimits, steps: u64) -> Self {
        Self {
            limits,
            steps: Cell::new(steps),
            string_bytes: Cell::new(0),
            values: Cell::new(0),
            output: Cell::new(0),
        }
    }

    /// The number of steps taken.
    pub(super) fn steps_taken(&self) -> u64 {
        self.steps.get()
    }

    /// Counts a step.
    pub(super) fn spend_step(&self) -> Result<(), EvalError> {
        work_limit::spend(STEP_UNITS).map_err(work_exceeded)?;
        self.spend_steps(1)
    }

    fn spend_steps(&self, more: u64) -> Result<(), EvalError> {
        let steps = self.steps.get().saturating_add(more);
        self.steps.set(steps);
        if steps > self.limits.steps {
            return Err(EvalError::LimitExceeded(format!("{} takes too many steps", self.limits.subject)));
        }
        Ok(())
    }

    /// Counts a scan of a string: one step per [`SCANNED_PER_STEP`] bytes.
    pub(super) fn spend_scan(&self, bytes: usize) -> Result<(), EvalError> {
        work_limit::spend_for(bytes, SCANNED_PER_UNIT).map_err(work_exceeded)?;
        self.spend_steps(bytes as u64 / SCANNED_PER_STEP)
    }

    /// Counts a new string.
    pub(super) fn spend_string(&self, bytes: usize) -> Result<(), EvalError> {
        self.spend_scan(bytes)?;
        if bytes > self.limits.string_bytes {
            let ScriptLimits { subject, string_bytes: text, .. } = self.limits;
            return Err(EvalError::LimitExceeded(format!(
                "{subject} creates a string of more than {text} bytes"
            )));
        }
        spend(&self.string_bytes, bytes, self.limits.total_string_bytes).map_err(|most| {
            EvalError::LimitExceeded(format!(
                "{} creates more than {most} bytes of strings",
                self.limits.subject
            ))
        })
    }

    /// Counts new elements or members.
    pub(super) fn spend_values(&self, number: usize) -> Result<(), EvalError> {
        work_limit::spend(number as u64).map_err(work_exceeded)?;
        spend(&self.values, number, self.limits.values).map_err(|most| {
            EvalError::LimitExceeded(format!("{} creates more than {most} elements", self.limits.subject))
        })
    }

    /// Counts exported bytes.
    pub(super) fn spend_output(&self, size: usize) -> Result<(), EvalError> {
        spend(&self.output, size, self.limits.output_bytes).map_err(|most| {
            EvalError::LimitExceeded(format!("{} outputs more than {most} bytes", self.limits.subject))
        })
    }
}

fn work_exceeded(why: work_limit::WorkLimitError) -> EvalError {
    EvalError::LimitExceeded(why.to_string())
}

fn spend(spent: &Cell<usize>, more: usize, most: usize) -> Result<(), usize> {
    spent.set(spent.get().saturating_add(more));
    if spent.get() > most { Err(most) } else { Ok(()) }
}
