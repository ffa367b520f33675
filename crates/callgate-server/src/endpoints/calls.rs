//! Decides calls, and has their host execute them: decide → execute → report.

use std::sync::Arc;
use std::time::Duration;

use callgate::call::{Outcome, ToolCall};
use callgate::diagnostic::SourceMap;
use callgate::explain::Explanation;
use callgate::host::{ToolError, ToolResponse};
use callgate::json::{self, Value, json};
use callgate::session::Evaluation;
use callgate_http::Access;
use schemars::SchemaGenerator;
use serde::Serialize;

use crate::api::Api;
use crate::call_executor::CallExecutor;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, Method, QueryKind, QueryParameter};
use crate::operation::{Operation, OperationStatus};
use crate::operation_table::{OperationStart, StartRequest};
use crate::problem::Problem;
use crate::random_id;
use crate::request_types::{CallsBody, ReportBody};
use crate::session_factory::{CallerSession, SessionRequest};

/// How long a response waits for the operation by default, in seconds.
const DEFAULT_WAIT: usize = 20;
/// The longest wait, in seconds.
const MAX_WAIT: usize = 60;

/// The parameter of endpoints whose response waits for an operation.
pub(super) const WAIT: &[QueryParameter] = &[QueryParameter::new(
    "wait",
    QueryKind::Number,
    "How many seconds to wait while the operation is running. Default 20, at most 60.",
)];

const STATUSES: &[(u16, &str)] = &[
    (
        200,
        "`status: execute`: execute these calls and report their results. `status: completed`: the outcomes.",
    ),
    (202, "`status: running`: the operation waits, for a limit or the delay of a retry. Ask again."),
];

