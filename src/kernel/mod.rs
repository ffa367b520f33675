//! One call's life: normalise → gate → execute → settle. The whole of it is on this page; each phase has its file.
//!
//! Policies come in layers (bundle, then prompt, then call). Each layer decides for itself and the strictest wins, so a
//! lower layer can only tighten.

mod arguments;
mod asked;
mod conclude;
mod decision;
mod ended;
mod gate;
mod hearing;
mod limits;
mod normalise;
mod session_use;
mod settle;
mod shown;
pub(crate) mod stage;
mod streamed;
mod suggest;
mod trace;
mod wrap;

pub(crate) use asked::Held;
pub(crate) use decision::Requirement;
pub use decision::{Decision, Effect};
pub(crate) use ended::{Ended, Execution, Records};
pub(crate) use hearing::tell;
pub use hearing::{Asking, Change, Deciding, ErrorAsked, Event, LimitAsked, Listener, Said, Unasked};
pub(crate) use limits::{Pending, effect as effect_of, is_used_up, measure};
pub(crate) use session_use::SessionUse;
pub(crate) use stage::is_never_called;
pub use trace::Layers;
pub(crate) use trace::{PolicyRef, Trace};
pub(crate) use wrap::Wrapper;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::call::{
    CallView, Masks, Outcome, OutcomeKind, Phase, Reason, SessionState, ToolCall, reason_code,
};
use crate::host::Clock;
use crate::json::Value;
use crate::meter::{self, Meter};
use crate::middleware::Kind;
use crate::policy::{Chain, Mode, Policy};
use crate::seal::Keys;
use crate::tools::{Tool, ToolSet};
use hearing::Hearing;
use shown::{Ending, Redaction, Shown};

/// What decides calls: the layers, each of one revision, the known tools and the time.
#[derive(Clone, Copy)]
pub struct Kernel<'k> {
    /// The layers, the bundle first.
    pub layers: &'k Layers,
    /// The known tools.
    pub tools: &'k ToolSet,
    /// The time.
    pub clock: &'k dyn Clock,
    /// What digests are made with where they stand for arguments and redacted values.
    pub keys: &'k Keys,
    /// Who hears of every asking, if anybody.
    pub listener: Option<&'k dyn Listener>,
}

