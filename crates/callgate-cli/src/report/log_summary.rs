//! The summary of decision logs: events → counts by outcome, tool and policy, with examples.

mod candidate_differences;

use std::collections::{BTreeMap, HashMap, HashSet};

use callgate::json::{Map, Value, json};
use callgate_log::LogEntry;
use jiff::Timestamp;

use candidate_differences::CandidateDifferences;

/// The number of distinct tools and principals that are counted by name; others are counted together.
const MAX_NAMES: usize = 1_000;
/// The number of distinct policies that are counted.
const MAX_POLICIES: usize = 50_000;
/// The number of examples of each policy.
const MAX_EXAMPLES: usize = 3;
/// The number of pending approvals whose wait is measured.
const MAX_PENDING: usize = 100_000;
/// Counts everything beyond [`MAX_NAMES`].
const OTHERS: &str = "(others)";

/// Counts by name.
#[derive(Clone, Debug, Default)]
pub(super) struct NameCounts(BTreeMap<String, u64>);

impl NameCounts {
    fn add(&mut self, name: &str) {
        let is_known = self.0.contains_key(name) || self.0.len() < MAX_NAMES;
        *self.0.entry(if is_known { name } else { OTHERS }.to_owned()).or_default() += 1;
    }

    /// The names with their counts, the largest first.
    pub(super) fn ordered(&self) -> Vec<(&str, u64)> {
        let mut counts: Vec<_> = self.0.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    pub(super) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(super) fn document(&self) -> Value {
        self.0.iter().map(|(name, count)| (name.clone(), Value::from(*count))).collect::<Map>().into()
    }
}

/// A call that a policy stopped or would have stopped.
#[derive(Clone, Debug)]
pub(super) struct ExampleCall {
    pub(super) time: Timestamp,
    pub(super) session: String,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) principal: Option<String>,
    /// The arguments, if the log has them.
    pub(super) input: Option<Value>,
}

impl ExampleCall {
    fn from_entry(entry: &LogEntry) -> Self {
        let text = |name: &str| entry.text(name).unwrap_or_default().to_owned();
        Self {
            time: entry.time,
            session: text("session"),
            id: text("id"),
            tool: text("tool"),
            principal: entry.text("principal").map(str::to_owned),
            input: entry.members.get("input").cloned(),
        }
    }

    fn document(&self) -> Value {
        json!({
            "time": self.time.to_string(), "session": self.session, "id": self.id, "tool": self.tool,
            "principal": self.principal, "input": self.input,
        })
    }
}

/// What a policy did, or would have done.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyUse {
    pub(super) kind: String,
    /// Calls in which it took part.
    pub(super) calls: u64,
    /// What it did, by verdict.
    pub(super) enforced: NameCounts,
    /// What it would have done in shadow mode, by verdict.
    pub(super) shadow: NameCounts,
    /// The tools of the calls that it stopped or would have stopped.
    pub(super) tools: NameCounts,
    /// Who made these calls.
    pub(super) principals: NameCounts,
    pub(super) examples: Vec<ExampleCall>,
}

impl PolicyUse {
    /// The number of calls that it would have stopped in shadow mode.
    pub(super) fn would_stop(&self) -> u64 {
        STOPPING.iter().map(|verdict| self.shadow.get(verdict)).sum()
    }

    /// The number of calls that it stopped.
    pub(super) fn stopped(&self) -> u64 {
        STOPPING.iter().map(|verdict| self.enforced.get(verdict)).sum()
    }

    /// Counts a call that it stopped or would have stopped, by tool and principal, and keeps the first few.
    pub(super) fn add_call(&mut self, entry: &LogEntry) {
        self.tools.add(entry.text("tool").unwrap_or_default());
        self.principals.add(entry.text("principal").unwrap_or("(unknown)"));
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(ExampleCall::from_entry(entry));
        }
    }

    pub(super) fn example_documents(&self) -> Vec<Value> {
        self.examples.iter().map(ExampleCall::document).collect()
    }

    fn document(&self, id: &str) -> Value {
        json!({
            "id": id, "kind": self.kind, "calls": self.calls, "enforced": self.enforced.document(),
            "shadow": self.shadow.document(), "tools": self.tools.document(),
            "principals": self.principals.document(),
            "examples": self.example_documents(),
        })
    }
}

