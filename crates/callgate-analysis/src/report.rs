//! The result of a comparison of two bundles, as data. The serialized form is a contract: members are added, never changed.

use callgate::diagnostic::Location;
use callgate::json::Value;
use serde::Serialize;

use crate::evaluator::DecisionSummary;

/// The version of the JSON document.
pub const REPORT_VERSION: u32 = 1;

/// What a change of rules means, the riskiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Some call is treated less strictly, and no call more strictly, as far as known.
    Looser,
    /// Some calls are treated less strictly, others more strictly.
    Mixed,
    /// It is not certain that every call is treated at least as strictly as before, and no example was found.
    MayBeLooser,
    /// No call is treated less strictly.
    Stricter,
    /// Every call is treated as before.
    Equivalent,
}

impl Direction {
    /// All directions, the riskiest first.
    pub const ALL: [Self; 5] =
        [Self::Looser, Self::Mixed, Self::MayBeLooser, Self::Stricter, Self::Equivalent];

    /// The phrase in reports.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Looser => "looser",
            Self::Mixed => "looser and stricter",
            Self::MayBeLooser => "may be looser",
            Self::Stricter => "stricter",
            Self::Equivalent => "equivalent",
        }
    }

    /// Whether calls are treated less strictly, or may be.
    pub fn allows_more(self) -> bool {
        matches!(self, Self::Looser | Self::Mixed | Self::MayBeLooser)
    }
}

/// How one call is treated after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallDirection {
    /// Less strictly.
    Looser,
    /// More strictly.
    Stricter,
    /// Differently, and neither more nor less strictly: for example with other arguments.
    Different,
}

/// What a witness shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WitnessBasis {
    /// The two bundles decide the call differently.
    Decision,
    /// The policy alone decides the call differently; because of other policies, the bundles decide it alike.
    PolicyAlone,
    /// The policy applies to the call in one of the versions only; the decision on the call is the same.
    Application,
}

/// The state of a policy in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyState {
    /// The bundle does not have it.
    Missing,
    /// `mode: off`
    Off,
    /// `mode: shadow`
    Shadow,
    /// It takes effect.
    Enforced,
}

/// An example call that is treated differently, confirmed with both bundles.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Witness {
    /// How the call is treated after the change.
    pub direction: CallDirection,
    /// What differs.
    pub basis: WitnessBasis,
    /// The call, in the form of a recorded call. Of a recording only the tool and the server.
    pub call: Value,
    /// The state of the session, if it is not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Value>,
    /// The time of the decision, if it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// Where the call comes from, `FILE:LINE`; `None` for a generated call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The decision of the old bundle.
    pub before: DecisionSummary,
    /// The decision of the new bundle.
    pub after: DecisionSummary,
}

/// A reason why a change may allow more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChangeReason {
    /// The change, in one line.
    pub change: String,
    /// What may happen now and could not happen before.
    pub consequence: &'static str,
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeSubject {
    /// A policy.
    Policy {
        /// The id.
        id: String,
        /// The kind in the new bundle, or in the old one if it was removed.
        kind: &'static str,
        /// The state in the old bundle.
        was: PolicyState,
        /// The state in the new bundle.
        is: PolicyState,
        /// What differs: keys such as `match` or `approval.quorum`, and definitions such as `let amount`.
        changed: Vec<String>,
        /// The location in the old bundle.
        old: Option<Location>,
        /// The location in the new bundle.
        new: Option<Location>,
    },
    /// A setting of the whole bundle.
    Setting {
        /// The key, such as `defaults.unmatched`.
        key: &'static str,
        /// The old value.
        was: String,
        /// The new value.
        is: String,
    },
    /// Several changes together.
    Bundle,
}

/// A change with its meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// What was changed.
    pub subject: ChangeSubject,
    /// What it means for calls.
    pub direction: Direction,
    /// Whether the direction is proven. If not, it is what example calls show.
    pub proven: bool,
    /// Why it may allow more; empty if it is certain that it does not.
    pub reasons: Vec<ChangeReason>,
    /// Example calls, at most one for each direction, the looser one first.
    pub witnesses: Vec<Witness>,
    /// The number of calls that were tried for this change.
    pub tried: usize,
}

/// The comparison of two bundles.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BundleComparison {
    /// The revision of the old bundle.
    pub old_revision: String,
    /// The revision of the new bundle.
    pub new_revision: String,
    /// The changes, the riskiest first, and then in the order of the new bundle.
    pub changes: Vec<Change>,
    /// The number of policies that are the same in both.
    pub unchanged: usize,
}

impl BundleComparison {
    /// Whether a change allows more, or may.
    pub fn allows_more(&self) -> bool {
        self.changes.iter().any(|change| change.direction.allows_more())
    }

    /// Whether a change is not equivalent.
    pub fn changes_meaning(&self) -> bool {
        self.changes.iter().any(|change| change.direction != Direction::Equivalent)
    }

    /// Shows files under another name: those whose names begin with `prefix` begin with `shown` instead.
    #[doc(hidden)]
    pub fn rename_files(&mut self, prefix: &str, shown: &str) {
        let rename = |name: &mut String| {
            if let Some(rest) = name.strip_prefix(prefix) {
                *name = format!("{shown}{rest}");
            }
        };
        for change in &mut self.changes {
            if let ChangeSubject::Policy { old, new, .. } = &mut change.subject {
                [old, new].into_iter().flatten().for_each(|location| rename(&mut location.file));
            }
            change.witnesses.iter_mut().filter_map(|witness| witness.source.as_mut()).for_each(rename);
        }
    }

    /// The number of changes with a direction.
    pub fn count(&self, direction: Direction) -> usize {
        self.changes.iter().filter(|change| change.direction == direction).count()
    }
}