impl std::fmt::Debug for Kernel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl<'k> Kernel<'k> {
    /// What is to become of a call: normalise, then gate. Nothing is executed, counted or recorded.
    ///
    /// Whatever goes wrong in here, a panic included, denies; so does a call for which the policies need more than
    /// [`DECISION_UNITS`](crate::meter::DECISION_UNITS) of work.
    pub fn decide<'c>(&self, call: &'c ToolCall, session: &SessionState) -> Decision<'c> {
        let mut meter = Meter::of_decision();
        let mut decision = meter.run(|| self.decide_holding(call, session, Held::default()));
        decision.work = meter.used_of_decision();
        decision
    }

    /// The same for a call that holds something already: what it took of limits, and what people have said yes to.
    pub(crate) fn decide_holding<'c>(
        &self,
        call: &'c ToolCall,
        session: &SessionState,
        held: Held<'_>,
    ) -> Decision<'c> {
        let decision = Meter::of_decision().or_outer(|| {
            let decision = guarded(call, || self.decide_unguarded(call, session, held));
            // What was not evaluated any more could have stopped it.
            match meter::is_exceeded() && decision.effect() < Effect::Halt {
                true => {
                    let why = meter::WorkExceeded.to_string();
                    Decision::refused(call, Effect::Deny, reason_code::WORK_EXCEEDED, &why)
                }
                false => decision,
            }
        });
        tell(self.listener, &Event::Decided(&decision));
        decision
    }

    fn decide_unguarded<'c>(
        &self,
        call: &'c ToolCall,
        session: &SessionState,
        held: Held<'_>,
    ) -> Decision<'c> {
        let deciding = Deciding { view: self.view(call, session), layers: self.layers };
        tell(self.listener, &Event::Deciding(deciding));
        if let Some(message) = session.halted() {
            return Decision::refused(call, Effect::Halt, reason_code::SESSION_HALTED, message);
        }
        let subject = self.subject(call);
        let mut trace = Trace::default();
        let view = subject.view(session);
        let normalised = normalise::run(&subject, &call.input, view, &mut trace);
        let view = CallView { input: &normalised.input, ..view };
        let mut conclusion = gate::run(&subject, view, normalised.failure, held, &mut trace);
        let mut wrappers = SmallVec::new();
        let hearing = subject.hearing(Phase::Execute);
        let wraps = subject.chains.iter().any(|chain| !chain.execute.is_empty());
        if wraps && matches!(conclusion.effect, Effect::Run | Effect::Suspend) {
            let mut wrapping = Trace::default();
            let found = wrap::find(&subject, &view, &mut wrapping, &hearing);
            if conclusion.effect == Effect::Run {
                wrappers = found.inner;
                trace.append(wrapping);
            }
            if let Some((reference, why)) = found.undecided {
                conclusion.undecided(reference, why);
            }
        }
        hearing.rest(&subject, &view, |_| Said::Unasked(Unasked::NotRun));
        let reason = conclusion.reason(&subject, view);
        Decision {
            call: Cow::Borrowed(call),
            effect: conclusion.effect,
            reason,
            permitted_by: conclusion.permitted_by,
            approved: conclusion.approved,
            approvals: conclusion.approvals,
            unmatched: conclusion.unmatched,
            answer: conclusion.answer,
            limits: conclusion.limits,
            wrappers,
            question: None,
            required: Vec::new(),
            given: None,
            journals: Vec::new(),
            retry_after: None,
            input: normalised.input,
            trace,
            layers: self.layers.clone(),
            work: 0,
        }
    }

    /// A call as policies see it before it runs.
    pub(crate) fn view<'a>(&'a self, call: &'a ToolCall, session: &'a SessionState) -> CallView<'a> {
        CallView { annotations: self.annotations(call), ..CallView::new(call, session) }
    }

    /// What the tool's server says of the tool of a call.
    pub(crate) fn annotations(&self, call: &ToolCall) -> Option<&'k Value> {
        self.tools.get(call).and_then(|tool| tool.descriptor.annotations.as_ref())
    }

    /// The caches that a call of this tool makes forget.
    pub(crate) fn invalidated_by(&self, call: &ToolCall) -> Vec<(PolicyRef, &Policy)> {
        let subject = self.subject(call);
        let layers = (0u32..).zip(self.layers.iter().zip(&subject.chains));
        let caches = layers.flat_map(|(layer, (chains, chain))| {
            chain
                .invalidates
                .iter()
                .filter_map(move |index| Some((PolicyRef { layer, index: *index }, chains.policy(*index)?)))
        });
        caches.collect()
    }

    /// Why a call is refused that found too little left of a limit.
    pub(crate) fn used_up(
        &self,
        decision: &Decision<'_>,
        session: &SessionState,
        by: PolicyRef,
        retry_after: Option<Duration>,
    ) -> Reason {
        let subject = self.subject(&decision.call);
        let view = CallView { input: &decision.input, ..subject.view(session) };
        let shown = Shown::of(&subject, view);
        let policy = by.find(self.layers);
        let reason =
            policy.and_then(|policy| limits::refusal(&subject, policy, retry_after, &shown.view(view)));
        let mut reason = reason.unwrap_or_else(Self::failure);
        reason.message = shown.text(&reason.message);
        reason
    }

    /// The final arguments of a call, as they may be shown.
    pub(crate) fn shown_input(&self, decision: &Decision<'_>, session: &SessionState) -> Value {
        let subject = self.subject(&decision.call);
        let view = CallView { input: &decision.input, ..subject.view(session) };
        Shown::of(&subject, view).input.into_owned()
    }

    /// Why a call is refused on which Callgate itself failed.
    pub(crate) fn failure() -> Reason {
        Reason { policy: None, code: reason_code::INTERNAL_ERROR.to_owned(), message: UNDECIDABLE.to_owned() }
    }

    fn subject<'a>(&'a self, call: &'a ToolCall) -> Subject<'a> {
        let server = call.server.as_deref().unwrap_or("");
        let chains = self.layers.iter().map(|layer| layer.resolve(server, &call.tool)).collect();
        let (tool, listener) = (self.tools.get(call), self.listener);
        Subject { call, layers: self.layers, chains, tool, listener, keys: self.keys }
    }

    /// Stops the session for a decision that halts. Later calls say why, so it is said as it may be shown of this one.
    pub(crate) fn halt(&self, decision: &Decision<'_>, session: &mut SessionState) {
        let message = catch_unwind(AssertUnwindSafe(|| {
            let subject = self.subject(&decision.call);
            let view = CallView { input: &decision.input, ..subject.view(session) };
            let message = Shown::of(&subject, view).text(&decision.reason().message);
            // What a script or a hook says may have anything in it.
            let policies = subject.policies(|chain| &chain.settle);
            let redactions = policies.filter_map(|(_, policy)| Redaction::of(policy, &view, self.keys));
            redactions.fold(message, |message, redaction| redaction.text(&message))
        }));
        // Wherever it broke off, the halt holds.
        session.halt(message.as_deref().unwrap_or(UNDECIDABLE));
    }

    /// Whether anything is redacted in results of a call.
    pub(crate) fn hides_results(&self, call: &ToolCall) -> bool {
        let subject = self.subject(call);
        let hides = |policy: &Policy| matches!(&policy.kind, Kind::Redact(redact) if redact.output);
        subject
            .policies(|chain| &chain.settle)
            .any(|(_, policy)| policy.mode == Mode::Enforce && hides(policy))
    }

    /// Hides in an outcome that the host's own code has changed all that policies hide. What can't be searched is withheld.
    pub(crate) fn hide(&self, call: &ToolCall, outcome: &mut Outcome, session: &SessionState) {
        let subject = self.subject(call);
        let view = CallView {
            output: outcome.output.as_ref(),
            error: outcome.error.as_deref(),
            ..subject.view(session)
        };
        let redactions: Vec<_> = subject
            .policies(|chain| &chain.settle)
            .filter_map(|(_, policy)| {
                Redaction::of(policy, &view, self.keys).filter(|redaction| redaction.output)
            })
            .collect();
        let mut masks = Masks::new();
        for redaction in redactions {
            let ending = Ending {
                output: outcome.output.as_mut(),
                error: outcome.error.as_mut(),
                message: &mut outcome.reason.message,
                masks: &mut masks,
            };
            if !redaction.ending(&call.input, ending) {
                outcome.output = Some(shown::WITHHELD.into());
            }
        }
    }

    /// Hides in a value, as in the result of a call, all that policies hide.
    pub(crate) fn hide_in(&self, call: &ToolCall, value: &mut Value, session: &SessionState) {
        let reason = Self::failure();
        let of = (call.id.as_str(), call.tool.as_str());
        let mut outcome = Outcome::new(of, OutcomeKind::Executed, Value::Null, reason, String::new());
        outcome.output = Some(value.take());
        self.hide(call, &mut outcome, session);
        *value = outcome.output.unwrap_or_default();
    }

    /// The digest of the rules of all layers.
    pub fn revision(&self) -> String {
        self.layers.iter().map(|layer| layer.revision()).collect::<Vec<_>>().join("+")
    }
}