/// The verdicts that stop a call.
const STOPPING: [&str; 3] = ["suspend", "deny", "halt"];

/// A policy that took part in no call.
#[derive(Clone, Debug)]
pub(super) struct UnusedPolicy {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) shadow: bool,
}

/// Approvals, and how long they took.
#[derive(Clone, Debug, Default)]
pub(super) struct ApprovalCounts {
    pub(super) requested: u64,
    pub(super) approved: u64,
    pub(super) denied: u64,
    pub(super) expired: u64,
    /// Seconds between request and answer.
    waits: Vec<f64>,
}

impl ApprovalCounts {
    /// The median wait for an answer in seconds.
    pub(super) fn median_wait(&self) -> Option<f64> {
        let mut waits = self.waits.clone();
        waits.sort_by(f64::total_cmp);
        waits.get(waits.len() / 2).copied()
    }
}

/// The summary of logs.
#[derive(Debug, Default)]
pub(super) struct LogSummary {
    pub(super) first: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    pub(super) calls: u64,
    pub(super) outcomes: NameCounts,
    pub(super) tools: NameCounts,
    /// By policy id.
    pub(super) policies: BTreeMap<String, PolicyUse>,
    /// Whether there are more policies than are counted.
    pub(super) has_further_policies: bool,
    /// Calls that a policy in shadow mode would have stopped.
    pub(super) would_stop_calls: u64,
    pub(super) approvals: ApprovalCounts,
    /// Refused calls by limit; shadow mode is not counted here.
    pub(super) limits: NameCounts,
    /// Events other than those of calls, by name: changes of rules, failures, lost events.
    pub(super) other_events: NameCounts,
    pub(super) lost_events: u64,
    /// What candidate rules decide otherwise.
    pub(super) candidate: CandidateDifferences,
    /// Calls by hour and outcome.
    pub(super) hours: BTreeMap<i64, NameCounts>,
    /// The policies that took part in no call, if the rules are known.
    pub(super) unused: Option<Vec<UnusedPolicy>>,
    /// Requests that are not answered yet: since when.
    pending: HashMap<String, Timestamp>,
    /// Calls that were counted while their approval was pending. Session and id.
    counted: HashSet<(String, String)>,
}

impl LogSummary {
    /// Counts an event.
    pub(super) fn add(&mut self, entry: &LogEntry) {
        self.first = Some(self.first.map_or(entry.time, |first| first.min(entry.time)));
        self.last = Some(self.last.map_or(entry.time, |last| last.max(entry.time)));
        match entry.event.as_str() {
            "call_completed" => self.add_call(entry),
            "approval_requested" => {
                self.approvals.requested += 1;
                if self.pending.len() < MAX_PENDING {
                    self.pending.insert(request_key(entry), entry.time);
                }
            }
            "approval_answered" | "approval_expired" => self.add_answer(entry),
            "limit_refused" if !entry.members.contains_key("shadow") => {
                self.limits.add(entry.text("policy").unwrap_or_default());
            }
            "events_lost" => {
                self.lost_events += entry.members.get("count").and_then(Value::as_u64).unwrap_or_default();
            }
            "candidate_differs" => self.candidate.add(entry),
            "candidate_skipped" => {
                self.candidate.skipped +=
                    entry.members.get("count").and_then(Value::as_u64).unwrap_or_default();
            }
            "call_decided" | "call_started" | "cache_hit" | "limit_refused" | "log_opened"
            | "rules_loaded" => {}
            other => self.other_events.add(other),
        }
    }

    fn add_call(&mut self, entry: &LogEntry) {
        let text = |name: &str| entry.text(name).unwrap_or_default().to_owned();
        let (outcome, call) = (text("outcome"), (text("session"), text("id")));
        // A call with an approval ends twice: pending, and then for good. It is one call, with its last outcome.
        let is_pending = outcome == "suspended";
        let was_counted = self.counted.remove(&call);
        if was_counted {
            let pending = self.outcomes.0.entry("suspended".to_owned()).or_default();
            *pending = pending.saturating_sub(1);
        }
        self.outcomes.add(&outcome);
        if was_counted {
            if is_pending {
                self.counted.insert(call);
            }
            return;
        }
        if is_pending && self.counted.len() < MAX_PENDING {
            self.counted.insert(call);
        }
        self.calls += 1;
        self.tools.add(&text("tool"));
        self.hours.entry(entry.time.as_second().div_euclid(3_600)).or_default().add(&outcome);
        let policies = entry.members.get("policies").and_then(Value::as_array).into_iter().flatten();
        let mut would_stop = false;
        for policy in policies {
            would_stop |= self.add_policy(policy, entry);
        }
        self.would_stop_calls += u64::from(would_stop);
    }

