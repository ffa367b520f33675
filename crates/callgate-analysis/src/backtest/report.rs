//! Counts decisions that differ: recorded calls + their decisions before and now → [`BacktestReport`].

use std::collections::{BTreeMap, HashSet};

use callgate::json::Value;
use serde::Serialize;

use crate::recording::{CallDecision, CallStage, DecisionDirection, RecordedCall, RecordedDecision};

/// The version of the JSON report. It changes when a member is removed or changes its meaning.
pub const BACKTEST_REPORT_VERSION: u32 = 1;

/// The most causes that are reported; changes beyond them are only counted.
const MAX_CAUSES: usize = 1_000;
/// The most principals of a cause that are counted by name; others are counted together.
const MAX_PRINCIPALS: usize = 100;
/// The most examples of a cause.
const MAX_EXAMPLES: usize = 3;
/// The most changed calls with a pending approval whose later end is not counted again.
const MAX_PENDING: usize = 100_000;
/// Counts the principals beyond [`MAX_PRINCIPALS`].
const OTHERS: &str = "(others)";

/// What rules decide otherwise than before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BacktestReport {
    /// All calls, counted.
    pub summary: BacktestSummary,
    /// The changed calls by cause: looser ones first, then those with most calls.
    pub changes: Vec<ChangedCalls>,
    #[serde(skip)]
    causes: BTreeMap<ChangeCause, ChangedCalls>,
    /// Changed calls with a pending approval. Session and id.
    #[serde(skip)]
    changed_pending: HashSet<(Option<String>, String)>,
}

/// All calls of a backtest, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BacktestSummary {
    /// Calls whose decisions were compared.
    pub compared: u64,
    /// Those with the same effect.
    pub unchanged: u64,
    /// Those that are treated less strictly.
    pub looser: u64,
    /// Those that are treated more strictly.
    pub stricter: u64,
    /// Those that are treated otherwise, and equally strictly.
    pub different: u64,
    /// Unchanged calls that another policy decides.
    pub other_policy: u64,
    /// Changed calls of causes that are not listed, because there are too many.
    pub unlisted: u64,
    /// Compared calls with arguments or results that redaction changed: the rules saw other values than when they were recorded.
    pub redacted: u64,
    /// Calls that can't be compared, by the reason code of their recorded outcome; `unknown` without one.
    pub not_compared: BTreeMap<String, u64>,
}

/// The changed calls of one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedCalls {
    /// How they are treated now.
    pub direction: DecisionDirection,
    /// Their tool.
    pub tool: String,
    /// Their server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What was decided before.
    pub before: CallDecision,
    /// What is decided now.
    pub after: CallDecision,
    /// Their number.
    pub calls: u64,
    /// Those with arguments or results that redaction changed.
    pub redacted: u64,
    /// Who made them.
    pub principals: BTreeMap<String, u64>,
    /// The first few.
    pub examples: Vec<ChangedCallExample>,
}

/// Where a changed call is recorded. Its arguments are not shown, because they may be confidential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedCallExample {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// When the call was decided, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Its session, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its id.
    pub id: String,
}

/// What changed calls have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChangeCause {
    tool: String,
    server: Option<String>,
    before: CallDecision,
    after: CallDecision,
}

impl BacktestReport {
    /// Compares what was recorded with the decision now.
    pub fn add(&mut self, call: &RecordedCall, after: CallDecision) {
        match &call.decision {
            RecordedDecision::Known { decision, .. } => {
                self.count(call, decision, call.decision.is_same(&after), after);
            }
            RecordedDecision::NotReproducible(_) | RecordedDecision::Unknown => self.add_incomparable(call),
        }
    }

    /// Counts a call whose recorded decision is unknown, or depended on more than the rules.
    pub fn add_incomparable(&mut self, call: &RecordedCall) {
        let code = match &call.decision {
            RecordedDecision::NotReproducible(code) => code,
            RecordedDecision::Known { .. } | RecordedDecision::Unknown => "unknown",
        };
        let counts = &mut self.summary.not_compared;
        let is_known = counts.contains_key(code) || counts.len() < MAX_CAUSES;
        *counts.entry(if is_known { code } else { OTHERS }.to_owned()).or_default() += 1;
    }

