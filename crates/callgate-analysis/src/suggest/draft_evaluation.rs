//! Evaluates a draft on recordings: decisions of a replay under it → what it permits of the calls that ran.

use std::collections::{BTreeMap, BTreeSet};

use callgate::call::Effect;

use super::usage_profile::ToolName;
use crate::recording::{CallDecision, CallOrigin, CallStage, RecordedCall, RecordedDecision};

/// The most causes that are listed; further ones are counted together.
const MAX_CAUSES: usize = 200;
/// The most examples of a cause.
const MAX_EXAMPLES: usize = 3;

/// What a draft decides on calls that ran, and on those that did not.
#[derive(Clone, Debug, Default)]
pub struct DraftEvaluation {
    /// Calls that ran when they were recorded.
    pub ran: u64,
    /// Those that the draft permits, after an approval if they had one.
    pub permitted: u64,
    /// Those that require an approval which they did not have.
    pub need_approval: u64,
    /// Sessions with a call that ran.
    pub sessions: BTreeSet<u32>,
    /// Those in which the draft stops a call.
    pub stopped_sessions: BTreeSet<u32>,
    /// The calls that it stops, by tool and code.
    pub stopped: BTreeMap<(ToolName, String), StoppedCalls>,
    /// Calls that were denied when they were recorded, and that it permits.
    pub newly_permitted: BTreeMap<ToolName, StoppedCalls>,
}

/// Calls with the same cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedCalls {
    /// Their number.
    pub calls: u64,
    /// The first few.
    pub examples: Vec<CallOrigin>,
}

impl DraftEvaluation {
    /// Adds the decision of the draft on a call of the session with this number.
    pub fn add(&mut self, call: &RecordedCall, session: u32, decision: &CallDecision) {
        let name = ToolName { server: call.record.call.server.clone(), tool: call.record.call.tool.clone() };
        if !call.has_run() {
            if decision.effect == Effect::Run && was_denied(call) {
                add_to(&mut self.newly_permitted, name, &call.origin);
            }
            return;
        }
        let was_approved = matches!(call.decision, RecordedDecision::Known { is_approved: true, .. });
        self.ran += 1;
        self.sessions.insert(session);
        match decision.effect {
            Effect::Run => self.permitted += 1,
            Effect::Suspend if was_approved || call.stage == CallStage::Resumed => self.permitted += 1,
            effect => {
                self.need_approval += u64::from(effect == Effect::Suspend);
                self.stopped_sessions.insert(session);
                add_to(&mut self.stopped, (name, decision.code.clone()), &call.origin);
            }
        }
    }

    /// The number of calls that ran and that the draft stops.
    pub fn stopped_calls(&self) -> u64 {
        self.ran - self.permitted
    }
}

fn was_denied(call: &RecordedCall) -> bool {
    matches!(&call.decision, RecordedDecision::Known { decision, .. }
        if matches!(decision.effect, Effect::Deny | Effect::Halt | Effect::Invalid))
}

fn add_to<K: Ord>(causes: &mut BTreeMap<K, StoppedCalls>, key: K, origin: &CallOrigin) {
    if causes.len() >= MAX_CAUSES && !causes.contains_key(&key) {
        return;
    }
    let cause = causes.entry(key).or_default();
    cause.calls += 1;
    if cause.examples.len() < MAX_EXAMPLES {
        cause.examples.push(origin.clone());
    }
}
