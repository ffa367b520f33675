//! What came of all changes, as data. The serialized form is a contract: members are added, never changed.

use serde::Serialize;

use super::accepted::Acceptances;
use super::change::Change;
use super::trial::Verdict;
use crate::diagnostic::Span;
use crate::policy::Built;

/// What came of all changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mutated {
    /// How many changes were made, without those that say the same.
    pub changes: usize,
    /// How many of them made a case fail.
    pub noticed: usize,
    /// How many no case noticed, without those that are accepted.
    pub survived: usize,
    /// How many no case noticed that are accepted with a reason.
    pub accepted: usize,
    /// How many made rules that hold an error.
    pub invalid: usize,
    /// The changes that no case noticed, in the order of files and places.
    pub survivors: Vec<Survivor>,
    /// The comments that accept nothing, or not rightly.
    pub unused: Vec<Unused>,
}

/// A change that no case noticed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survivor {
    /// The file, as it was given or found.
    pub file: String,
    /// The line of the change, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The policy; nothing for what holds for the whole bundle.
    pub policy: Option<String>,
    /// The name of the kind of change.
    pub mutation: &'static str,
    /// What that does, in words.
    pub change: &'static str,
    /// The line as it is.
    pub before: String,
    /// The line as it was changed to; nothing where nothing is left of it.
    pub after: Option<String>,
    /// Which case would notice the change.
    pub noticed_by: String,
    /// The reason for which a comment accepts it.
    pub accepted: Option<String>,
}

/// A comment that accepts nothing, or not rightly.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unused {
    /// The file, as it was given or found.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong with it.
    pub message: String,
}

impl Mutated {
    /// Whether tests notice all changes but those that are accepted, and all that is accepted needs to be.
    pub fn passed(&self) -> bool {
        self.survived == 0 && self.unused.is_empty()
    }
}

impl Unused {
    pub(super) fn at(built: &Built, span: Span, message: String) -> Option<Self> {
        let place = built.sources.locate(span)?;
        Some(Self { file: place.file, line: place.line, column: place.column, message })
    }
}

/// `tried_all`: whether no policy was left out.
pub(super) fn report(built: &Built, changes: &[Change], verdicts: &[Verdict], tried_all: bool) -> Mutated {
    let mut acceptances = Acceptances::of(built);
    let survived = changes.iter().zip(verdicts).filter(|(_, verdict)| **verdict == Verdict::Survived);
    let survivors: Vec<Survivor> =
        survived.filter_map(|(change, _)| survivor(built, change, acceptances.reason(change))).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let accepted = survivors.iter().filter(|survivor| survivor.accepted.is_some()).count();
    Mutated {
        changes: changes.len() - count(Verdict::Same),
        noticed: count(Verdict::Noticed),
        survived: survivors.len() - accepted,
        accepted,
        invalid: count(Verdict::Invalid),
        survivors,
        unused: acceptances.unused(tried_all),
    }
}

fn survivor(built: &Built, change: &Change, accepted: Option<String>) -> Option<Survivor> {
    let place = built.sources.locate(change.place)?;
    let (before, after) = change.lines(&built.sources)?;
    Some(Survivor {
        file: place.file,
        line: place.line,
        column: place.column,
        policy: change.policy.clone(),
        mutation: change.mutation.name,
        change: change.mutation.doc,
        before,
        after,
        noticed_by: change.noticed_by.clone(),
        accepted,
    })
}