    /// Compares the decision of other rules with the decision now. An approval that was given counts under both.
    pub fn add_pair(&mut self, call: &RecordedCall, before: &CallDecision, after: CallDecision) {
        self.count(call, before, before.effect == after.effect, after);
    }

    /// Whether a call is treated less strictly than before.
    pub fn has_looser_calls(&self) -> bool {
        self.summary.looser > 0
    }

    /// Whether a call is treated otherwise than before.
    pub fn has_changes(&self) -> bool {
        self.summary.looser + self.summary.stricter + self.summary.different > 0
    }

    /// Orders the changes, when all calls are added.
    pub fn finish(&mut self) {
        self.changes.extend(std::mem::take(&mut self.causes).into_values());
        self.changes.sort_by_key(|change| (change.direction, std::cmp::Reverse(change.calls)));
    }

    fn count(&mut self, call: &RecordedCall, before: &CallDecision, is_same: bool, after: CallDecision) {
        let direction = before.direction_to(&after).filter(|_| !is_same);
        let name = || (call.record.session.clone(), call.record.call.id.clone());
        if call.stage == CallStage::Resumed {
            let was_counted = self.changed_pending.remove(&name());
            // It was counted as unchanged when its approval was requested.
            match direction {
                Some(_) if !was_counted => self.summary.unchanged = self.summary.unchanged.saturating_sub(1),
                _ => return,
            }
        } else {
            self.summary.compared += 1;
            self.summary.redacted += u64::from(call.is_redacted);
        }
        let Some(direction) = direction else {
            self.summary.unchanged += 1;
            self.summary.other_policy +=
                u64::from(before.effect == after.effect && before.policy != after.policy);
            return;
        };
        if call.stage == CallStage::Decided
            && before.effect == callgate::Effect::Suspend
            && self.changed_pending.len() < MAX_PENDING
        {
            self.changed_pending.insert(name());
        }
        match direction {
            DecisionDirection::Looser => self.summary.looser += 1,
            DecisionDirection::Stricter => self.summary.stricter += 1,
            DecisionDirection::Different => self.summary.different += 1,
        }
        self.add_change(call, direction, before, after);
    }

    fn add_change(
        &mut self,
        call: &RecordedCall,
        direction: DecisionDirection,
        before: &CallDecision,
        after: CallDecision,
    ) {
        let (tool, server) = (call.record.call.tool.clone(), call.record.call.server.clone());
        let cause = ChangeCause { tool, server, before: before.clone(), after };
        if self.causes.len() >= MAX_CAUSES && !self.causes.contains_key(&cause) {
            self.summary.unlisted += 1;
            return;
        }
        let changed = self.causes.entry(cause).or_insert_with_key(|cause| ChangedCalls {
            direction,
            tool: cause.tool.clone(),
            server: cause.server.clone(),
            before: cause.before.clone(),
            after: cause.after.clone(),
            calls: 0,
            redacted: 0,
            principals: BTreeMap::new(),
            examples: Vec::new(),
        });
        changed.add(call);
    }
}

impl ChangedCalls {
    fn add(&mut self, call: &RecordedCall) {
        self.calls += 1;
        self.redacted += u64::from(call.is_redacted);
        if let Some(principal) = call.record.call.context.get("principal").and_then(Value::as_str) {
            let is_known = self.principals.contains_key(principal) || self.principals.len() < MAX_PRINCIPALS;
            *self.principals.entry(if is_known { principal } else { OTHERS }.to_owned()).or_default() += 1;
        }
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(ChangedCallExample {
                file: call.origin.file.to_string(),
                line: call.origin.line,
                time: call.time.map(|time| time.to_string()),
                session: call.record.session.clone(),
                id: call.record.call.id.clone(),
            });
        }
    }
}
