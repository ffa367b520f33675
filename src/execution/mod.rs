//! Runs calls: `ToolCall` + session → `Outcome`.
//!
//! [`CallRunner`] takes one call at a time through its life: ledger lookup, hooks, decision, budgets, limits, execution, settling, and the
//! report to hooks, ledger and observers. The kernel decides and settles without waiting; all waiting happens here.

mod admission;
mod approval_recall;
mod approval_requests;
mod approval_verification;
mod approved_call;
mod argument_revalidation;
mod budget_accounting;
mod call_attempt;
mod call_origin;
mod call_resumption;
mod call_runner;
mod completed_call;
mod handed_over_call;
mod hooks;
mod observed_store;
mod observers;
mod offered_tools;
mod outcome_reporting;
mod recorded_course;
mod round_progress;
mod services;
mod session_store;
mod tool_results;
mod wrappers;

pub(crate) use approval_verification::{ApprovalMessages, EntrySnapshot, PendingCall, ResumeContext};
pub(crate) use budget_accounting::{BudgetAccount, BudgetExceeded, BudgetReservation, model_usage};
pub(crate) use call_attempt::CallAttempt;
pub(crate) use call_origin::CallOrigin;
pub(crate) use call_resumption::ResumedCall;
pub(crate) use call_runner::{CallRunner, LedgerLookup, PreparedCall, unfinished};
pub(crate) use completed_call::{CallRecording, CompletedCall, CompletedCalls, ToolResult};
pub(crate) use hooks::{HookRunner, HookedCall};
pub(crate) use observers::Observers;
pub(crate) use offered_tools::OfferedTools;
pub(crate) use round_progress::{CallProgress, RoundProgress, is_same_call};
pub(crate) use services::{AcceptsAnswer, EngineServices, HostServices};
pub(crate) use session_store::StoredSession;
pub(crate) use tool_results::ToolResultFormatter;

use std::sync::Arc;

use crate::approval::{Ledger, LedgerError, LedgerKey};
use crate::call::ToolCall;
use crate::host::Account;
use crate::kernel::Kernel;
use crate::tools::ToolCatalog;

/// The surroundings of the calls of one session. They stay the same while a call runs.
pub(crate) struct CallContext<'r, E> {
    pub(crate) kernel: Kernel<'r>,
    pub(crate) services: &'r EngineServices,
    pub(crate) executor: &'r E,
    pub(crate) hooks: HookRunner<'r>,
    pub(crate) session: SessionInfo<'r>,
}

impl<E> Clone for CallContext<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for CallContext<'_, E> {}

/// The session of calls.
#[derive(Clone, Copy)]
pub(crate) struct SessionInfo<'r> {
    /// Its name, for outcomes.
    pub(crate) name: Option<&'r str>,
    /// Under what the calls of the session share what is cached for them: the name of a session that is recorded, and otherwise one that no
    /// other session has. Hosts may call several sessions by one name.
    pub(crate) cache_scope: &'r str,
    pub(crate) conversation: &'r str,
    /// The requester under whose name approvals are found again, whatever the conversation. `None`: approvals are found by conversation
    /// and call id.
    pub(crate) approval_scope: Option<&'r str>,
    /// Every call is recorded in the ledger, not only those that need an approval.
    pub(crate) is_recorded: bool,
    /// A call that is stopped counts as having run, with the result that the executor has recorded.
    pub(crate) keeps_recorded_course: bool,
    /// The tools that the model was offered, if that is known.
    pub(crate) offered: Option<&'r OfferedTools>,
    pub(crate) formatter: &'r ToolResultFormatter,
    pub(crate) tools: &'r Arc<ToolCatalog>,
    /// What is recorded of the present call, for candidate rules.
    pub(crate) recording: &'r CallRecording,
}

impl<'r, E> CallContext<'r, E> {
    /// The account of the store to which a call is charged.
    pub(crate) fn account(&self, call: &ToolCall) -> Account {
        let context = if call.context.is_null() { &self.hooks.run.context } else { &call.context };
        Account::from_context(context)
    }

    /// The ledger, with a call's account.
    pub(crate) fn ledger(&self, call: &ToolCall) -> Ledger<'r> {
        self.services.ledger(self.account(call))
    }

    /// The name under which the ledger has the session's approvals.
    pub(crate) fn approval_conversation(&self) -> &'r str {
        self.session.approval_scope.unwrap_or(self.session.conversation)
    }

    /// The key of a call in the ledger.
    pub(crate) fn call_key(&self, occurrence: String) -> LedgerKey {
        LedgerKey { conversation: self.approval_conversation().to_owned(), occurrence_id: occurrence }
    }

    /// The budgets of the session.
    pub(crate) fn budgets(&self) -> BudgetAccount<'r> {
        BudgetAccount {
            services: self.services,
            kernel: self.kernel,
            run: self.hooks.run,
            conversation: self.session.conversation,
        }
    }
}

/// Why a call did not start.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// Another runner has claimed it, or its approval was answered otherwise meanwhile; this is its entry.
    Lost(Box<crate::approval::LedgerEntry>),
    /// The ledger does not answer.
    Ledger(LedgerError),
}
