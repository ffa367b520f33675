//! Whether a call depends on the session's state: only then it has to wait for the calls before it.

use super::{Effect, Kernel};
use crate::call::{CallView, Phase, SessionState, ToolCall, reason_code};
use crate::matcher::Truth;
use crate::middleware::{LimitRule, PolicyKind};
use crate::policy::Policy;
use crate::work_limit::WorkMeter;

/// How a call depends on its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionUse {
    /// The session's state can change its outcome.
    pub(crate) reads: bool,
    /// It can halt the run, as far as that is known without the session's state.
    pub(crate) may_halt: bool,
}

impl Kernel<'_> {
    /// How a call depends on its session. `is_rewritten`: hooks around the call can change its arguments later.
    ///
    /// The policies that act before the tool are evaluated with an unknown state: those whose truth is the same
    /// in any case do not depend on it. Of the others, which see the result, every one that reads the session
    /// counts.
    pub(crate) fn session_use(
        &self,
        call: &ToolCall,
        session: &SessionState,
        is_rewritten: bool,
    ) -> SessionUse {
        let subject = self.subject(call);
        let matching: Vec<&Policy> = self
            .layers
            .iter()
            .flat_map(|policies| {
                let indices = policies.matching_call(call.server.as_deref().unwrap_or_default(), &call.tool);
                indices.into_iter().filter_map(|index| policies.policy(index))
            })
            .collect();
        let reads_any = matching.iter().any(|policy| reads_session(policy));
        let can_halt = matching.iter().any(|policy| matches!(policy.kind, PolicyKind::Halt(_)));
        if session.halt_message().is_some() || !reads_any && !can_halt {
            return SessionUse { reads: false, may_halt: false };
        }
        let mut unknown = session.clone();
        unknown.mark_untrusted();
        let decision = self.decide(call, &unknown);
        let view = CallView { input: decision.input(), ..subject.view(&unknown) };
        let depends = |policy: &&Policy| match &policy.kind {
            // It is stored when the tool starts, and may read what others of the call have stored.
            PolicyKind::Fact(_) => reads_session(policy),
            kind if kind.is_active_in(Phase::Settle) => reads_session(policy),
            PolicyKind::Around(_) => policy.matcher.eval(&view) != Truth::No,
            _ if is_rewritten => reads_session(policy),
            _ if !reads_session(policy) => false,
            _ => match policy.matcher.eval(&view) {
                Truth::No => false,
                Truth::Yes => policy.action_reads_session || counts_by_run(policy),
                Truth::Absent | Truth::Undecided(_) => true,
            },
        };
        // A condition that needs too much work is undecided.
        let reads = reads_any && WorkMeter::for_decision().run(|| matching.iter().any(depends));
        SessionUse { reads, may_halt: can_halt && (is_rewritten || decision.effect() == Effect::Halt) }
    }
}

impl Kernel<'_> {
    /// Whether a call is denied now whatever the session's state is: a `deny` policy matches, or no policy can permit it.
    pub(crate) fn is_denied_in_any_state(&self, call: &ToolCall) -> bool {
        let mut unknown = SessionState::default();
        unknown.mark_untrusted();
        let decision = self.decide(call, &unknown);
        if decision.effect() != Effect::Deny {
            return false;
        }
        let reason = decision.reason();
        let subject = self.subject(call);
        let view = CallView { input: decision.input(), ..subject.view(&unknown) };
        let mut matching = self.layers.iter().flat_map(|policies| {
            let indices = policies.matching_call(call.server.as_deref().unwrap_or_default(), &call.tool);
            indices.into_iter().filter_map(|index| policies.policy(index))
        });
        match reason.policy {
            Some(id) => {
                reason.code != reason_code::UNDECIDED
                    && matching.any(|policy| policy.id == id && matches!(policy.kind, PolicyKind::Deny(_)))
            }
            // What is undecided without the session may be permitted with it.
            None => {
                reason.code == reason_code::UNMATCHED
                    && WorkMeter::for_decision().run(|| {
                        matching
                            .all(|policy| !policy.kind.permits() || policy.matcher.eval(&view) == Truth::No)
                    })
            }
        }
    }
}

fn reads_session(policy: &Policy) -> bool {
    policy.condition_reads_session || policy.action_reads_session || counts_by_run(policy)
}

fn counts_by_run(policy: &Policy) -> bool {
    policy.kind.as_limit().is_some_and(|limit| matches!(limit.rule, LimitRule::Run(_)))
}
