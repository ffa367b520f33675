//! Decisions and outcomes for JavaScript: JSON arrays without the names of members that repeat, which take half as long to write and to read.

use callgate::call::{PolicyTrace, SessionState};
use callgate::json::{self, Value};
use callgate::{Decision, Engine, Outcome, ToolCall};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::exchange::OperationResult;
use crate::failure::Failure;
use crate::json_text::append_flagged_json;

/// The bits of remarks, which `policyOf` reads. The policy is in shadow mode.
const SHADOW: u32 = 1;
/// The policy counts as matching only because it was undecided.
const UNDECIDED: u32 = 2;

/// The decision on a call, as `decisionOf` reads it.
pub fn decision_text(engine: &Engine, call: &ToolCall, state: &SessionState) -> napi::Result<String> {
    let mut text = String::with_capacity(256);
    append_flagged_json(&mut text, &FlatDecision(&engine.decide(call, state)))
        .map_err(Failure::invalid_argument)?;
    Ok(text)
}

/// An outcome, as `outcomeOf` reads it.
pub fn outcome_text(mut outcome: Outcome) -> OperationResult {
    let policies = std::mem::take(&mut outcome.policies);
    json::to_string(&FlatOutcome { outcome, policies }).map_err(Failure::invalid_argument)
}

/// Effect, code, message and policy of the reason, limits, and the arguments in an array, which is empty if no policy changed them. Then
/// the policies.
struct FlatDecision<'d, 'c>(&'d Decision<'c>);

impl Serialize for FlatDecision<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(decision) = self;
        let reason = decision.reason();
        let changed: Option<&Value> = decision.has_changed_input().then(|| decision.input());
        let mut items = serializer.serialize_seq(None)?;
        items.serialize_element(decision.effect().name())?;
        items.serialize_element(&reason.code)?;
        items.serialize_element(&reason.message)?;
        items.serialize_element(&reason.policy)?;
        items.serialize_element(&decision.pending().collect::<Vec<_>>())?;
        items.serialize_element(changed.as_slice())?;
        serialize_policies(&mut items, &decision.policies())?;
        items.end()
    }
}

/// The outcome without its policies, and then the policies.
struct FlatOutcome {
    outcome: Outcome,
    policies: Vec<PolicyTrace>,
}

impl Serialize for FlatOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(None)?;
        items.serialize_element(&self.outcome)?;
        serialize_policies(&mut items, &self.policies)?;
        items.end()
    }
}

/// Of each policy its id, kind, phase, verdict, and remarks.
fn serialize_policies<S: SerializeSeq>(items: &mut S, policies: &[PolicyTrace]) -> Result<(), S::Error> {
    for policy in policies {
        items.serialize_element(&policy.id)?;
        items.serialize_element(&policy.kind)?;
        items.serialize_element(&policy.phase)?;
        items.serialize_element(&policy.verdict)?;
        items.serialize_element(&Remarks(policy))?;
    }
    Ok(())
}

/// A number of bits; in an array before the lines that the policy's script printed, if it printed any.
struct Remarks<'t>(&'t PolicyTrace);

impl Serialize for Remarks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(policy) = self;
        let bit = |set, bit| if set { bit } else { 0 };
        let bits = bit(policy.shadow, SHADOW) | bit(policy.undecided, UNDECIDED);
        if policy.printed.is_empty() {
            return bits.serialize(serializer);
        }
        (bits, &policy.printed).serialize(serializer)
    }
}
