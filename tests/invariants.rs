//! The kernel's invariants, as property tests over random bundles and calls.

mod argument_texts;
mod calls;
mod composition;
mod differences;
mod errors;
mod examination;
mod execution;
mod index_lookups;
mod limits;
mod rebuilds;
mod reloads;
mod secrets;
mod vocabulary;
mod widening;
mod lookup_work;
mod work;

use std::sync::Mutex;

use callgate::json::{Value, json};
use callgate::{Effect, Outcome, OutcomeKind, Session, ToolCall, ToolError, ToolExecutor, ToolResponse};

/// The strictness of an effect. Running the tool and answering by a policy count alike, and so do the two kinds of refusal.
fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Run | Effect::Answer => 0,
        Effect::Suspend => 1,
        Effect::Invalid | Effect::Deny => 2,
        Effect::Halt => 3,
    }
}

/// The strictness of an outcome.
fn strictness_of(outcome: &Outcome) -> u8 {
    strictness(match outcome.outcome {
        OutcomeKind::Suspended => Effect::Suspend,
        OutcomeKind::Invalid => Effect::Invalid,
        OutcomeKind::Denied => Effect::Deny,
        OutcomeKind::Halted => Effect::Halt,
        _ => Effect::Run,
    })
}

/// A tool that records every call that reaches it, and answers with it.
#[derive(Default)]
struct Witness(Mutex<Vec<ToolCall>>);

impl Witness {
    fn seen(&self) -> Vec<ToolCall> {
        self.0.lock().unwrap().clone()
    }
}

impl ToolExecutor for Witness {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
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

/// An outcome without the trace and everything that varies between runs.
fn normalized_outcome(outcome: &Outcome) -> Value {
    let text = callgate::json::to_string(outcome).unwrap();
    // The position of a script depends on the rest of the file.
    let places = regex::Regex::new(r"rules\.yaml:\d+:\d+").unwrap();
    let mut value: Value = callgate::json::from_str(&places.replace_all(&text, "rules.yaml")).unwrap();
    // The latter is the time of the system clock.
    for changing in ["revision", "duration_us", "policies", "retry_after_ms"] {
        value.as_object_mut().unwrap().remove(changing);
    }
    // It contains the name of the session.
    if let Some(approval) = value["approval"].as_object_mut() {
        approval.remove("approvalToken");
    }
    value
}
