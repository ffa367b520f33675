//! Calls whose approval is found again by requester, server, tool and arguments: which calls that concerns, and whether the question
//! that the ledger has is still the one to ask.

use super::desk::{Desk, Known};
use super::judged::Said;
use crate::approval::{Asker, CallKeys, Entry, Recalled, Stage, Standing};
use crate::call::{Outcome, OutcomeKind, ToolCall};
use crate::host::ToolExecutor;
use crate::kernel::{Decision, Effect, Held, Kernel};
use crate::middleware::Kind;

impl<E: ToolExecutor> Desk<'_, E> {
    /// Whether a call may need an approval: gate suspends it, or a script around it could ask.
    pub(super) fn may_ask(&self, call: &ToolCall) -> bool {
        let server = call.server.as_deref().unwrap_or_default();
        self.decide_unheard(call).effect() == Effect::Suspend
            || self.kernel().layers.iter().any(|chains| {
                let concerning = chains.concerning(server, &call.tool);
                let mut policies = concerning.iter().filter_map(|index| chains.policy(*index));
                policies.any(|policy| matches!(policy.kind, Kind::Around(_)))
            })
    }

    /// What the ledger knows of this call of this requester. The call gets the id under which it is known.
    ///
    /// A question that nobody has answered is dropped where the policies would ask another one by now, or remembered approvals lift it:
    /// then the call is new.
    pub(super) async fn recall(&mut self, mut call: ToolCall, requester: &str) -> (ToolCall, Known) {
        let keys = CallKeys::new(&self.shared.services.keys, requester, &call);
        keys.current.call_id().clone_into(&mut call.id);
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(&call));
        let known = match ledger.recall_any(keys).await {
            Ok((_, Recalled { name, entry: None, .. })) => Known::New(name),
            Ok((key, Recalled { name, entry: Some(entry), .. })) => {
                key.call_id().clone_into(&mut call.id);
                match self.asks_as_before(&call, &entry).await {
                    true => Known::Earlier(name),
                    false => Known::New(name),
                }
            }
            Err(error) => Known::Unknown(self.name(call.id.clone()), error),
        };
        (call, known)
    }

    /// After a call was reported as started and never settled: the next equal call is asked about anew.
    pub(super) async fn pass_over(&self, requester: &str, call: &ToolCall, outcome: &Outcome) {
        if outcome.outcome != OutcomeKind::Indeterminate {
            return;
        }
        let keys = CallKeys::new(&self.shared.services.keys, requester, call);
        let ledger = self.shared.services.ledger(&*self.shared.clock, self.execute.account(call));
        // What fails here is reported again by the next equal call.
        if let Ok((key, Recalled { number, .. })) = ledger.recall_any(keys).await {
            let _ = ledger.pass_over(&key, number).await;
        }
    }

    /// Whether the question of an entry is the one to go by: it is answered, or its call was started, or the same policies would ask the
    /// same now.
    async fn asks_as_before(&self, call: &ToolCall, entry: &Entry) -> bool {
        let put = match self.shared.put(self.approvals(), call, Said::default(), Some(entry)) {
            Ok(put) if entry.stage == Stage::Waiting => put,
            // It is taken up, which reports what is wrong with it.
            _ => return true,
        };
        // What hooks ask is not known here.
        let is_open = self.execute.hooks.is_empty()
            && matches!(self.shared.standing(&put).0, Standing::Open { by } if by.is_empty());
        // A question that follows on an earlier answer stands: that answer must not get lost.
        let question = &put.question;
        let is_first = question.held.is_empty() && question.edited.is_none() && question.journals.is_empty();
        if !is_open || !is_first || put.is_expired(self.shared.clock.now()) {
            return true;
        }
        let decision = self.decide_unheard(call);
        if decision.effect() != Effect::Suspend {
            // Only a script asks.
            return true;
        }
        let permits =
            |askers: &[Asker]| -> Vec<_> { askers.iter().map(|asker| asker.permit.clone()).collect() };
        let asked = self.execute.kernel.asked(&decision, self.state);
        if permits(&asked) != permits(&question.askers) {
            return false;
        }
        match self.execute.remembered(call, &decision, Held::default(), self.state).await {
            Some((permits, _)) => {
                let held = Held { permits: &permits, ..Held::default() };
                let kernel = Kernel { listener: None, ..self.execute.kernel };
                kernel.decide_holding(call, self.state, held).effect() == Effect::Suspend
            }
            None => true,
        }
    }

    /// The decision on a call, of which no listener is notified: it is decided again.
    fn decide_unheard<'c>(&self, call: &'c ToolCall) -> Decision<'c> {
        Kernel { listener: None, ..self.execute.kernel }.decide(call, self.state)
    }
}
