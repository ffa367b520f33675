//! The result of mutation testing, as data. The serialized form is a contract: members are added, never changed.

use serde::Serialize;

use super::accepted_mutants::{AcceptanceComments, CommentProblem};
use super::mutant::Mutant;
use super::mutant_runner::MutantVerdict;
use callgate::policy::LoadedBundle;

/// The result of mutation testing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MutationReport {
    /// The number of changes, without equivalent ones.
    pub changes: usize,
    /// How many changes made a case fail.
    pub noticed: usize,
    /// How many changes survived, without the accepted ones.
    pub survived: usize,
    /// How many changes survived and are accepted with a reason.
    pub accepted: usize,
    /// How many changes resulted in rules with an error.
    pub invalid: usize,
    /// The changes that no case noticed, ordered by file and position.
    pub survivors: Vec<Survivor>,
    /// The comments that accept nothing, or are invalid.
    pub unused: Vec<CommentProblem>,
}

/// A change that no case noticed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survivor {
    /// The file's name, as given or found.
    pub file: String,
    /// The line of the change, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The policy; `None` for a definition or a setting of the whole bundle.
    pub policy: Option<String>,
    /// The definition, such as `let amount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The name of the mutation.
    pub mutation: &'static str,
    /// A description of the mutation.
    pub change: &'static str,
    /// The original line.
    pub before: String,
    /// The changed line; `None` if nothing is left of it.
    pub after: Option<String>,
    /// A description of a case that would notice the change.
    pub noticed_by: String,
    /// The reason given by a comment that accepts it.
    pub accepted: Option<String>,
}

impl MutationReport {
    /// Whether no change survives except accepted ones, and no comment is unused or invalid.
    pub fn passed(&self) -> bool {
        self.survived == 0 && self.unused.is_empty()
    }
}

/// Builds the report from changes and verdicts. `tried_all`: whether no policy was left out.
pub(super) fn build_report(
    built: &LoadedBundle,
    changes: &[Mutant],
    verdicts: &[MutantVerdict],
    tried_all: bool,
) -> MutationReport {
    let mut acceptances = AcceptanceComments::of(built);
    let survived = changes.iter().zip(verdicts).filter(|(_, verdict)| **verdict == MutantVerdict::Survived);
    let survivors: Vec<Survivor> = survived
        .filter_map(|(change, _)| build_survivor(built, change, acceptances.reason(change)))
        .collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let accepted = survivors.iter().filter(|survivor| survivor.accepted.is_some()).count();
    MutationReport {
        changes: changes.len() - count(MutantVerdict::Equivalent),
        noticed: count(MutantVerdict::Noticed),
        survived: survivors.len() - accepted,
        accepted,
        invalid: count(MutantVerdict::Invalid),
        survivors,
        unused: acceptances.unused(tried_all),
    }
}

fn build_survivor(built: &LoadedBundle, change: &Mutant, accepted: Option<String>) -> Option<Survivor> {
    let location = built.sources.locate(change.span)?;
    let (before, after) = change.lines_before_and_after(&built.sources)?;
    Some(Survivor {
        file: location.file,
        line: location.line,
        column: location.column,
        policy: change.policy.clone(),
        definition: change.definition.clone(),
        mutation: change.mutation.name,
        change: change.mutation.doc,
        before,
        after,
        noticed_by: change.noticed_by.clone(),
        accepted,
    })
}
