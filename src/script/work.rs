//! What one evaluation may spend. Every limit is always on, and none can be caught by a script.

use std::cell::Cell;

use crate::meter;

/// The limits of one evaluation.
#[derive(Debug)]
pub struct Limits {
    /// What is limited, in a sentence: `the script`.
    pub(super) who: &'static str,
    /// Steps it may take, a script with all its replays.
    pub steps: u64,
    /// Bytes of one string that it makes.
    pub text: usize,
    /// Bytes of all strings that it makes.
    pub texts: usize,
    /// Elements and members that it makes.
    pub values: usize,
    /// Bytes that it hands out: arguments of effects, and its output, where they are not passed on as they came. Each value
    /// counts as 64 of them beside its text.
    pub output: usize,
    /// Functions and expressions inside one another.
    pub depth: usize,
    /// Functions of the script's own inside one another.
    pub calls: usize,
}

/// What a JSON value takes beside its text, about, in bytes.
pub(super) const VALUE_BYTES: usize = 64;

/// Work units of a step.
const STEP_UNITS: u64 = 3;
/// Bytes that are looked over for a unit, and for a step.
const SCANNED_PER_UNIT: u64 = 8;
const SCANNED_PER_STEP: u64 = 256;

/// What an evaluation has spent.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) limits: &'static Limits,
    steps: Cell<u64>,
    texts: Cell<usize>,
    values: Cell<usize>,
    output: Cell<usize>,
}

/// Why an operator or a function gives no value.
#[derive(Debug)]
pub(super) enum Fault {
    /// What it was given is wrong; a script may catch this.
    Wrong(String),
    /// A limit, which ends the evaluation.
    Limit(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Wrong(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Self::Wrong(message.to_owned())
    }
}

impl Work {
    pub(super) fn new(limits: &'static Limits) -> Self {
        Self::after(limits, 0)
    }

    /// Of an evaluation that took so many steps before.
    pub(super) fn after(limits: &'static Limits, steps: u64) -> Self {
        Self {
            limits,
            steps: Cell::new(steps),
            texts: Cell::new(0),
            values: Cell::new(0),
            output: Cell::new(0),
        }
    }

    /// How many steps were taken.
    pub(super) fn steps_taken(&self) -> u64 {
        self.steps.get()
    }

    /// Counts a step.
    pub(super) fn step(&self) -> Result<(), Fault> {
        meter::spend(STEP_UNITS).map_err(exceeded)?;
        self.steps(1)
    }

    fn steps(&self, more: u64) -> Result<(), Fault> {
        let steps = self.steps.get().saturating_add(more);
        self.steps.set(steps);
        if steps > self.limits.steps {
            return Err(Fault::Limit(format!("{} takes too many steps", self.limits.who)));
        }
        Ok(())
    }

    /// Counts a look over a text, which is a step for so many bytes.
    pub(super) fn scan(&self, bytes: usize) -> Result<(), Fault> {
        meter::spend_on(bytes, SCANNED_PER_UNIT).map_err(exceeded)?;
        self.steps(bytes as u64 / SCANNED_PER_STEP)
    }

    /// Counts a text that is made.
    pub(super) fn text(&self, bytes: usize) -> Result<(), Fault> {
        self.scan(bytes)?;
        if bytes > self.limits.text {
            let Limits { who, text, .. } = self.limits;
            return Err(Fault::Limit(format!("{who} makes a string of more than {text} bytes")));
        }
        count(&self.texts, bytes, self.limits.texts).map_err(|most| {
            Fault::Limit(format!("{} makes more than {most} bytes of strings", self.limits.who))
        })
    }

    /// Counts elements or members that are made.
    pub(super) fn values(&self, number: usize) -> Result<(), Fault> {
        meter::spend(number as u64).map_err(exceeded)?;
        count(&self.values, number, self.limits.values)
            .map_err(|most| Fault::Limit(format!("{} makes more than {most} elements", self.limits.who)))
    }

    /// Counts what is handed out.
    pub(super) fn handed_out(&self, size: usize) -> Result<(), Fault> {
        count(&self.output, size, self.limits.output)
            .map_err(|most| Fault::Limit(format!("{} hands out more than {most} bytes", self.limits.who)))
    }
}

fn exceeded(why: meter::WorkExceeded) -> Fault {
    Fault::Limit(why.to_string())
}

fn count(spent: &Cell<usize>, more: usize, most: usize) -> Result<(), usize> {
    spent.set(spent.get().saturating_add(more));
    if spent.get() > most { Err(most) } else { Ok(()) }
}
