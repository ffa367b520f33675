//! Runs the host's hooks before and after one call: `ToolCall` → `HookedCall` → `Decision`, and `Outcome` → `Outcome`.
//!
//! A call is decided only as a [`HookedCall`] one, live, resumed, or made of another call by an `around` hook or script. So what a hook said of
//! it is never lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::Observers;
use crate::approval::{ApprovalRequirement, Permit};
use crate::call::{Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code};
use crate::host::{EngineEvent, EngineEventKind, HookFailure, RunIdentity, ToolError, catch_panic};
use crate::json::{self, Map, Value, json};
use crate::kernel::{Decision, Effect, ExtraApproval, HeldResources, Kernel};
use crate::lifecycle::{
    BeforeAction, ErrorAction, HookCall, Middleware, RequiredApproval, RunContext, ToolCallEnd,
};
use crate::principal::PrincipalComparison;
use crate::tools::ToolSet;

/// The layer in the permits of hooks, which no layer of policies has.
const LAYER: u32 = u32::MAX;
/// The message for observers of a panic.
const PANICKED: &str = "it panicked";

/// The hooks of a session, in order, with their arguments.
#[derive(Clone, Copy)]
pub(crate) struct HookRunner<'h> {
    pub(crate) all: &'h [Arc<dyn Middleware>],
    pub(crate) run: &'h RunContext,
    pub(crate) tools: &'h ToolSet,
    pub(crate) observers: &'h Observers,
}

/// A call as hooks left it, with their decisions on it.
pub(crate) struct HookedCall {
    /// The call that is decided. On the heap: every future that passes it on has room for it.
    pub(crate) call: Box<ToolCall>,
    /// The call as the model made it, if hooks changed its arguments or its context.
    requested: Option<Box<ToolCall>>,
    verdict: HookDecision,
    required: Vec<ExtraApproval>,
    offered: bool,
}

/// The strictest decision of the hooks, with the id of its hook. Required approvals are kept beside it, for all of them count.
enum HookDecision {
    Continue,
    Skip(String, Value),
    Block(String, String),
    Halt(String, String),
}

impl HookDecision {
    fn strictness(&self) -> u8 {
        match self {
            Self::Continue => 0,
            Self::Skip(..) => 1,
            Self::Block(..) => 2,
            Self::Halt(..) => 3,
        }
    }
}

impl HookedCall {
    /// A call that no hook has seen.
    pub(crate) fn untouched(call: impl Into<Box<ToolCall>>) -> Self {
        Self {
            call: call.into(),
            requested: None,
            verdict: HookDecision::Continue,
            required: Vec::new(),
            offered: true,
        }
    }

    /// The call as the model made it.
    pub(crate) fn requested(&self) -> &ToolCall {
        self.requested.as_deref().unwrap_or(&self.call)
    }

    /// The model was not offered the tool: the call is denied, whatever else is decided.
    pub(crate) fn refuse_unoffered(&mut self) {
        self.offered = false;
    }

    /// The decision on the call: that of the policies, made as strict as the hooks are.
    pub(crate) fn decide<'c>(
        &'c self,
        kernel: &Kernel<'_>,
        state: &SessionState,
        held: HeldResources<'_>,
    ) -> Box<Decision<'c>> {
        let mut decision = kernel.decide_holding(&self.call, state, held);
        for requirement in &self.required {
            decision.require_approval(requirement.clone(), held.permits);
        }
        let reason = |by: &str, code: &str, message: &str| Reason {
            policy: Some(by.to_owned()),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        match &self.verdict {
            HookDecision::Continue => {}
            HookDecision::Skip(by, output) => decision.give(by.clone(), output.clone()),
            HookDecision::Block(by, why) => {
                decision.refuse(Effect::Deny, reason(by, reason_code::BLOCKED, why), None);
            }
            HookDecision::Halt(by, why) => {
                decision.refuse(Effect::Halt, reason(by, reason_code::HALTED, why), None);
            }
        }
        if !self.offered {
            let message = format!("the tool `{}` was not offered to the model", self.call.tool);
            let code = reason_code::NOT_OFFERED.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message }, None);
        }
        decision
    }
}

impl<'h> HookRunner<'h> {
    /// Runs the `before` hooks, each on the arguments as the one before left them. A hook that panics blocks the call.
    pub(crate) async fn before(&self, call: Box<ToolCall>) -> HookedCall {
        let mut hooked = HookedCall::untouched(call);
        for hook in self.all {
            let action = match self.concerns(hook, &hooked.call) {
                Some(false) => continue,
                Some(true) => {
                    let result = catch_panic(async { hook.before(&self.seen(&hooked.call)).await }).await;
                    result.map_err(|_| self.failed(hook, "before", PANICKED)).ok()
                }
                None => None,
            };
            let by = || hook.id().to_owned();
            let verdict = match action {
                Some(BeforeAction::Continue) => continue,
                Some(BeforeAction::Edit(input)) => {
                    hooked.requested.get_or_insert_with(|| hooked.call.clone());
                    *hooked.call = hooked.call.with_input(input);
                    continue;
                }
                Some(BeforeAction::Annotate(members)) => {
                    hooked.requested.get_or_insert_with(|| hooked.call.clone());
                    annotate(&mut hooked.call.context, members);
                    continue;
                }
                Some(BeforeAction::RequireApproval(required)) => {
                    hooked.required.push(requirement(by(), required));
                    continue;
                }
                Some(BeforeAction::Skip(output)) => HookDecision::Skip(by(), output),
                Some(BeforeAction::Block(why)) => HookDecision::Block(by(), why),
                Some(BeforeAction::Halt(why)) => HookDecision::Halt(by(), why),
                None => HookDecision::Block(by(), "a `before` hook failed".to_owned()),
            };
            if verdict.strictness() > hooked.verdict.strictness() {
                hooked.verdict = verdict;
            }
        }
        hooked
    }

