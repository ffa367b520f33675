//! The explanation of one call, as data.

use serde::Serialize;

use super::step::PolicyStep;
use crate::call::{OutcomeKind, Reason};
use crate::diagnostic::Location;
use crate::json::Value;

/// The version of the JSON form. It changes if a member is removed or changes its meaning, but not if one is added.
pub const VERSION: u32 = 1;

/// The explanation of one call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The version of this form: 1.
    pub version: u32,
    /// The call as requested.
    pub call: ExplainedCall,
    /// The decision: `run`, `answer`, `suspend`, `invalid`, `deny` or `halt`.
    pub decision: &'static str,
    /// The outcome; `None` if the call was only decided.
    pub outcome: Option<OutcomeKind>,
    /// The reason of the outcome, or of the decision.
    pub reason: Reason,
    /// The reason with the decisive policy and its conditions.
    pub why: String,
    /// The location of the policy that gave the reason.
    pub at: Option<Location>,
    /// The final arguments, redacted.
    pub input: Value,
    /// Every policy, ordered by phase and by order of evaluation; a policy of two phases occurs twice.
    pub steps: Vec<PolicyStep>,
    /// The layers whose `defaults.unmatched` stops the call, or requires approval, because no policy in them permits it.
    pub unmatched: Vec<UnmatchedLayer>,
    /// The nested calls that scripts made for this one, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<NestedCall>,
    /// How often the tool was called, if more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The ids of the policies that are off.
    pub off: Vec<String>,
    /// The digest of the rules that decided.
    pub revision: String,
}

/// A call as requested.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ExplainedCall {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// Its server, if it has one.
    pub server: Option<String>,
    /// The name of its session, if it has one.
    pub session: Option<String>,
    /// Its arguments, redacted.
    pub input: Value,
}

/// A layer in which no policy permits the call.
#[derive(Clone, Debug, Serialize)]
pub struct UnmatchedLayer {
    /// The layer: 0 is the bundle, then the prompt's and the call's.
    pub layer: u32,
    /// The value of `defaults.unmatched`: `deny` or `approval`.
    pub says: &'static str,
}

/// A nested call, made by a script or by host code for a running call. It has a decision of its own.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NestedCall {
    /// Its final arguments, redacted.
    pub input: Value,
    /// The decision.
    pub decision: &'static str,
    /// The reason of the decision.
    pub reason: Reason,
    /// The policies with a verdict, and the undecided ones.
    pub steps: Vec<PolicyStep>,
}

impl Explanation {
    /// The step that gave the reason, which may be one of a nested call.
    pub fn decisive(&self) -> Option<&PolicyStep> {
        let again = self.again.iter().flat_map(|again| &again.steps);
        self.steps.iter().chain(again).find(|step| step.decisive)
    }

    /// The steps of a policy.
    pub fn steps_of<'e>(&'e self, policy: &'e str) -> impl Iterator<Item = &'e PolicyStep> {
        self.steps.iter().filter(move |step| step.policy == policy)
    }

    /// The ids of all policies in the explanation, including those that are off.
    pub fn policy_ids(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.policy.as_str()).chain(self.off.iter().map(String::as_str))
    }
}
