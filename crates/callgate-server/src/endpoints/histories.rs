//! Runs the calls of a message history, and resumes it after its approvals.

use std::sync::Arc;

use callgate::json::{Value, json};
use callgate::message::{Dialect, History};
use callgate_http::Access;
use schemars::SchemaGenerator;

use super::calls::{WAIT, respond, wait};
use crate::api::Api;
use crate::call_executor::CallExecutor;
use crate::endpoint::{ApiRequest, ApiResponse, Endpoint, Method};
use crate::operation_table::StartRequest;
use crate::problem::Problem;
use crate::request_types::{HistoryBody, parse_task};
use crate::session_factory::{CallerSession, SessionRequest};

const RESPONSES: &[(u16, &str)] = &[
    (
        200,
        "`status: execute`: execute these calls and report their results. `status: completed`: the messages with results and approval requests.",
    ),
    (202, "`status: running`: the operation waits. Ask again."),
];

/// The endpoints of histories.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Post,
        path: "/v1/histories/{dialect}/round",
        access: Access::Caller,
        summary: "Run the calls of the model's last message, and add their results and approval requests to the history.",
        body: Some(SchemaGenerator::subschema_for::<HistoryBody>),
        query: WAIT,
        responses: RESPONSES,
        handler: |api, request| Box::pin(run(api, request, HistoryStep::Round)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/histories/{dialect}/resume",
        access: Access::Caller,
        summary: "Resume a history before its model is called: run the calls that were approved since.",
        body: Some(SchemaGenerator::subschema_for::<HistoryBody>),
        query: WAIT,
        responses: RESPONSES,
        handler: |api, request| Box::pin(run(api, request, HistoryStep::Resume)),
    },
];

/// What to do with a history.
#[derive(Clone, Copy)]
enum HistoryStep {
    Round,
    Resume,
}

async fn run(api: &Arc<Api>, mut request: ApiRequest, step: HistoryStep) -> Result<ApiResponse, Problem> {
    let wait = wait(&request)?;
    let name = request.parameter(0).to_owned();
    let dialect = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or_else(|| {
        let known: Vec<&str> = Dialect::ALL.into_iter().map(Dialect::name).collect();
        Problem::not_found(format!("there is no such dialect; use one of: {}", known.join(", ")))
    })?;
    let body: HistoryBody = request.take_body()?;
    let task = parse_task(body.task.as_ref())?;
    let mut history = History::read(dialect, &body.messages)
        .map_err(|error| Problem::invalid(format!("`messages` are no history of {name}: {error}")))?;
    api.wait_for_servers_of(&history).await;
    let name = body.session;
    let session = SessionRequest { name: Some(name.clone()), context: body.context, task };
    let CallerSession { mut session, .. } = api.open_session(&request.caller, session)?;
    let run = move |executor: CallExecutor| async move {
        let round = match step {
            HistoryStep::Round => session.run_round(&mut history, &executor).await,
            HistoryStep::Resume => session.resume(&mut history, &executor).await,
        };
        let round = match round {
            Ok(round) => round,
            Err(error) => return json!({ "status": "failed", "session": name, "detail": error.to_string() }),
        };
        let is_suspended = round.is_suspended();
        let mut outcomes = round.outcomes;
        outcomes.iter_mut().for_each(|outcome| outcome.session = Some(name.clone()));
        let ignored: Vec<Value> =
            round.ignored.iter().map(|ignored| json!({ "code": ignored.code, "why": ignored.why })).collect();
        json!({
            "status": "completed",
            "session": name,
            "messages": history.write(dialect),
            "outcomes": outcomes,
            "suspended": is_suspended,
            "ignored": ignored,
        })
    };
    let owner = api.caller_name(&request.caller);
    let start = StartRequest { owner: &owner, calls: None, retry: request.retry, bytes: request.body_bytes };
    let operation = api.start_operation(start, run)?;
    Ok(respond(operation.status(wait).await))
}
