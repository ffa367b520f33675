//! Notifies listeners and observers of a call: its decision, its start, its outcome.

use std::time::Instant;

use super::CallRunner;
use crate::call::{Outcome, OutcomeKind, ToolCall};
use crate::execution::{CallContext, CompletedCall};
use crate::host::{CallDecided, EngineEventKind, ToolCallSpan, ToolCallStart, ToolExecutor};
use crate::kernel::{Decision, Event, notify};

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Notifies observers of the decision on a call that arrived at `started`, its limits included.
    pub(super) fn report_decision(&self, decision: &Decision<'_>, started: Instant) {
        let call = decision.call();
        let Some(origin) = self.context.origin(call, self.state) else { return };
        let input = self.context.kernel.redacted_input(decision, self.state);
        let (reason, policies) = (decision.reason(), decision.policies());
        let decided = CallDecided {
            effect: decision.effect(),
            reason: &reason,
            policies: &policies,
            input: &input,
            duration: started.elapsed(),
        };
        self.context.services.observers.notify_of_call(&origin, EngineEventKind::CallDecided(decided));
    }

    /// Notifies listeners and observers that the execution of a call starts.
    pub(super) fn report_start(&self, decision: &Decision<'_>) {
        let CallContext { kernel, services, .. } = &self.context;
        let call = decision.call();
        notify(kernel.listener, &Event::ExecutionStarted(call));
        let Some(origin) = self.context.origin(call, self.state) else { return };
        let args = kernel.redacted_input(decision, self.state);
        let start = ToolCallStart {
            request_id: origin.run.request_id,
            iteration: origin.run.iteration,
            call_id: &call.id,
            tool: &call.tool,
            server: call.server.as_deref(),
            args: &args,
        };
        services.observers.notify_of_call(&origin, EngineEventKind::CallStarted(start));
    }

    /// Notifies listeners and observers of the outcome of a call.
    pub(crate) fn report(&self, call: &ToolCall, mut outcome: Box<Outcome>) -> Box<Outcome> {
        let CallContext { kernel, services, session, .. } = &self.context;
        outcome.session = session.name.map(str::to_owned);
        notify(kernel.listener, &Event::Ended(&outcome));
        // Observers have seen a replayed outcome before.
        if outcome.replayed {
            return outcome;
        }
        self.submit_to_candidate(call, &outcome);
        let Some(origin) = self.context.origin(call, self.state) else { return outcome };
        let is_pending = outcome.outcome == OutcomeKind::Suspended;
        let shown = if is_pending { None } else { session.formatter.result(&outcome) };
        let shown = shown.map(|result| result.output.text());
        let span = ToolCallSpan {
            request_id: origin.run.request_id,
            iteration: origin.run.iteration,
            outcome: &outcome,
            shown: shown.as_deref(),
        };
        services.observers.notify_of_call(&origin, EngineEventKind::CallCompleted(span));
        outcome
    }

    /// Begins to record a call for candidate rules, if there are any.
    pub(super) fn start_recording(&self) {
        let CallContext { services, session, .. } = &self.context;
        if services.candidate.is_some() {
            session.recording.start(services.observers.now(), self.state);
        }
    }

    /// Has candidate rules evaluate the call, if there are any.
    fn submit_to_candidate(&self, call: &ToolCall, outcome: &Outcome) {
        let CallContext { kernel, services, session, hooks, .. } = &self.context;
        let Some(candidate) = &services.candidate else { return };
        let recorded = session.recording.take();
        let (time, has_past) = recorded.start.unwrap_or_else(|| (services.observers.now(), true));
        let run = hooks.run;
        let context = if call.context.is_null() { &run.context } else { &call.context };
        let is_hook = |id: &String| hooks.all.iter().any(|hook| hook.id() == id);
        candidate.submit(CompletedCall {
            call: call.clone(),
            time,
            conversation: session.conversation.to_owned(),
            session: session.name.map(str::to_owned),
            run: run.request_id.clone(),
            iteration: run.iteration,
            run_info: self.state.run_info().map(|(key, value)| (key.to_string(), value.clone())).collect(),
            context: run.context.clone(),
            shown_context: kernel.redact_context(call, context, self.state).into_owned(),
            task: kernel.task.clone(),
            round: kernel.round,
            has_past,
            lower_layers: kernel.layers.iter().skip(1).cloned().collect(),
            tools: std::sync::Arc::clone(session.tools),
            is_decided_by_hook: outcome.reason.policy.as_ref().is_some_and(is_hook),
            results: recorded.results,
            outcome: outcome.clone(),
        });
    }
}