    /// Counts a policy that took part in a call. Returns whether it would have stopped it.
    fn add_policy(&mut self, policy: &Value, entry: &LogEntry) -> bool {
        let text = |name: &str| policy.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_shadow = policy.get("shadow").and_then(Value::as_bool).unwrap_or_default();
        let is_stopping = STOPPING.contains(&text("verdict"));
        if self.policies.len() >= MAX_POLICIES && !self.policies.contains_key(text("id")) {
            self.has_further_policies = true;
            return is_shadow && is_stopping;
        }
        let used = self.policies.entry(text("id").to_owned()).or_default();
        text("kind").clone_into(&mut used.kind);
        used.calls += 1;
        let counts = if is_shadow { &mut used.shadow } else { &mut used.enforced };
        counts.add(text("verdict"));
        if is_stopping {
            used.add_call(entry);
        }
        is_shadow && is_stopping
    }

    fn add_answer(&mut self, entry: &LogEntry) {
        let is_approved = entry.members.get("approved").and_then(Value::as_bool).unwrap_or_default();
        match (entry.event.as_str(), is_approved) {
            ("approval_expired", _) => self.approvals.expired += 1,
            (_, true) => self.approvals.approved += 1,
            (_, false) => self.approvals.denied += 1,
        }
        if let Some(since) = self.pending.remove(&request_key(entry))
            && self.approvals.waits.len() < MAX_PENDING
        {
            self.approvals.waits.push(entry.time.duration_since(since).as_secs_f64().max(0.0));
        }
    }

    /// The policies in shadow mode that would have stopped calls, those that would have stopped most first.
    pub(super) fn shadowed(&self) -> Vec<(&str, &PolicyUse)> {
        self.ranked(PolicyUse::would_stop)
    }

    /// The policies that stopped calls, those that stopped most first.
    pub(super) fn stopping(&self) -> Vec<(&str, &PolicyUse)> {
        self.ranked(PolicyUse::stopped)
    }

    fn ranked(&self, rank: impl Fn(&PolicyUse) -> u64) -> Vec<(&str, &PolicyUse)> {
        let mut found: Vec<_> = self.policies.iter().filter(|(_, used)| rank(used) > 0).collect();
        found.sort_by_key(|(_, used)| std::cmp::Reverse(rank(used)));
        found.into_iter().map(|(id, used)| (id.as_str(), used)).collect()
    }

    /// The summary for programs.
    pub(super) fn document(&self) -> Value {
        let ApprovalCounts { requested, approved, denied, expired, .. } = &self.approvals;
        let unused = self.unused.as_ref().map(|unused| {
            unused
                .iter()
                .map(|policy| json!({ "id": policy.id, "kind": policy.kind, "shadow": policy.shadow }))
                .collect::<Vec<_>>()
        });
        json!({
            "version": 1,
            "from": self.first.map(|time| time.to_string()),
            "to": self.last.map(|time| time.to_string()),
            "calls": self.calls,
            "outcomes": self.outcomes.document(),
            "tools": self.tools.document(),
            "policies": self.policies.iter().map(|(id, used)| used.document(id)).collect::<Vec<_>>(),
            "unused_policies": unused,
            "approvals": {
                "requested": requested, "approved": approved, "denied": denied, "expired": expired,
                "median_wait_s": self.approvals.median_wait(),
            },
            "candidate": self.candidate.document(),
            "limits": self.limits.document(),
            "other_events": self.other_events.document(),
            "lost_events": self.lost_events,
        })
    }
}

/// Names a request: ids of approvals are unique within a session.
fn request_key(entry: &LogEntry) -> String {
    format!(
        "{}\n{}",
        entry.text("session").unwrap_or_default(),
        entry.text("approval_id").unwrap_or_default()
    )
}
