//! The outcome of a call that does not reach its tool, or on which Callgate itself failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::{OutcomeBuilder, micros_since};
use crate::call::{Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code};
use crate::kernel::execution_result::Records;
use crate::kernel::redacted_call::WITHHELD;
use crate::kernel::{Decision, Effect, Kernel, UNDECIDABLE};
use crate::work_limit::WorkMeter;

impl Kernel<'_> {
    /// The outcome of a call that does not reach its tool: invalid, denied, suspended or halted. A halt halts
    /// the session. The approval request of a suspended call has this id, and is not sealed yet.
    ///
    /// A panic in here denies.
    pub(crate) fn refuse(
        &self,
        decision: Box<Decision<'_>>,
        approval_id: &str,
        records: Records,
        session: &mut SessionState,
        started: Instant,
    ) -> Box<Outcome> {
        let (call, halts) = (decision.call.clone(), decision.effect == Effect::Halt);
        let mut meter = WorkMeter::after_decision(decision.work);
        let kind = if halts { OutcomeKind::Halted } else { OutcomeKind::Denied };
        catch_unwind(AssertUnwindSafe(|| {
            meter.run_nested(|| self.refuse_unguarded(decision, approval_id, records, session, started))
        }))
        .unwrap_or_else(|_| {
            // Even if this panicked, a halt holds for the rest of the session.
            if halts {
                session.halt(UNDECIDABLE);
            }
            self.broken(&call, kind, UNDECIDABLE, started)
        })
    }

    fn refuse_unguarded(
        &self,
        mut decision: Box<Decision<'_>>,
        approval_id: &str,
        records: Records,
        session: &mut SessionState,
        started: Instant,
    ) -> Box<Outcome> {
        let kind = match decision.effect {
            Effect::Suspend => OutcomeKind::Suspended,
            Effect::Invalid => OutcomeKind::Invalid,
            Effect::Halt => OutcomeKind::Halted,
            Effect::Deny | Effect::Run | Effect::Answer => OutcomeKind::Denied,
        };
        let reason = decision.reason();
        if kind == OutcomeKind::Halted {
            self.halt(&decision, session);
        }
        let call = decision.call.clone();
        let trace = std::mem::take(&mut decision.trace);
        let subject = self.subject(&call);
        let mut outcome = OutcomeBuilder::new(&subject, kind, reason, trace, records);
        outcome.approval_id = approval_id;
        if outcome.records.has_sources() {
            outcome.mask_results(&decision.input, session);
        }
        outcome.finish(self, &decision, session, started)
    }

    /// The outcome of a call on which Callgate itself failed. It shows none of the call's values.
    pub(super) fn broken(
        &self,
        call: &ToolCall,
        kind: OutcomeKind,
        message: &str,
        started: Instant,
    ) -> Box<Outcome> {
        let reason = Reason {
            policy: None,
            code: reason_code::INTERNAL_ERROR.to_owned(),
            message: message.to_owned(),
        };
        Box::new(Outcome {
            error: (kind == OutcomeKind::Failed).then(|| message.to_owned()),
            duration_us: micros_since(started),
            ..Outcome::new((&call.id, &call.tool), kind, WITHHELD.into(), reason, self.revision())
        })
    }
}
