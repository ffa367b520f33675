//! Notifies observers of the approvers' decisions in a history, for agents whose tools run elsewhere.

use std::time::Instant;

use super::Session;
use super::history_resumption::{HistoryCall, history_call};
use crate::approval::Tally;
use crate::call::ApprovalDecision;
use crate::execution::{CallOrigin, ResumeContext};
use crate::host::{EngineEventKind, catch_panic};
use crate::message::History;

impl Session {
    /// Notifies observers of the approvers' decisions, by the answers of a history, without running anything:
    /// for agents whose tools run elsewhere. Only answers count that would count in [`resume`](Self::resume),
    /// for calls that have no result. Returns the decisions of which observers were notified now; each is
    /// reported once, also by a later `resume`, as far as the store reaches.
    pub async fn notify_decisions(&self, history: &History) -> Vec<ApprovalDecision> {
        let mut decisions = Vec::new();
        for found in self.unsettled(history).iter().filter(|found| found.request.is_some()) {
            // A call on which this fails is skipped.
            decisions.extend(catch_panic(self.notify_of(found)).await.ok().flatten());
        }
        self.shared.services.observers.record_outcomes().await;
        decisions
    }

    async fn notify_of(&self, found: &HistoryCall) -> Option<ApprovalDecision> {
        let conversation = self.conversation();
        let services = &self.shared.services;
        let ledger = services.ledger(self.account());
        let call = history_call(&self.calls, found);
        let key = found.key_in(&conversation);
        let messages = found.messages();
        let entry = ledger.find(&key).await.ok().flatten().filter(|entry| entry.is_for_call(&call));
        let verified = services.verify_request(&conversation, &call, messages, entry.as_ref()).ok()?;
        let (tally, ignored) = services.tally(&verified);
        if matches!(tally, Tally::Pending { .. }) {
            return None;
        }
        let decision = verified.decision(&tally, services.clock.now())?;
        // It is recorded, so that the store knows that observers were notified.
        let resume =
            ResumeContext { ledger: &ledger, call: &call, key: &key, messages, started: Instant::now() };
        let _ = services.record_answers(resume, entry, &verified, &ignored).await;
        if !services.is_new_decision(&ledger, &key).await {
            return None;
        }
        if !services.observers.is_empty() {
            let layers = self.layers();
            let kernel = self.kernel(&layers);
            let origin = CallOrigin::new(
                &kernel,
                self.run_identity(&conversation),
                (&call, &call.context),
                &self.state,
            );
            services.observers.notify_of_call(&origin, EngineEventKind::ApprovalDecided(&decision));
        }
        Some(decision)
    }
}
