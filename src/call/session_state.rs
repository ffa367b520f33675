//! Session state that later calls read: labels, facts, counts, and the progress of the run.

mod call_ids;
mod changes;
mod facts;
mod persistence;
mod question_counts;
mod unstored_facts;
mod value_set;

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

pub(crate) use changes::SessionChanges;
pub use facts::fact_key;
pub use value_set::{MAX_SET_BYTES, OnFull, SetBound};

use super::{Amount, Masks};
use crate::json::{self, Key, Value, json};
use changes::SessionChange;
use unstored_facts::UnstoredFacts;
use value_set::ValueSets;

/// The members of `$.session`: those that Callgate maintains, and the host's information about the run.
pub const SESSION_MEMBERS: [&str; 10] = [
    "labels",
    "facts",
    "calls",
    "round",
    "requestId",
    "streamId",
    "conversationId",
    "phase",
    "iteration",
    "chunkIndex",
];

/// Values by names that others choose: seeded at random, so that they can't choose names that collide.
type NameMap<V> = HashMap<String, V, RandomState>;

/// The state of one session: the `$.session` of the call document.
///
/// Labels are only ever added. Facts are stored by name, or by name and keys. A label or fact whose own condition was undecided is
/// *unknown*: tests that read it are undecided from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionState {
    document: Value,
    unknown_parts: Vec<String>,
    unstored_facts: UnstoredFacts,
    sets: ValueSets,
    halt_message: Option<String>,
    /// The amounts acquired of limits that count by run.
    acquired: NameMap<Amount>,
    /// The last arguments with which each tool succeeded, the newest last.
    successful_inputs: NameMap<Vec<Value>>,
    /// How often the model was invited to retry, by policy and tool.
    recoveries: Vec<((String, String), u64)>,
    /// How often each call id has occurred, because ids repeat.
    occurrences: NameMap<u64>,
    /// How often each approval was requested, and how often it had been when it was last approved.
    questions: NameMap<u64>,
    /// Whether calls of the run are pending.
    suspended: bool,
    /// The number of the run within the session.
    run: u64,
    /// Whether the run began here, so that its own counts are known although the past of the session is not.
    is_run_known: bool,
    /// The changes since recording began, if they are recorded.
    changes: Option<SessionChanges>,
    /// The redacted strings in facts.
    masks: Masks,
}

impl Default for SessionState {
    fn default() -> Self {
        Self {
            document: json!({ "labels": [], "facts": {}, "calls": {} }),
            unknown_parts: Vec::new(),
            unstored_facts: UnstoredFacts::default(),
            sets: ValueSets::default(),
            halt_message: None,
            acquired: NameMap::default(),
            successful_inputs: NameMap::default(),
            recoveries: Vec::new(),
            occurrences: NameMap::default(),
            questions: NameMap::default(),
            suspended: false,
            run: 0,
            is_run_known: false,
            changes: None,
            masks: Masks::new(),
        }
    }
}

impl SessionState {
    /// The `$.session` document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Sets the host's information about the run, one of [`SESSION_MEMBERS`]: `requestId`, `streamId`, `conversationId`, `phase`, `iteration`, `chunkIndex`.
    /// Members that Callgate maintains itself are not replaced.
    pub fn set_run_info(&mut self, key: &str, value: Value) {
        if !matches!(key, "labels" | "facts" | "calls")
            && let Some(document) = self.document.as_object_mut()
        {
            document.insert(key, value);
        }
    }

    /// The host's information about the run.
    pub(crate) fn run_info(&self) -> impl Iterator<Item = (&Key, &Value)> {
        let members = self.document.as_object().into_iter().flat_map(|document| document.iter());
        members.filter(|(key, _)| !TRACKED_PARTS.contains(&key.as_str()))
    }

    /// Whether the session has a label, a fact or a call.
    pub(crate) fn has_past(&self) -> bool {
        let is_empty = |part: &Value| {
            part.as_array().is_none_or(|items| items.is_empty())
                && part.as_object().is_none_or(|members| members.is_empty())
        };
        let has = |part: &str| self.document.get(part).is_some_and(|part| !is_empty(part));
        self.is_untrusted() || TRACKED_PARTS.iter().any(|part| has(part))
    }

    /// Adds a label to the session.
    pub fn add_label(&mut self, label: &str) {
        self.log_change(|| SessionChange::LabelAdded(label.to_owned()));
        if let Some(Value::Array(labels)) = self.document.get_mut("labels")
            && !labels.iter().any(|known| known == label)
        {
            labels.push(label.into());
        }
    }

    /// The masks of redacted strings in facts: where they occur again in displayed session data, they are redacted.
    #[doc(hidden)]
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Adds masks for stored facts.
    #[doc(hidden)]
    pub fn add_masks(&mut self, masks: &Masks) {
        if masks.is_empty() {
            return;
        }
        self.log_change(|| SessionChange::MasksAdded(masks.clone()));
        self.masks.merge(masks);
    }

