//! An operation: calls that the server evaluates and the host executes. `RemoteExecutor` hands a call over, and waits for the report.
//!
//! The session runs in a task of its own. When it reaches a tool, the call has been decided, counted and claimed; the executor then shows
//! it to the host as an [`Execution`], and the host reports the result. What happens afterwards (retries, redaction, labels) is the
//! session's.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::call::ToolCall;
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::{self, Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::problem::Problem;

/// The result that a host reports.
pub(crate) type ReportedResult = Result<ToolResponse, ToolError>;

/// An operation in progress, or one that has ended.
pub(crate) struct Operation {
    pub(crate) id: String,
    /// The name of the caller that it belongs to.
    pub(crate) owner: String,
    /// What identifies its calls, if anything does.
    pub(crate) calls: Option<String>,
    /// What identifies the request that started it, if anything does.
    pub(crate) retry: Option<RetryKey>,
    /// The bytes of its requests, while it is in progress.
    pub(crate) held_bytes: AtomicUsize,
    /// How long the host may take to report a result.
    report_timeout: Duration,
    state: Mutex<OperationState>,
    /// Changes with every change of the state.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct OperationState {
    executions: Vec<Execution>,
    /// The response when all calls have their outcomes.
    result: Option<Value>,
    ended: Option<Instant>,
}

/// A call that the host executes.
struct Execution {
    /// The call as the host runs it.
    call: ToolCall,
    stage: ExecutionStage,
}

enum ExecutionStage {
    /// The host has not reported its result.
    Waiting(oneshot::Sender<ReportedResult>),
    /// The result with this digest was reported.
    Reported(String),
    /// Nobody waits for its result any more, for this reason.
    Abandoned(&'static str),
}

/// The present state of an operation, for its host.
#[derive(Debug, PartialEq)]
pub(crate) enum OperationStatus {
    /// The host has calls to execute.
    Execute(Value),
    /// The operation waits for something else than the host, such as a limit or the delay of a retry.
    Running(Value),
    /// All calls have their outcomes.
    Completed(Value),
}

const TIMED_OUT: &str = "the host did not report a result in time; the tool may have taken effect";
const DROPPED: &str = "a policy ended the execution before its result was reported, such as a timeout";

/// What identifies a request that may be sent again (the header `Idempotency-Key`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetryKey {
    /// The caller's key.
    pub(crate) key: String,
    /// The digest of endpoint, parameters and body.
    pub(crate) content: String,
}

/// By what else than its id an operation is found.
#[derive(Default)]
pub(crate) struct OperationNames {
    /// What identifies its calls.
    pub(crate) calls: Option<String>,
    /// What identifies the request that started it.
    pub(crate) retry: Option<RetryKey>,
}

impl Operation {
    /// An operation with this id, of this caller.
    pub(crate) fn new(
        id: String,
        owner: String,
        names: OperationNames,
        report_timeout: Duration,
    ) -> Arc<Self> {
        let OperationNames { calls, retry } = names;
        let (state, changes) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(Self {
            id,
            owner,
            calls,
            retry,
            held_bytes: AtomicUsize::new(0),
            report_timeout,
            state,
            changes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, OperationState> {
        // Every update is a single step, so a panic elsewhere leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Ends the operation with its response.
    pub(crate) fn complete(&self, result: Value) {
        {
            let mut state = self.lock();
            if state.result.is_some() {
                return;
            }
            state.result = Some(result);
            state.ended = Some(Instant::now());
        }
        self.changed();
    }

    /// About how many bytes its response has.
    pub(crate) fn result_bytes(&self) -> usize {
        self.lock().result.as_ref().map_or(0, json::approximate_size)
    }

    /// How long ago it ended. `None` if it has not.
    pub(crate) fn ended_since(&self) -> Option<Duration> {
        self.lock().ended.map(|ended| ended.elapsed())
    }

    /// The state after at most `wait`: earlier if the host has something to execute, or the operation has ended.
    pub(crate) async fn status(&self, wait: Duration) -> OperationStatus {
        let mut changes = self.changes.subscribe();
        let deadline = Instant::now() + wait;
        loop {
            let status = self.present_status();
            if !matches!(status, OperationStatus::Running(_)) {
                return status;
            }
            match tokio::time::timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return self.present_status(),
            }
        }
    }

    fn present_status(&self) -> OperationStatus {
        let state = self.lock();
        if let Some(result) = &state.result {
            return OperationStatus::Completed(result.clone());
        }
        let waiting = state.executions.iter().enumerate();
        let waiting = waiting.filter(|(_, execution)| matches!(execution.stage, ExecutionStage::Waiting(_)));
        let executions: Vec<Value> =
            waiting.map(|(index, Execution { call, .. })| self.execution_document(index, call)).collect();
        match executions.is_empty() {
            true => OperationStatus::Running(json!({ "status": "running", "operation": self.id })),
            false => OperationStatus::Execute(
                json!({ "status": "execute", "operation": self.id, "executions": executions }),
            ),
        }
    }

    fn execution_document(&self, index: usize, call: &ToolCall) -> Value {
        json!({
            "id": format!("{}.{index}", self.id),
            "call": call.id,
            "tool": call.tool,
            "server": call.server,
            "input": call.input,
        })
    }

    /// Records the result that the host reports for an execution, and returns whether it is new: the same report may be sent again.
    ///
    /// # Errors
    /// There is no such execution, its result was reported with another content, or nobody waits for it any more.
    pub(crate) fn report(&self, index: usize, result: ReportedResult) -> Result<bool, Problem> {
        let digest = report_digest(&result);
        let mut state = self.lock();
        let execution = state
            .executions
            .get_mut(index)
            .ok_or_else(|| Problem::not_found("the operation has no such execution"))?;
        match &execution.stage {
            ExecutionStage::Reported(known) if *known == digest => return Ok(false),
            ExecutionStage::Reported(_) => {
                let detail = "another result was reported for this execution; the first one counts";
                return Err(Problem::new(409, "already_reported", detail));
            }
            ExecutionStage::Abandoned(why) => return Err(Problem::new(410, "abandoned", *why)),
            ExecutionStage::Waiting(_) => {}
        }
        let before = std::mem::replace(&mut execution.stage, ExecutionStage::Reported(digest));
        if let ExecutionStage::Waiting(receiver) = before
            && receiver.send(result).is_err()
        {
            execution.stage = ExecutionStage::Abandoned(DROPPED);
            return Err(Problem::new(410, "abandoned", DROPPED));
        }
        Ok(true)
    }

    /// Hands a call over to the host.
    fn hand_over(&self, call: &ToolCall) -> (usize, oneshot::Receiver<ReportedResult>) {
        let (sender, receiver) = oneshot::channel();
        let index = {
            let mut state = self.lock();
            state.executions.push(Execution { call: call.clone(), stage: ExecutionStage::Waiting(sender) });
            state.executions.len().saturating_sub(1)
        };
        self.changed();
        (index, receiver)
    }

    /// Notes that nobody waits for an execution any more.
    fn abandon(&self, index: usize, why: &'static str) {
        let is_changed = {
            let mut state = self.lock();
            match state.executions.get_mut(index) {
                Some(execution) if matches!(execution.stage, ExecutionStage::Waiting(_)) => {
                    execution.stage = ExecutionStage::Abandoned(why);
                    true
                }
                _ => false,
            }
        };
        if is_changed {
            self.changed();
        }
    }
}

fn report_digest(result: &ReportedResult) -> String {
    let content = match result {
        Ok(response) => json!([response.output, response.interim]),
        Err(error) => json!([error.message, error.kind, "error"]),
    };
    json::digest(&content).to_string()
}

/// Has the host of an operation execute tools.
pub(crate) struct RemoteExecutor {
    pub(crate) operation: Arc<Operation>,
}

/// Abandons an execution if its future is dropped.
struct AbandonOnDrop<'o> {
    operation: &'o Operation,
    index: usize,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.operation.abandon(self.index, DROPPED);
    }
}

impl ToolExecutor for RemoteExecutor {
    async fn execute(&self, call: &ToolCall) -> ReportedResult {
        let operation = &*self.operation;
        let (index, result) = operation.hand_over(call);
        let _guard = AbandonOnDrop { operation, index };
        match tokio::time::timeout(operation.report_timeout, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => {
                operation.abandon(index, TIMED_OUT);
                Err(ToolError::new(TIMED_OUT).with_kind("unavailable"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> Arc<Operation> {
        Operation::new("op_1".into(), "ana".into(), OperationNames::default(), Duration::from_secs(60))
    }

    fn spawn(operation: &Arc<Operation>) -> tokio::task::JoinHandle<ReportedResult> {
        let executor = RemoteExecutor { operation: Arc::clone(operation) };
        tokio::spawn(async move { executor.execute(&ToolCall::new("c1", "pay", json!({ "n": 1 }))).await })
    }

    #[tokio::test(start_paused = true)]
    async fn hands_a_call_over_and_takes_one_report() {
        let operation = operation();
        let execution = spawn(&operation);
        let OperationStatus::Execute(status) = operation.status(Duration::from_secs(1)).await else {
            panic!("nothing to execute")
        };
        assert_eq!(status["executions"][0]["id"], "op_1.0");
        assert_eq!(status["executions"][0]["input"], json!({ "n": 1 }));
        let report = |output: Value| operation.report(0, Ok(output.into()));
        assert_eq!(report(json!("paid")), Ok(true));
        assert_eq!(report(json!("paid")), Ok(false), "a repeated report changes nothing");
        assert_eq!(report(json!("not paid")).unwrap_err().code, "already_reported");
        assert_eq!(operation.report(1, Ok(json!(1).into())).unwrap_err().status, 404);
        assert_eq!(execution.await.unwrap().unwrap().output, json!("paid"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_execution_without_report_fails_after_its_timeout() {
        let operation = operation();
        let execution = spawn(&operation);
        assert_eq!(execution.await.unwrap().unwrap_err().kind.as_deref(), Some("unavailable"));
        assert_eq!(operation.report(0, Ok(json!(1).into())).unwrap_err().code, "abandoned");
    }

    #[tokio::test(start_paused = true)]
    async fn an_execution_that_a_policy_ended_is_not_shown_again() {
        let operation = operation();
        let execution = spawn(&operation);
        operation.status(Duration::from_secs(1)).await;
        execution.abort();
        let _ = execution.await;
        assert!(matches!(operation.status(Duration::ZERO).await, OperationStatus::Running(_)));
        assert_eq!(operation.report(0, Ok(json!(1).into())).unwrap_err().code, "abandoned");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_the_result_as_long_as_asked() {
        let operation = operation();
        assert!(matches!(operation.status(Duration::from_secs(5)).await, OperationStatus::Running(_)));
        operation.complete(json!({ "status": "completed" }));
        operation.complete(json!({ "status": "again" }));
        let status = operation.status(Duration::from_secs(5)).await;
        assert_eq!(status, OperationStatus::Completed(json!({ "status": "completed" })));
    }
}
