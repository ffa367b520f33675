//! What one evaluation may spend. Every limit is always on, and none can be caught by a script.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The limits of one evaluation.
#[derive(Debug)]
pub struct Limits {
    /// What is limited, in a sentence: `the script`.
    pub(super) who: &'static str,
    /// Steps it may take.
    pub steps: u64,
    /// Wall time it may take.
    pub time: Duration,
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

/// How often the clock is looked at.
const STEPS_BETWEEN_LOOKS: u64 = 256;

/// What an evaluation has spent.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) limits: &'static Limits,
    deadline: Instant,
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
        Self {
            limits,
            deadline: Instant::now() + limits.time,
            steps: Cell::new(0),
            texts: Cell::new(0),
            values: Cell::new(0),
            output: Cell::new(0),
        }
    }

    /// Counts a step.
    pub(super) fn step(&self) -> Result<(), Fault> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        let late = steps.is_multiple_of(STEPS_BETWEEN_LOOKS) && Instant::now() > self.deadline;
        if late || steps > self.limits.steps {
            return Err(Fault::Limit(format!("{} takes too many steps or too long", self.limits.who)));
        }
        Ok(())
    }

    /// Counts a text that is made.
    pub(super) fn text(&self, bytes: usize) -> Result<(), Fault> {
        if bytes > self.limits.text {
            let Limits { who, text, .. } = self.limits;
            return Err(Fault::Limit(format!("{who} makes a string of more than {text} bytes")));
        }
        // Long texts take time of their own, so the clock is looked at for them as well.
        if bytes > 4 << 10 && Instant::now() > self.deadline {
            return Err(Fault::Limit(format!("{} takes too many steps or too long", self.limits.who)));
        }
        count(&self.texts, bytes, self.limits.texts).map_err(|most| {
            Fault::Limit(format!("{} makes more than {most} bytes of strings", self.limits.who))
        })
    }

    /// Counts elements or members that are made.
    pub(super) fn values(&self, number: usize) -> Result<(), Fault> {
        count(&self.values, number, self.limits.values)
            .map_err(|most| Fault::Limit(format!("{} makes more than {most} elements", self.limits.who)))
    }

    /// Counts what is handed out.
    pub(super) fn handed_out(&self, size: usize) -> Result<(), Fault> {
        count(&self.output, size, self.limits.output)
            .map_err(|most| Fault::Limit(format!("{} hands out more than {most} bytes", self.limits.who)))
    }
}

fn count(spent: &Cell<usize>, more: usize, most: usize) -> Result<(), usize> {
    spent.set(spent.get().saturating_add(more));
    if spent.get() > most { Err(most) } else { Ok(()) }
}
