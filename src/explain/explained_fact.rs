//! What a `fact` policy did: its change of the session → counts and words, without the values.

use serde::Serialize;

use crate::call::OnFull;
use crate::middleware::{Fact, FactChange};

/// What a `fact` policy did to its fact.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ExplainedFact {
    /// The fact's name.
    pub name: String,
    /// How many values were stored.
    pub stored: usize,
    /// How many values were found for the set.
    pub collected: usize,
    /// How many entries were removed.
    pub removed: usize,
    /// How many entries are not stored, because a key or the value is absent.
    pub absent: usize,
    /// How many entries have a key or a value that cannot be read.
    pub unreadable: usize,
    /// What happened because the set has no room for all values: `undecided` or `drop_oldest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<&'static str>,
}

impl ExplainedFact {
    pub(super) fn new(fact: &Fact, change: FactChange) -> Self {
        let FactChange { stored, collected, removed, absent, unreadable, lacks_room } = change;
        let full = fact.set_bound().filter(|_| lacks_room).map(|bound| match bound.on_full {
            OnFull::Undecided => "undecided",
            OnFull::DropOldest => "drop_oldest",
        });
        Self { name: fact.name.clone(), stored, collected, removed, absent, unreadable, full }
    }

    /// What the policy did, as a predicate.
    pub(super) fn describe(&self) -> String {
        let name = &self.name;
        let count = |number: usize, noun: &str| match number {
            1 => format!("1 {noun}"),
            number => format!("{number} {noun}s"),
        };
        if self.unreadable > 0 {
            return format!("makes the fact `{name}` unknown: a key or a value of it cannot be read");
        }
        let full = match self.full {
            None => "",
            Some("drop_oldest") => "; it is full, so the oldest are dropped",
            Some(_) => "; it is full, so the fact is unknown",
        };
        match (self.stored, self.collected, self.removed) {
            (0, 0, 0) if self.absent > 0 => {
                format!("stores nothing in the fact `{name}`: a key or the value is absent")
            }
            (0, 0, 0) => format!("stores nothing in the fact `{name}`: there are no elements"),
            (0, 0, 1) => format!("removes the fact `{name}`, or an entry of it"),
            (0, 0, removed) => format!("removes {} of the fact `{name}`", count(removed, "value")),
            (0, collected, _) => format!("adds {} to the set `{name}`{full}", count(collected, "value")),
            (1, _, _) => format!("stores the fact `{name}`"),
            (stored, _, _) => format!("stores {} of the fact `{name}`", count(stored, "value")),
        }
    }
}
