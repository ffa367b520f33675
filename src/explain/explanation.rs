//! What is told of one call.

use serde::Serialize;

use super::step::Step;
use crate::call::{OutcomeKind, Reason};
use crate::diagnostic::Location;
use crate::json::Value;

/// The version of the JSON form. A new member is no new version; a member that goes, or means another thing, is.
pub const VERSION: u32 = 1;

/// One call's way through the chain.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The version of this form: 1.
    pub version: u32,
    /// The call as it was asked for.
    pub call: ExplainedCall,
    /// What was decided: `run`, `answer`, `suspend`, `invalid`, `deny` or `halt`.
    pub decision: &'static str,
    /// What became of it; nothing where it was decided only.
    pub outcome: Option<OutcomeKind>,
    /// Why.
    pub reason: Reason,
    /// The same in the words of the rules.
    pub why: String,
    /// Where the policy stands that gave the reason.
    pub at: Option<Location>,
    /// The final arguments, redacted.
    pub input: Value,
    /// Every policy in the order of phases and of acting; one that acts in two phases twice.
    pub steps: Vec<Step>,
    /// The layers whose `defaults.unmatched` stops the call, or asks a person, because nothing in them permits it.
    pub unmatched: Vec<Unlifted>,
    /// What became of calls that scripts made of this one, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<Again>,
    /// How often the tool was called, where that was more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The ids of the policies that are off.
    pub off: Vec<String>,
    /// The digest of the rules that decided.
    pub revision: String,
}

/// A call as it was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedCall {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// Its server, where it has one.
    pub server: Option<String>,
    /// Its session, where that has a name.
    pub session: Option<String>,
    /// Its arguments, redacted.
    pub input: Value,
}

/// A layer in which nothing permits the call.
#[derive(Clone, Debug, Serialize)]
pub struct Unlifted {
    /// The layer: 0 is the bundle, then the prompt's and the call's.
    pub layer: u32,
    /// What `defaults.unmatched` says: `deny` or `approval`.
    pub says: &'static str,
}

/// A call that a script, or the host's own code, made of one under way. It was decided anew.
#[derive(Clone, Debug, Serialize)]
pub struct Again {
    /// Its final arguments, redacted.
    pub input: Value,
    /// What was decided.
    pub decision: &'static str,
    /// Why.
    pub reason: Reason,
    /// The policies that had a say.
    pub steps: Vec<Step>,
}

impl Explanation {
    /// The step that gave the reason, also where it is one of a call that a script made of this one.
    pub fn decisive(&self) -> Option<&Step> {
        let again = self.again.iter().flat_map(|again| &again.steps);
        self.steps.iter().chain(again).find(|step| step.decisive)
    }

    /// The steps of a policy.
    pub fn steps_of<'e>(&'e self, policy: &'e str) -> impl Iterator<Item = &'e Step> {
        self.steps.iter().filter(move |step| step.policy == policy)
    }

    /// The ids of all policies that it tells of, those that are off included.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.policy.as_str()).chain(self.off.iter().map(String::as_str))
    }
}
