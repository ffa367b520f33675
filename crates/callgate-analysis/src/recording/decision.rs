//! What was decided on a call: an outcome → [`CallDecision`], and which of two is stricter.

use callgate::call::{Effect, Outcome};
use serde::Serialize;

/// The decision on a call, as far as decisions are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CallDecision {
    /// What happened with the call.
    pub effect: Effect,
    /// The deciding policy; `None` for a default.
    pub policy: Option<String>,
    /// The reason code.
    pub code: String,
}

impl CallDecision {
    /// The decision behind an outcome. An outcome that says nothing of the policies counts as a denial.
    pub fn from_outcome(outcome: &Outcome) -> Self {
        Self {
            effect: outcome.outcome.effect().unwrap_or(Effect::Deny),
            policy: outcome.reason.policy.clone(),
            code: outcome.reason.code.clone(),
        }
    }

    /// How a call is treated that was decided as `self` before, and as `after` now. Returns `None` if the effect is the same.
    pub fn direction_to(&self, after: &Self) -> Option<DecisionDirection> {
        if self.effect == after.effect {
            return None;
        }
        Some(match after.effect.compare_strictness(self.effect) {
            std::cmp::Ordering::Less => DecisionDirection::Looser,
            std::cmp::Ordering::Equal => DecisionDirection::Different,
            std::cmp::Ordering::Greater => DecisionDirection::Stricter,
        })
    }
}

/// How a changed decision treats a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionDirection {
    /// Less strictly.
    Looser,
    /// Otherwise, and equally strictly: denied in place of rejected.
    Different,
    /// More strictly.
    Stricter,
}
