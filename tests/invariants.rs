//! The kernel's invariants, as properties over random bundles and calls.

mod calls;
mod composition;
mod errors;
mod examination;
mod execution;
mod limits;
mod reloads;
mod secrets;
mod vocabulary;
mod widening;
mod work;

use std::sync::Mutex;

use callgate::json::{Value, json};
use callgate::{Effect, Outcome, OutcomeKind, Session, ToolAnswer, ToolCall, ToolError, ToolExecutor};

/// How strict an effect is. The tool's running and a policy's answer count alike, and so do the two ways to refuse.
fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Run | Effect::Answer => 0,
        Effect::Suspend => 1,
        Effect::Invalid | Effect::Deny => 2,
        Effect::Halt => 3,
    }
}

/// The same of an outcome.
fn strictness_of(outcome: &Outcome) -> u8 {
    strictness(match outcome.outcome {
        OutcomeKind::Suspended => Effect::Suspend,
        OutcomeKind::Invalid => Effect::Invalid,
        OutcomeKind::Denied => Effect::Deny,
        OutcomeKind::Halted => Effect::Halt,
        _ => Effect::Run,
    })
}

/// A tool that notes every call which reaches it, and answers with it.
#[derive(Default)]
struct Witness(Mutex<Vec<ToolCall>>);

impl Witness {
    fn seen(&self) -> Vec<ToolCall> {
        self.0.lock().unwrap().clone()
    }
}

impl ToolExecutor for Witness {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        self.0.lock().unwrap().push(call.clone());
        Ok(json!({ "echo": call.input }).into())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn execute(session: &mut Session, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
    block_on(session.execute(call, executor))
}

/// An outcome without what differs from run to run, and without the trace.
fn essence(outcome: &Outcome) -> Value {
    let text = callgate::json::to_string(outcome).unwrap();
    // Where a script stands depends on what else is in the file.
    let places = regex::Regex::new(r"rules\.yaml:\d+:\d+").unwrap();
    let mut value: Value = callgate::json::from_str(&places.replace_all(&text, "rules.yaml")).unwrap();
    // The last is told by the machine's clock.
    for changing in ["revision", "duration_us", "policies", "retry_after_ms"] {
        value.as_object_mut().unwrap().remove(changing);
    }
    // In it is the session's own name.
    if let Some(approval) = value["approval"].as_object_mut() {
        approval.remove("approvalToken");
    }
    value
}
