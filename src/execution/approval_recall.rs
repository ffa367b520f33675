//! Finds the approval of a call again by requester, server, tool and arguments, and decides whether its request still applies.

use std::borrow::Cow;

use super::approval_verification::ApprovalMessages;
use super::{CallAttempt, CallRunner, HookedCall, LedgerLookup};
use crate::approval::{ApprovalRequirement, CallKeys, CallStage, LedgerEntry, RecalledRequest, Tally};
use crate::call::{Outcome, OutcomeKind, ToolCall};
use crate::host::ToolExecutor;
use crate::kernel::{Effect, HeldResources};
use crate::middleware::PolicyKind;

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Whether a call may need an approval: gate suspends it, or a script around it could ask.
    pub(crate) fn may_ask(&self, call: &ToolCall) -> bool {
        let server = call.server.as_deref().unwrap_or_default();
        self.silent_kernel().decide(call, self.state).effect() == Effect::Suspend
            || self.context.kernel.layers.iter().any(|policies| {
                let indices = policies.matching_call(server, &call.tool);
                let mut matching = indices.iter().filter_map(|index| policies.policy(*index));
                matching.any(|policy| matches!(policy.kind, PolicyKind::Around(_)))
            })
    }

    /// The ledger's knowledge of this call of this requester. The call gets the id under which the ledger has it.
    ///
    /// A request that nobody has answered is dropped if the policies would make another one by now, or grants lift it: then the call is
    /// new.
    pub(crate) async fn recall(&mut self, mut call: ToolCall, requester: &str) -> (ToolCall, LedgerLookup) {
        let keys = CallKeys::new(&self.context.services.keys, requester, &call);
        keys.current.call_id().clone_into(&mut call.id);
        let ledger = self.context.ledger(&call);
        let lookup = match ledger.recall_with_any_key(keys).await {
            Ok((_, RecalledRequest { key, entry: None, .. })) => LedgerLookup::New(key),
            Ok((call_key, RecalledRequest { key, entry: Some(entry), .. })) => {
                call_key.call_id().clone_into(&mut call.id);
                match self.is_request_current(&call, &entry).await {
                    true => LedgerLookup::Known(key, Box::new(entry)),
                    false => LedgerLookup::New(key),
                }
            }
            Err(error) => LedgerLookup::Unavailable(self.context.call_key(call.id.clone()), error),
        };
        (call, lookup)
    }

    /// After a call was reported as started and never settled: the next equal call is asked about again.
    pub(crate) async fn pass_over(&self, requester: &str, call: &ToolCall, outcome: &Outcome) {
        if outcome.outcome != OutcomeKind::Indeterminate {
            return;
        }
        let keys = CallKeys::new(&self.context.services.keys, requester, call);
        let ledger = self.context.ledger(call);
        // What fails here is reported again by the next equal call.
        if let Ok((key, RecalledRequest { number, .. })) = ledger.recall_with_any_key(keys).await {
            let _ = ledger.skip_unfinished(&key, number).await;
        }
    }

    /// Whether the request of an entry still applies: it is answered, or its call was started, or the same policies would make the same
    /// request now.
    async fn is_request_current(&self, call: &ToolCall, entry: &LedgerEntry) -> bool {
        let services = self.context.services;
        let conversation = self.context.approval_conversation();
        let verified =
            match services.verify_request(conversation, call, ApprovalMessages::default(), Some(entry)) {
                Ok(verified) if entry.stage == CallStage::Waiting => verified,
                // The call resumes, which reports what is wrong with it.
                _ => return true,
            };
        // Requests of hooks can't be compared.
        let is_open = self.context.hooks.all.is_empty()
            && matches!(services.tally(&verified).0, Tally::Pending { by } if by.is_empty());
        // A request that follows an earlier answer is kept: that answer must not get lost.
        let question = &verified.question;
        let is_first =
            question.granted.is_empty() && question.edited_input.is_none() && question.journals.is_empty();
        if !is_open || !is_first || verified.is_expired(services.clock.now()) {
            return true;
        }
        let kernel = self.silent_kernel();
        let decision = kernel.decide(call, self.state);
        if decision.effect() != Effect::Suspend {
            // Only a script asks.
            return true;
        }
        let permits = |askers: &[ApprovalRequirement]| -> Vec<_> {
            askers.iter().map(|asker| asker.permit.clone()).collect()
        };
        if permits(&kernel.approvers(&decision, self.state)) != permits(&question.requirements) {
            return false;
        }
        let hooked = HookedCall::untouched(call.clone());
        let key = Cow::Owned(self.context.call_key(call.id.clone()));
        let attempt = CallAttempt::new(&hooked, key, std::time::Instant::now());
        match self.context.find_grants(&attempt, &decision, HeldResources::default(), self.state).await {
            Some((permits, _)) => {
                let held = HeldResources { permits: &permits, ..HeldResources::default() };
                kernel.decide_holding(call, self.state, held).effect() == Effect::Suspend
            }
            None => true,
        }
    }
}
