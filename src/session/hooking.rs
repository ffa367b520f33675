//! The host's own code before a call is decided, and after it has come to an outcome.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{Outcome, OutcomeKind, Reason, ToolCall, reason_code};
use crate::host::{ToolError, guarded};
use crate::json::{Map, Value};
use crate::kernel::{Decision, Effect};
use crate::lifecycle::{Before, Middleware, OnError, RunContext, ToolEnd};

/// The hooks of a session, in order, with what they know of its run.
#[derive(Clone, Copy)]
pub(super) struct Hooks<'h> {
    pub(super) all: &'h [Arc<dyn Middleware>],
    pub(super) run: &'h RunContext,
}

/// A call as hooks have left it.
pub(super) struct Hooked {
    /// The call that is decided.
    pub(super) call: ToolCall,
    /// The call as the model asked for it, where that is another one.
    pub(super) asked: Option<ToolCall>,
    verdict: Verdict,
}

/// The strictest of what hooks said, with who said it.
enum Verdict {
    Nothing,
    Skip(String, Value),
    Block(String, String),
    Halt(String, String),
}

impl Verdict {
    fn strictness(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Skip(..) => 1,
            Self::Block(..) => 2,
            Self::Halt(..) => 3,
        }
    }
}

impl Hooked {
    /// A call that no hook has seen.
    pub(super) fn untouched(call: ToolCall) -> Self {
        Self { call, asked: None, verdict: Verdict::Nothing }
    }

    /// The call as the model asked for it.
    pub(super) fn asked(&self) -> &ToolCall {
        self.asked.as_ref().unwrap_or(&self.call)
    }

    /// Makes a decision on the call as strict as the hooks are.
    pub(super) fn apply<'c>(&self, mut decision: Decision<'c>) -> Decision<'c> {
        let reason = |by: &str, code: &str, message: &str| Reason {
            policy: Some(by.to_owned()),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        match &self.verdict {
            Verdict::Nothing => {}
            Verdict::Skip(by, output) => decision.give(by.clone(), output.clone()),
            Verdict::Block(by, why) => {
                decision.refuse(Effect::Deny, reason(by, reason_code::BLOCKED, why), None)
            }
            Verdict::Halt(by, why) => {
                decision.refuse(Effect::Halt, reason(by, reason_code::HALTED, why), None)
            }
        }
        decision
    }
}

impl Hooks<'_> {
    /// What hooks make of a call. All are asked, each about the arguments as the one before left them; one that panics blocks it.
    pub(super) async fn before(&self, call: ToolCall) -> Hooked {
        if self.all.is_empty() {
            return Hooked::untouched(call);
        }
        let asked = call.clone();
        let mut hooked = Hooked::untouched(call);
        let mut edited = false;
        for hook in self.all {
            let concerned =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook.concerns(&hooked.call)));
            let said = match concerned {
                Ok(false) => continue,
                Ok(true) => guarded(async { hook.before(self.run, &hooked.call).await }).await.ok(),
                Err(_) => None,
            };
            let by = || hook.id().to_owned();
            let verdict = match said {
                Some(Before::Continue) => continue,
                Some(Before::Edit(input)) => {
                    hooked.call.input = input;
                    edited = true;
                    continue;
                }
                Some(Before::Annotate(members)) => {
                    annotate(&mut hooked.call.context, members);
                    continue;
                }
                Some(Before::Skip(output)) => Verdict::Skip(by(), output),
                Some(Before::Block(why)) => Verdict::Block(by(), why),
                Some(Before::Halt(why)) => Verdict::Halt(by(), why),
                None => Verdict::Block(by(), "a hook failed before this call was decided".to_owned()),
            };
            if verdict.strictness() > hooked.verdict.strictness() {
                hooked.verdict = verdict;
            }
        }
        hooked.asked = edited.then_some(asked);
        hooked
    }

    /// What hooks make of an error, and then what they are told of the end, in reverse order. The tool has run, so whatever a
    /// hook does wrong changes nothing. `hide` hides in what a hook gives all that policies hide.
    pub(super) async fn after(
        &self,
        call: &ToolCall,
        mut outcome: Outcome,
        hide: impl Fn(&mut Outcome),
    ) -> Outcome {
        let concerned = |hook: &&Arc<dyn Middleware>| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook.concerns(call))).unwrap_or(false)
        };
        for hook in self.all.iter().rev().filter(concerned) {
            if outcome.outcome != OutcomeKind::Failed {
                break;
            }
            let message = outcome.error.clone().unwrap_or_default();
            let error = match outcome.reason.code.as_str() {
                reason_code::TOOL_ERROR => ToolError::new(message),
                kind => ToolError::new(message).of_kind(kind),
            };
            match guarded(async { hook.on_error(self.run, call, &error).await }).await {
                Ok(OnError::Replace(other)) => {
                    outcome.reason.code = other.kind.unwrap_or_else(|| reason_code::TOOL_ERROR.to_owned());
                    outcome.reason.message.clone_from(&other.message);
                    outcome.error = Some(other.message);
                    hide(&mut outcome);
                }
                Ok(OnError::Recover(output)) => {
                    outcome.outcome = OutcomeKind::Recovered;
                    outcome.reason.code = reason_code::RECOVERED.to_owned();
                    (outcome.output, outcome.error) = (Some(output), None);
                    hide(&mut outcome);
                }
                Ok(OnError::Keep) | Err(_) => {}
            }
        }
        let end = ToolEnd { outcome: &outcome, duration: Duration::from_micros(outcome.duration_us) };
        for hook in self.all.iter().rev().filter(concerned) {
            let _ = guarded(async { hook.after(self.run, &end).await }).await;
        }
        outcome
    }
}

/// Adds members to the `metadata` of a context.
fn annotate(context: &mut Value, members: Map) {
    if !context.is_object() {
        *context = Value::Object(Map::new());
    }
    let Some(context) = context.as_object_mut() else { return };
    match context.get_mut("metadata") {
        Some(Value::Object(known)) => known.extend(members),
        _ => drop(context.insert("metadata".to_owned(), members.into())),
    }
}