    /// The session with redacted facts, for display.
    #[doc(hidden)]
    pub fn redacted(&self) -> Cow<'_, Self> {
        if self.masks.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut redacted = self.clone();
        if let Some(facts) = redacted.document.get_mut("facts") {
            self.masks.value(facts);
        }
        Cow::Owned(redacted)
    }

    /// Counts a call that starts to run.
    #[doc(hidden)]
    pub fn count_call(&mut self, tool: &str) {
        self.log_change(|| SessionChange::CallCounted(tool.to_owned()));
        if let Some(Value::Object(calls)) = self.document.get_mut("calls") {
            match calls.get_mut(tool) {
                Some(count) => *count = (count.as_u64().unwrap_or(0) + 1).into(),
                None => drop(calls.insert(tool.to_owned(), 1.into())),
            }
        }
    }

    /// Marks a label or fact (`labels`, `facts.order`) as unknown.
    #[doc(hidden)]
    pub fn mark_unknown(&mut self, name: &str) {
        self.log_change(|| SessionChange::MarkedUnknown(name.to_owned()));
        if !self.unknown_parts.iter().any(|known| known == name) {
            self.unknown_parts.push(name.to_owned());
        }
    }

    /// The unknown labels and facts.
    #[doc(hidden)]
    pub fn unknown_parts(&self) -> &[String] {
        &self.unknown_parts
    }

    /// Stops the session: every later call is halted, with this message.
    pub fn halt(&mut self, message: &str) {
        self.log_change(|| SessionChange::Halted(message.to_owned()));
        self.halt_message.get_or_insert_with(|| message.to_owned());
    }

    /// Why the session was stopped, or `None`.
    pub fn halt_message(&self) -> Option<&str> {
        self.halt_message.as_deref()
    }

    /// The amount acquired of a limit that counts by run.
    #[doc(hidden)]
    pub fn acquired(&self, limit: &str) -> Amount {
        self.acquired.get(limit).copied().unwrap_or_default()
    }

    /// Acquires an amount of a limit that counts by run.
    #[doc(hidden)]
    pub fn acquire(&mut self, limit: &str, cost: Amount) {
        self.log_change(|| SessionChange::LimitAcquired(limit.to_owned(), cost));
        let acquired = self.acquired.entry(limit.to_owned()).or_default();
        *acquired = acquired.saturating_add(cost);
    }

    /// Releases an amount of a limit that counts by run.
    #[doc(hidden)]
    pub fn release(&mut self, limit: &str, cost: Amount) {
        self.log_change(|| SessionChange::LimitReleased(limit.to_owned(), cost));
        if let Some(acquired) = self.acquired.get_mut(limit) {
            *acquired = acquired.saturating_sub(cost);
        }
    }

    /// The last few arguments with which a tool succeeded, the newest last.
    #[doc(hidden)]
    pub fn successful_inputs(&self, tool: &str) -> &[Value] {
        self.successful_inputs.get(tool).map(Vec::as_slice).unwrap_or_default()
    }

    /// Stores redacted arguments with which a tool succeeded. Keeps only a few, and none that are large.
    #[doc(hidden)]
    pub fn add_successful_input(&mut self, tool: &str, input: Value) {
        const KEPT: usize = 8;
        const LARGEST: usize = 4 << 10;
        const TOOLS: usize = 256;
        if json::canonical_text(&input).len() > LARGEST
            || self.successful_inputs.len() == TOOLS && !self.successful_inputs.contains_key(tool)
        {
            return;
        }
        self.log_change(|| SessionChange::InputSucceeded(tool.to_owned(), input.clone()));
        let worked = self.successful_inputs.entry(tool.to_owned()).or_default();
        worked.retain(|known| *known != input);
        worked.push(input);
        let surplus = worked.len().saturating_sub(KEPT);
        worked.drain(..surplus);
    }

    /// How often a policy has invited the model to retry a tool.
    #[doc(hidden)]
    pub fn recoveries(&self, policy: &str, tool: &str) -> u64 {
        let found = self.recoveries.iter().find(|((by, to), _)| by == policy && to == tool);
        found.map_or(0, |(_, count)| *count)
    }

    /// Counts an invitation to retry.
    #[doc(hidden)]
    pub fn count_recovery(&mut self, policy: &str, tool: &str) {
        self.log_change(|| SessionChange::RecoveryCounted(policy.to_owned(), tool.to_owned()));
        match self.recoveries.iter_mut().find(|((by, to), _)| by == policy && to == tool) {
            Some((_, count)) => *count += 1,
            None => self.recoveries.push(((policy.to_owned(), tool.to_owned()), 1)),
        }
    }

    /// Marks the whole session as untrusted: tests that read it are undecided from now on, and limits that count by run are
    /// exhausted.
    #[doc(hidden)]
    pub fn mark_untrusted(&mut self) {
        self.is_run_known = false;
        for part in TRACKED_PARTS {
            self.mark_unknown(part);
        }
    }

    /// Notes that the run begins here, whatever the session was before.
    pub(crate) fn mark_run_known(&mut self) {
        self.is_run_known = true;
    }

    /// Whether what the run has used of limits and budgets is known.
    pub(crate) fn knows_run(&self) -> bool {
        self.is_run_known || !self.is_untrusted()
    }

    /// Whether the session is untrusted.
    pub fn is_untrusted(&self) -> bool {
        TRACKED_PARTS.iter().all(|part| self.unknown_parts.iter().any(|known| known == part))
    }

    /// Starts a new run: clears the halt of an earlier run, and resets the counts by run.
    #[doc(hidden)]
    pub fn start_new_run(&mut self) {
        self.run += 1;
        self.suspended = false;
        self.halt_message = None;
        self.acquired.clear();
        self.recoveries.clear();
    }

    /// Whether calls of the run are pending: the run continues when the session resumes.
    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Sets whether calls of the run are pending.
    #[doc(hidden)]
    pub fn set_suspended(&mut self, suspended: bool) {
        if suspended {
            self.log_change(|| SessionChange::Suspended);
        }
        self.suspended = suspended;
    }
}

/// The parts of the document that Callgate maintains.
const TRACKED_PARTS: [&str; 3] = ["labels", "facts", "calls"];