/// The endpoints of calls.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Post,
        path: "/v1/decide",
        access: Access::Caller,
        summary: "Decide a call or a round of calls. Executes, counts and records nothing.",
        body: Some(SchemaGenerator::subschema_for::<CallsBody>),
        query: &[QueryParameter::new(
            "explain",
            QueryKind::Flag,
            "`true` explains each decision: for each policy, whether it matched and which condition decided that.",
        )],
        responses: &[(
            200,
            "The decision on the call (`decision`), or on each call of the round (`decisions`).",
        )],
        handler: |api, request| Box::pin(decide(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/calls",
        access: Access::Caller,
        summary: "Run a call or a round of calls: decided, counted and claimed here, executed by the host, or here if the tool is of a server in `--servers`.",
        body: Some(SchemaGenerator::subschema_for::<CallsBody>),
        query: WAIT,
        responses: STATUSES,
        handler: |api, request| Box::pin(run_calls(api, request)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/executions/{execution}",
        access: Access::Caller,
        summary: "Report the result of a call that the host executed, and get the next status of its operation.",
        body: Some(SchemaGenerator::subschema_for::<ReportBody>),
        query: WAIT,
        responses: STATUSES,
        handler: |api, request| Box::pin(report(api, request)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/operations/{operation}",
        access: Access::Caller,
        summary: "Get the status of an operation, after a lost connection or while it is running.",
        body: None,
        query: WAIT,
        responses: STATUSES,
        handler: |api, request| Box::pin(status(api, request)),
    },
];

async fn decide(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let explains = request.flag("explain")?;
    let mut body: CallsBody = request.take_body()?;
    let (mut calls, is_round) = body.take_calls()?;
    api.resolve_calls(&mut calls).await?;
    let task = body.task()?;
    let session = SessionRequest { name: body.session, context: body.context, task };
    let CallerSession { mut session, context } = api.open_session(&request.caller, session)?;
    api.complete_calls(&mut calls, &context, &request);
    let evaluations = session.evaluate_round(&calls).await?;
    let explanations = match explains {
        // On the heap: few requests ask for it.
        true => Some(Box::pin(session.explain_round(&calls, &SourceMap::default())).await?),
        false => None,
    };
    ApiResponse::from_document(&Decisions {
        decision: evaluations.first().filter(|_| !is_round),
        decisions: is_round.then_some(evaluations.as_slice()),
        explanation: explanations.as_ref().filter(|_| !is_round).and_then(|all| all.first()),
        explanations: explanations.as_ref().filter(|_| is_round),
    })
}

/// The decisions on a call or a round of calls.
#[derive(Serialize)]
struct Decisions<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'e Evaluation<'e>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<&'e [Evaluation<'e>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'e Option<Explanation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanations: Option<&'e Vec<Option<Explanation>>>,
}

async fn run_calls(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let wait = wait(&request)?;
    let mut body: CallsBody = request.take_body()?;
    let (mut calls, is_round) = body.take_calls()?;
    api.resolve_calls(&mut calls).await?;
    let task = body.task()?;
    let identified = body.session.is_some() && calls.iter().all(|call| !call.id.is_empty());
    let name = body.session.map_or_else(|| random_id::new("s_"), Ok)?;
    let session = SessionRequest { name: Some(name.clone()), context: body.context, task };
    let CallerSession { mut session, context } = api.open_session(&request.caller, session)?;
    api.complete_calls(&mut calls, &context, &request);
    let owner = api.caller_name(&request.caller);
    let key = identified.then(|| calls_key(&owner, &name, &calls));
    let start = StartRequest { owner: &owner, calls: key, retry: request.retry, bytes: request.body_bytes };
    let run = move |executor: CallExecutor| async move {
        let mut outcomes = match is_round {
            true => session.execute_round(calls, &executor).await,
            false => {
                let mut outcomes = Vec::new();
                for call in calls {
                    outcomes.push(session.execute(call, &executor).await);
                }
                outcomes
            }
        };
        outcomes.iter_mut().for_each(|outcome| outcome.session = Some(name.clone()));
        completed(&name, is_round, &outcomes)
    };
    let operation = api.start_operation(start, run)?;
    Ok(respond(operation.status(wait).await))
}

/// The status of an operation whose calls have their outcomes.
fn completed(session: &str, is_round: bool, outcomes: &[Outcome]) -> Value {
    match outcomes {
        [outcome] if !is_round => json!({ "status": "completed", "session": session, "outcome": outcome }),
        outcomes => json!({ "status": "completed", "session": session, "outcomes": outcomes }),
    }
}

/// What identifies calls: a request that is sent again gets the operation of the first.
fn calls_key(owner: &str, session: &str, calls: &[ToolCall]) -> String {
    let parts: Vec<Value> =
        calls.iter().map(|call| json!([call.id, call.tool, call.server, call.input, call.context])).collect();
    json::digest(&json!([owner, session, parts])).to_string()
}

async fn report(api: &Arc<Api>, mut request: ApiRequest) -> Result<ApiResponse, Problem> {
    let wait = wait(&request)?;
    let ReportBody { output, error, interim } = request.take_body()?;
    let result = match (output, error) {
        (Some(output), None) => Ok(ToolResponse { interim, ..output.into() }),
        (None, Some(error)) => Err(ToolError { message: error.message, kind: error.kind }),
        _ => return Err(Problem::invalid("the body must have one of `output` and `error`")),
    };
    let unknown = || Problem::not_found("there is no such execution");
    let (operation, index) = request.parameter(0).rsplit_once('.').ok_or_else(unknown)?;
    let index: usize = index.parse().map_err(|_| unknown())?;
    let operation = api.operations.find(operation, &api.caller_name(&request.caller))?;
    api.operations.check_report(&operation, request.body_bytes)?;
    if operation.report(index, result)? {
        api.operations.hold_report(&operation, request.body_bytes);
    }
    Ok(respond(operation.status(wait).await))
}

async fn status(api: &Arc<Api>, request: ApiRequest) -> Result<ApiResponse, Problem> {
    let operation = api.operations.find(request.parameter(0), &api.caller_name(&request.caller))?;
    Ok(respond(operation.status(wait(&request)?).await))
}

/// How long a response waits for its operation.
pub(super) fn wait(request: &ApiRequest) -> Result<Duration, Problem> {
    let seconds = request.number("wait", DEFAULT_WAIT, MAX_WAIT)?;
    Ok(Duration::from_secs(seconds as u64))
}

/// The response with the status of an operation.
pub(super) fn respond(status: OperationStatus) -> ApiResponse {
    match status {
        OperationStatus::Running(body) => ApiResponse::new(202, &body),
        OperationStatus::Execute(body) | OperationStatus::Completed(body) => ApiResponse::ok(&body),
    }
}

/// Ends an operation, also if its task panics.
struct OperationEnd {
    api: Arc<Api>,
    operation: Arc<Operation>,
    result: Value,
}

impl OperationEnd {
    async fn run(mut self, running: impl Future<Output = Value>) {
        self.result = running.await;
    }
}

impl Drop for OperationEnd {
    fn drop(&mut self) {
        self.operation.complete(self.result.take());
        self.api.operations.end(&self.operation);
    }
}

impl Api {
    /// Runs an operation in a task of its own, or finds the one that an equal request started.
    ///
    /// # Errors
    /// The server is shutting down, or too many operations are in progress.
    pub(super) fn start_operation<R, F>(
        self: &Arc<Self>,
        start: StartRequest<'_>,
        run: R,
    ) -> Result<Arc<Operation>, Problem>
    where
        R: FnOnce(CallExecutor) -> F,
        F: Future<Output = Value> + Send + 'static,
    {
        if *self.closing.borrow() {
            return Err(Problem::unavailable(
                "shutting_down",
                "the server is shutting down; send the call again",
            ));
        }
        let operation = match self.operations.start(start)? {
            OperationStart::Known(operation) => return Ok(operation),
            OperationStart::New(operation) => operation,
        };
        let failed = json!({ "status": "failed", "detail": "Callgate failed to run these calls" });
        let end = OperationEnd { api: Arc::clone(self), operation: Arc::clone(&operation), result: failed };
        let running = run(CallExecutor::new(self, &operation));
        tokio::spawn(end.run(running));
        Ok(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future that a handler returns, in bytes.
    fn future_size<F: Future>(_: impl Fn(&'static Arc<Api>, ApiRequest) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_decision_moves_no_large_future() {
        assert!(future_size(decide) <= 8 << 10, "{} bytes", future_size(decide));
    }
}