/// A decision that panics denies.
fn guarded<'c>(call: &'c ToolCall, decide: impl FnOnce() -> Decision<'c>) -> Decision<'c> {
    catch_unwind(AssertUnwindSafe(decide))
        .unwrap_or_else(|_| Decision::refused(call, Effect::Deny, reason_code::INTERNAL_ERROR, UNDECIDABLE))
}

/// What is said of a call on which Callgate itself failed.
const UNDECIDABLE: &str = "Callgate failed to decide this call";

/// A call with the chains and the tool that concern it, found once.
struct Subject<'a> {
    call: &'a ToolCall,
    layers: &'a Layers,
    chains: SmallVec<[Arc<Chain>; 3]>,
    tool: Option<&'a Tool>,
    listener: Option<&'a dyn Listener>,
    keys: &'a Keys,
}

impl<'a> Subject<'a> {
    fn view<'v>(&self, session: &'v SessionState) -> CallView<'v>
    where
        'a: 'v,
    {
        let annotations = self.tool.and_then(|tool| tool.descriptor.annotations.as_ref());
        CallView { annotations, ..CallView::new(self.call, session) }
    }

    /// The policies of one phase over all layers, in the order in which they act.
    fn policies<'s>(&'s self, phase: fn(&Chain) -> &[u32]) -> impl Iterator<Item = (PolicyRef, &'a Policy)> {
        (0u32..).zip(self.layers.iter().zip(&self.chains)).flat_map(move |(layer, (chains, chain))| {
            phase(chain)
                .iter()
                .filter_map(move |index| Some((PolicyRef { layer, index: *index }, chains.policy(*index)?)))
        })
    }

    /// One phase, as it is told to who listens.
    fn hearing(&self, phase: Phase) -> Hearing<'a> {
        Hearing::of(self.listener, phase)
    }

    fn policy(&self, reference: PolicyRef) -> Option<&'a Policy> {
        reference.find(self.layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_deciding_denies() {
        let call = ToolCall::new("c1", "pay", crate::json::json!({}));
        let decision = guarded(&call, || panic!("a mistake in Callgate"));
        assert_eq!((decision.effect(), decision.is_permitted()), (Effect::Deny, false));
        assert_eq!(decision.reason().code, reason_code::INTERNAL_ERROR);
    }
}