    /// Runs the `on_error` hooks, and then the `after` hooks, in reverse order. The tool has run, so a hook that fails changes nothing.
    /// `redact` redacts what a hook returns.
    pub(crate) async fn after(
        &self,
        call: &ToolCall,
        mut outcome: Box<Outcome>,
        redact: impl Fn(&mut Outcome),
    ) -> Box<Outcome> {
        let matching: Vec<&Arc<dyn Middleware>> =
            self.all.iter().rev().filter(|hook| self.concerns(hook, call) == Some(true)).collect();
        for hook in &matching {
            if outcome.outcome != OutcomeKind::Failed {
                break;
            }
            let message = outcome.error.clone().unwrap_or_default();
            let error = match outcome.reason.code.as_str() {
                reason_code::TOOL_ERROR => ToolError::new(message),
                kind => ToolError::new(message).with_kind(kind),
            };
            match catch_panic(async { hook.on_error(&self.seen(call), &error).await }).await {
                Ok(ErrorAction::Replace(other)) => {
                    outcome.reason.code = other.kind.unwrap_or_else(|| reason_code::TOOL_ERROR.to_owned());
                    outcome.reason.message.clone_from(&other.message);
                    outcome.error = Some(other.message);
                    redact(&mut outcome);
                }
                Ok(ErrorAction::Recover(output)) => {
                    outcome.outcome = OutcomeKind::Recovered;
                    outcome.reason.code = reason_code::RECOVERED.to_owned();
                    (outcome.output, outcome.error) = (Some(output), None);
                    redact(&mut outcome);
                }
                Ok(ErrorAction::Keep) => {}
                Err(_) => self.failed(hook, "on_error", PANICKED),
            }
        }
        let HookCall { descriptor, run, .. } = self.seen(call);
        let duration = Duration::from_micros(outcome.duration_us);
        let end = ToolCallEnd { outcome: &outcome, descriptor, run, duration };
        for hook in &matching {
            if catch_panic(async { hook.after(&end).await }).await.is_err() {
                self.failed(hook, "after", PANICKED);
            }
        }
        outcome
    }

    /// A call as a hook receives it.
    pub(super) fn seen<'c>(&self, call: &'c ToolCall) -> HookCall<'c>
    where
        'h: 'c,
    {
        let descriptor = self.tools.get(call).map(|tool| &tool.descriptor);
        HookCall { call, descriptor, run: self.run }
    }

    /// Whether a hook concerns a call; `None` if it panicked, which is reported.
    pub(super) fn concerns(&self, hook: &Arc<dyn Middleware>, call: &ToolCall) -> Option<bool> {
        self.call(hook, "concerns", |hook, _| hook.applies_to(&self.seen(call)))
    }

    /// Calls one hook. Returns `None` if it panicked, which is reported.
    pub(crate) fn call<T>(
        &self,
        hook: &Arc<dyn Middleware>,
        point: &'static str,
        call: impl FnOnce(&dyn Middleware, &RunContext) -> T,
    ) -> Option<T> {
        let called = catch_unwind(AssertUnwindSafe(|| call(&**hook, self.run)));
        if called.is_err() {
            self.failed(hook, point, PANICKED);
        }
        called.ok()
    }

    /// Notifies observers of a hook that failed.
    pub(crate) fn failed(&self, hook: &Arc<dyn Middleware>, point: &'static str, message: &str) {
        let failure = HookFailure { request_id: &self.run.request_id, hook: hook.id(), point, message };
        let conversation = self.run.conversation_id.as_deref().unwrap_or_default();
        let RunContext { request_id, iteration, .. } = self.run;
        let run = RunIdentity { request_id, iteration: *iteration, session: None, conversation };
        self.observers.notify_all(&EngineEvent {
            time: self.observers.now(),
            revision: "",
            run: Some(run),
            call: None,
            kind: EngineEventKind::HookFailed(failure),
        });
    }
}

/// The approval that a hook requires, as the ledger and the request have it. It is identified by the hook's id and everything that it states.
fn requirement(by: String, required: RequiredApproval) -> ExtraApproval {
    let RequiredApproval { message, approvers, quorum, expires } = required;
    let quorum = quorum.max(1);
    let lifetime = expires.map(|expires| expires.as_millis().to_string());
    let behaviour = json::digest(&json!(["hook", by, message, approvers, quorum, lifetime]));
    // The decision binds it to its final arguments.
    let permit = Permit { layer: LAYER, policy: Some(by), behaviour, about: behaviour };
    // A host's names are compared in canonical form, which is stricter towards who answers for themselves.
    let principals = PrincipalComparison::Canonical;
    let asker = ApprovalRequirement {
        permit,
        approvers,
        quorum,
        principals,
        anonymous: false,
        by_link: false,
        edits: Vec::new(),
        remember: None,
    };
    ExtraApproval { asker, text: message, expires }
}

/// Adds members to the `metadata` of a context.
fn annotate(context: &mut Value, members: Map) {
    if !context.is_object() {
        *context = Value::Object(Map::new());
    }
    let Some(context) = context.as_object_mut() else { return };
    match context.get_mut("metadata") {
        Some(Value::Object(known)) => known.extend(members),
        _ => drop(context.insert("metadata", members.into())),
    }
}
