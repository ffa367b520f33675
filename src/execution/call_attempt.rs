//! One attempt to bring a call to its outcome: the call after hooks, its key in the ledger, and what earlier attempts left.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::hooks::HookedCall;
use crate::approval::{BoundRequest, CallStage, LedgerEntry, LedgerKey, Permit, ScriptJournal};
use crate::call::{ApprovalDecision, ApprovalRecord, ToolCall};
use crate::json::Value;
use crate::kernel::{HeldResources, PolicyHandle};

/// One attempt at a call.
pub(crate) struct CallAttempt<'c> {
    /// The call as hooks left it.
    pub(crate) hooked: &'c HookedCall,
    /// The call's key in the ledger.
    pub(crate) key: Cow<'c, LedgerKey>,
    /// The ledger's entry of the call, if there is one.
    pub(crate) entry: Option<LedgerEntry>,
    /// What people have approved.
    pub(crate) permits: Vec<Permit>,
    /// The journals of scripts around the call, up to where they asked a person.
    pub(crate) journals: Vec<ScriptJournal>,
    /// The arguments that an approver gave the call in place of the model's.
    pub(crate) edited: Option<Value>,
    /// The approval by which it may run.
    pub(crate) approved: Option<ApprovalRecord>,
    /// The approvers' decision that observers are notified of when the call is claimed.
    pub(crate) decided: Option<ApprovalDecision>,
    /// It runs at most once: the ledger records its start before it starts.
    pub(crate) at_most_once: bool,
    /// It was claimed before this attempt.
    pub(crate) holds_claim: bool,
    /// This attempt has claimed it.
    pub(crate) has_claimed: AtomicBool,
    /// Why the call cannot run in this attempt: scripts around it may only request an approval again.
    pub(crate) only_asks: Option<String>,
    pub(crate) started: Instant,
}

impl<'c> CallAttempt<'c> {
    /// An attempt at a call of which nothing is known.
    pub(crate) fn new(hooked: &'c HookedCall, key: Cow<'c, LedgerKey>, started: Instant) -> Self {
        Self {
            hooked,
            key,
            entry: None,
            permits: Vec::new(),
            journals: Vec::new(),
            edited: None,
            approved: None,
            decided: None,
            at_most_once: false,
            holds_claim: false,
            has_claimed: AtomicBool::new(false),
            only_asks: None,
            started,
        }
    }

    /// The call as the model made it.
    pub(crate) fn requested(&self) -> &'c ToolCall {
        self.hooked.requested()
    }

    /// The ledger's entry of the call, or the one that it gets.
    pub(crate) fn ledger_entry(&self) -> LedgerEntry {
        self.entry.clone().unwrap_or_else(|| {
            let ToolCall { id, tool, server, input, .. } = self.requested();
            LedgerEntry::new(id, tool, BoundRequest::call_digest(tool, server.as_deref(), input))
        })
    }

    /// Whether the claim in the ledger, if there is one, is that of this process.
    pub(crate) fn has_claim(&self) -> bool {
        let is_claimed = |entry: &LedgerEntry| matches!(entry.stage, CallStage::Claimed { .. });
        self.holds_claim
            || self.has_claimed.load(Ordering::Relaxed)
            || self.entry.as_ref().is_some_and(is_claimed)
    }

    /// Whether the ledger has to record the start of the call before it starts.
    pub(crate) fn needs_claim(&self) -> bool {
        self.at_most_once || self.approved.is_some()
    }

    /// The id of an approval request about the call.
    pub(crate) fn approval_id(&self) -> String {
        format!("approval_{}", self.key.occurrence_id)
    }

    /// What the call has already when it is decided.
    pub(crate) fn held(&self) -> HeldResources<'_> {
        HeldResources { limits: &[], permits: &self.permits }
    }

    /// The journals of the scripts of a policy.
    pub(super) fn journals_of(&self, by: PolicyHandle<'_>) -> impl Iterator<Item = &Value> {
        let of = move |saved: &&ScriptJournal| saved.layer == by.layer() && saved.policy == by.policy.id;
        self.journals.iter().filter(of).map(|saved| &saved.journal)
    }
}
