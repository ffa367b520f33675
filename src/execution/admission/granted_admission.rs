//! Acquires the limits of a call with the grants of earlier approvals: a call that policies or limits suspend is decided again with the grants
//! that apply to it.

use super::{AcquiredLimits, admit};
use crate::call::{ApprovalRecord, SessionState};
use crate::execution::{CallAttempt, CallContext};
use crate::host::ToolExecutor;
use crate::kernel::{Decision, Effect, HeldResources};

/// One call that is decided, and not admitted yet.
pub(in crate::execution) struct GrantedAdmission<'a, E> {
    pub(in crate::execution) context: &'a CallContext<'a, E>,
    pub(in crate::execution) attempt: &'a CallAttempt<'a>,
    /// What the call holds, and what it acquires.
    pub(in crate::execution) limits: &'a mut AcquiredLimits,
    pub(in crate::execution) state: &'a mut SessionState,
}

impl<E: ToolExecutor> GrantedAdmission<'_, E> {
    /// Returns the decision after admission, and the approvals that were granted earlier. `decide` decides the call again.
    pub(in crate::execution) async fn admit<'c>(
        self,
        mut decision: Box<Decision<'c>>,
        decide: impl Fn(&SessionState, HeldResources<'_>) -> Box<Decision<'c>>,
    ) -> (Box<Decision<'c>>, Option<ApprovalRecord>) {
        let Self { context, attempt, limits, state } = self;
        let mut permits = attempt.permits.clone();
        let mut granted: Option<ApprovalRecord> = None;
        loop {
            if decision.effect() == Effect::Suspend {
                let held = HeldResources { limits: limits.held(), permits: &permits };
                if let Some((more, approved)) = context.find_grants(attempt, &decision, held, state).await {
                    permits = more;
                    let held = HeldResources { limits: limits.held(), permits: &permits };
                    decision = decide(state, held);
                    match &mut granted {
                        Some(granted) => granted.by.extend(approved.by),
                        None => granted = Some(approved),
                    }
                }
            }
            let required = decision.approvals().len();
            if decision.needs_limits() {
                admit(context, &mut decision, limits, state).await;
            }
            // Only for the approvals of limits, grants were not looked up yet.
            if decision.effect() != Effect::Suspend || decision.approvals().len() == required {
                return (decision, granted);
            }
        }
    }
}
