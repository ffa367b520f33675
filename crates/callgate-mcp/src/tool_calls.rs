//! Handles `tools/call`: evaluates the call against the policies, forwards it to its server, and converts the outcome to a response.

mod executor;

use tokio::sync::watch;

use self::executor::{CallRequest, UpstreamExecutor};
use super::approval_channels::{self, ApprovalChannel, ClientReply};
use super::call_problem::{CallProblem, find_call_problem};
use super::call_result;
use super::client_sender::ClientSender;
use super::connection::ClientConnection;
use super::continuations::ApprovedContinuation;
use super::jsonrpc::{JsonRpcMessage, RequestId, code};
use super::method;
use super::pending_messages::{self, ClientPrompt};
use super::task_source::TaskSource;
use super::tool_list;
use callgate::call::{OutcomeKind, ToolCall};
use callgate::json::{Map, Value};
use callgate::message::RequestPart;
use callgate::safe_text::escape_controls;

/// The maximum number of approval requests sent to the client while one call is open.
const MAX_APPROVAL_REQUESTS: usize = 8;

/// Runs a call and returns the response. Returns `None` if the client cancelled it and the server did not answer.
pub(super) async fn call_tool(
    connection: &ClientConnection,
    mut message: JsonRpcMessage,
    id: &RequestId,
    sender: &ClientSender,
    cancelled: watch::Receiver<bool>,
) -> Option<JsonRpcMessage> {
    let reply = approval_channels::take_reply(&mut message);
    let invalid = |why: &str| Some(JsonRpcMessage::error_response(Some(id), code::INVALID_PARAMS, why, None));
    let Some(name) = message.param("name").and_then(Value::as_str) else {
        return invalid("`name` must be a string, the name of a tool");
    };
    if let Some(member) =
        method::find_ambiguous_member(message.params().into_iter().flatten(), &["name", "arguments"])
    {
        return invalid(&format!(
            "ambiguous parameter `{}`: some parsers read it as another one",
            escape_controls(member)
        ));
    }
    let Some((upstream, tool)) = connection.upstreams.route(name) else {
        return invalid(&format!("unknown tool `{}`", escape_controls(name)));
    };
    tool_list::load_tools(&connection.session, upstream, &message).await;
    match find_call_problem(connection, upstream, (name, tool), &arguments(&message)) {
        Some(CallProblem::Ambiguous(why)) => return invalid(&why),
        Some(CallProblem::Quarantined(why)) => {
            let result = call_result::from_quarantine(&why);
            return Some(JsonRpcMessage::response(id, call_result::adapt_to_protocol(&message, result)));
        }
        None => {}
    }
    let mut call = ToolCall::new(connection.requests.new_call_id(), tool, arguments(&message))
        .with_server(upstream.name());
    call.context.clone_from(&connection.context);
    message.set_trace_of(&mut call);
    connection.gateway.name_span(&mut call);
    let request = CallRequest { message: &message, id, tool };
    let executor = UpstreamExecutor::new(connection, upstream, request, cancelled);
    let response = run(&executor, call, &reply, sender).await;
    // The client cancelled the call, and the server did not answer it.
    if executor.is_cancelled() {
        return None;
    }
    connection.upstreams.cancel_pending(id).await;
    Some(response)
}

/// Runs a call to its response, and asks for approvals on the way. `sender`: the queue for messages that belong to the call.
///
/// Executions are boxed: their futures are large, and would be copied with each future around them.
async fn run(
    executor: &UpstreamExecutor<'_>,
    mut call: ToolCall,
    reply: &ClientReply,
    sender: &ClientSender,
) -> JsonRpcMessage {
    let (connection, message) = (executor.connection, executor.request.message);
    let told = message.task().cloned().or_else(|| connection.gateway.task.as_ref().map(TaskSource::read));
    let session = &connection.session.with_task(told.unwrap_or_default());
    let mut was_prompted = false;
    let mut outcome = match &reply.request {
        Some(request) => {
            call.id.clone_from(&request.tool_call_id);
            Box::pin(session.resume_call(call.clone(), request, &reply.answers, executor)).await
        }
        None => Box::pin(session.execute(call.clone(), executor)).await,
    };
    for _ in 0..MAX_APPROVAL_REQUESTS {
        let Some(pending) = outcome.approval.clone().filter(|_| outcome.outcome == OutcomeKind::Suspended)
        else {
            break;
        };
        let request = RequestPart::from(&pending);
        let channel = match session.allows_anonymous_answers(&request) && !reply.is_dismissed {
            true => ApprovalChannel::select(message, &connection.client),
            false => ApprovalChannel::Unavailable,
        };
        call.id.clone_from(&pending.tool_call_id);
        let answer = match channel {
            ApprovalChannel::InputRequired => match connection.continuations.take(&call, message, &request) {
                Some(approved) => Some(approved.answer(&request)),
                None => {
                    let result = approval_channels::input_required_result(message, &request);
                    return JsonRpcMessage::response(executor.request.id, result);
                }
            },
            ApprovalChannel::Elicitation => {
                was_prompted = true;
                approval_channels::elicit(&connection.requests, sender, &request).await
            }
            ApprovalChannel::Unavailable => None,
        };
        let Some(answer) = answer else { break };
        connection.gateway.name_span(&mut call);
        outcome = Box::pin(session.resume_call(call.clone(), &request, &[answer], executor)).await;
    }
    if let Some(pending) = &outcome.approval {
        let gateway = &connection.gateway;
        if !outcome.replayed {
            gateway.log_pending(pending);
        }
        let prompt = match was_prompted || reply.is_dismissed {
            true => ClientPrompt::Unanswered,
            false => ClientPrompt::NotAsked,
        };
        let askers = session.approval_requirements(&RequestPart::from(pending)).unwrap_or_default();
        let is_answerable = gateway.approval_state.is_some();
        let message =
            pending_messages::agent_message(&askers, prompt, is_answerable, &outcome.reason.message);
        outcome.error = Some(message);
    }
    let approved = outcome.approved.clone();
    let response = executor.client_response(&call, outcome);
    connection.tasks.record(&call, &response);
    if let Some(approved) = approved.filter(|approved| ApprovedContinuation::is_possible(approved, &response))
        && let Some(request) = session.find_request(&approved.approval_id).await
    {
        connection.continuations.add(ApprovedContinuation::new(call, request, &response));
    }
    response
}

/// The arguments as policies see them. Servers treat missing arguments as an empty object.
fn arguments(message: &JsonRpcMessage) -> Value {
    match message.param("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
    }
}
