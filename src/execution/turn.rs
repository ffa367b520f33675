//! One call's turn: what it is called among all calls, and what is known of it from earlier turns.

use crate::approval::{Entry, KeptJournal, Name, Permit, Question};
use crate::call::{Approved, ToolCall};
use crate::json::Value;
use crate::kernel::PolicyRef;
use crate::policy::Policy;

/// One call's turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The call's name in the ledger.
    pub(crate) name: Name,
    /// What is known of it there, if anything.
    pub(crate) entry: Option<Entry>,
    /// What people have said yes to.
    pub(crate) permits: Vec<Permit>,
    /// What happened in scripts around it, before a person was asked.
    pub(crate) journals: Vec<KeptJournal>,
    /// The arguments that a person gave it in place of the model's.
    pub(crate) edited: Option<Value>,
    /// By whose yes it may run.
    pub(crate) approved: Option<Approved>,
    /// It runs at most once: the ledger says that it began before it begins.
    pub(crate) once: bool,
    /// It is claimed already.
    pub(crate) holds_claim: bool,
    /// Why the call cannot run in this turn: scripts around it may only ask about it again.
    pub(crate) only_asks: Option<String>,
}

impl Turn {
    /// The first turn of a call.
    pub(crate) fn first(name: Name, once: bool) -> Self {
        Self {
            name,
            entry: None,
            permits: Vec::new(),
            journals: Vec::new(),
            edited: None,
            approved: None,
            once,
            holds_claim: false,
            only_asks: None,
        }
    }

    /// What the ledger knows of the call, or has to know first. `requested`: the call as the model sent it.
    pub(crate) fn entry(&self, requested: &ToolCall) -> Entry {
        self.entry.clone().unwrap_or_else(|| {
            let ToolCall { id, tool, server, input, .. } = requested;
            Entry::new(id, tool, Question::digest_of_call(tool, server.as_deref(), input))
        })
    }

    /// Whether the ledger has to know before the call runs.
    pub(crate) fn is_claimed(&self) -> bool {
        self.once || self.approved.is_some()
    }

    /// What a question about the call is called.
    pub(crate) fn approval_id(&self) -> String {
        format!("approval_{}", self.name.occurrence)
    }

    /// What happened so far in the scripts of a policy.
    pub(super) fn journals(&self, by: PolicyRef, policy: &Policy) -> impl Iterator<Item = &Value> {
        let of = move |kept: &&KeptJournal| kept.layer == by.layer() && kept.policy == policy.id;
        self.journals.iter().filter(of).map(|kept| &kept.journal)
    }
}
