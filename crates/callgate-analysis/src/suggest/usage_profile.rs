//! How the tools of recordings are used: recorded calls → a profile of each tool.

use std::collections::{BTreeMap, BTreeSet};

use callgate::json::Value;
use jiff::Timestamp;

use super::call_rates::CallRates;
use super::field_profile::FieldProfile;
use super::support::{Evidence, Support, ValueCounts};
use crate::recording::{RecordedCall, RecordedDecision, is_redacted};

/// The most tools that are learned.
const MAX_TOOLS: usize = 10_000;
/// The most principals that are counted.
const MAX_PRINCIPALS: usize = 512;
/// The most principals of a tool whose arguments are looked at separately.
const MAX_SEPARATE_PRINCIPALS: usize = 32;

/// A tool, with its server if that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolName {
    /// The MCP server that provides it.
    pub server: Option<String>,
    /// Its own name.
    pub tool: String,
}

/// The calls whose arguments are looked at together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallGroup {
    /// Those that ran without an approval.
    Run,
    /// Those of one principal that ran without an approval.
    RunBy(String),
    /// Those that ran after an approval.
    Approved,
}

/// How one tool is used.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolProfile {
    pub(super) calls: Support,
    pub(super) sessions: BTreeSet<u32>,
    pub(super) first: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    pub(super) principals: PrincipalCounts,
    /// The arguments of all calls.
    pub(super) arguments: FieldProfile,
    pub(super) groups: BTreeMap<CallGroup, FieldProfile>,
    pub(super) rates: CallRates,
}

/// The principals of calls.
#[derive(Clone, Debug)]
pub(super) struct PrincipalCounts {
    pub(super) named: ValueCounts<String>,
    /// Calls whose principal is unknown or redacted.
    pub(super) unnamed: Support,
}

impl Default for PrincipalCounts {
    fn default() -> Self {
        Self { named: ValueCounts::with_capacity(MAX_PRINCIPALS), unnamed: Support::default() }
    }
}

/// How all tools are used.
#[derive(Clone, Debug)]
pub struct UsageProfile {
    /// The number of sessions that make something usual.
    pub(super) required: usize,
    pub(super) tools: BTreeMap<ToolName, ToolProfile>,
    pub(super) principals: PrincipalCounts,
    skipped: BTreeMap<&'static str, u64>,
    /// Calls of tools beyond the most that are learned.
    pub(super) further_tools: u64,
}

impl UsageProfile {
    /// An empty profile. `required` is the number of sessions that make something usual, at least 1.
    pub fn new(required: usize) -> Self {
        Self {
            required: required.max(1),
            tools: BTreeMap::new(),
            principals: PrincipalCounts::default(),
            skipped: BTreeMap::new(),
            further_tools: 0,
        }
    }

    /// Calls that are not learned from, by what was decided on them.
    pub fn skipped(&self) -> &BTreeMap<&'static str, u64> {
        &self.skipped
    }

    /// Adds a call of the session with this number. Only calls that ran are learned from.
    pub fn add(&mut self, call: &RecordedCall, session: u32) {
        if !call.has_run() {
            *self.skipped.entry(not_run(call)).or_default() += 1;
            return;
        }
        // Drafts are for tools.
        if call.record.call.method().is_some() {
            return;
        }
        let evidence = Evidence { session, required: self.required, origin: &call.origin, is_first: false };
        let record = &call.record;
        let name = ToolName { server: record.call.server.clone(), tool: record.call.tool.clone() };
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(&name) {
            self.further_tools += 1;
            return;
        }
        let principal = record.call.context.get("principal").filter(|value| !is_redacted(value));
        let principal = principal.and_then(Value::as_str);
        self.principals.add(principal, &evidence);
        self.tools.entry(name).or_default().add(call, principal, &evidence);
    }
}

impl PrincipalCounts {
    fn add(&mut self, principal: Option<&str>, evidence: &Evidence<'_>) {
        match principal {
            Some(principal) => self.named.add(principal.to_owned(), evidence),
            None => self.unnamed.add(evidence),
        }
    }
}

impl ToolProfile {
    fn add(&mut self, call: &RecordedCall, principal: Option<&str>, evidence: &Evidence<'_>) {
        self.calls.add(evidence);
        self.sessions.insert(evidence.session);
        if let Some(time) = call.time {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
            self.rates.add_at(time, principal, evidence);
        }
        if call.record.session.is_some() {
            self.rates.add_to_run(call.run.as_deref(), evidence);
        }
        self.principals.add(principal, evidence);
        let input = match &call.record.call.input {
            // No arguments.
            Value::Null => &Value::Object(Default::default()),
            input => input,
        };
        self.arguments.add(input, evidence);
        if matches!(call.decision, RecordedDecision::Known { is_approved: true, .. }) {
            self.groups.entry(CallGroup::Approved).or_default().add(input, evidence);
            return;
        }
        self.groups.entry(CallGroup::Run).or_default().add(input, evidence);
        if let Some(principal) = principal {
            let group = CallGroup::RunBy(principal.to_owned());
            if self.groups.len() < MAX_SEPARATE_PRINCIPALS + 2 || self.groups.contains_key(&group) {
                self.groups.entry(group).or_default().add(input, evidence);
            }
        }
    }
}

/// What was decided on a call that did not run.
fn not_run(call: &RecordedCall) -> &'static str {
    match &call.decision {
        RecordedDecision::Known { decision, .. } => match decision.effect {
            callgate::Effect::Suspend => "pending approval",
            callgate::Effect::Answer => "answered without the tool",
            callgate::Effect::Invalid => "invalid",
            callgate::Effect::Halt => "halted",
            _ => "denied",
        },
        RecordedDecision::NotReproducible(_) => "failed before the tool",
        RecordedDecision::Unknown => "without an outcome or a result",
    }
}
