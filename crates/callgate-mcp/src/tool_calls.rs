//! Handles `tools/call`: evaluates the call against the policies, forwards it to its server, and converts the outcome to a response.

mod executor;

use tokio::sync::watch;

use self::executor::{CallRequest, UpstreamExecutor};
use super::approval_channels::{self, ClientReply};
use super::approved_execution::{self, CallOrigin, Execution, ExecutionRequest};
use super::call_problem::{CallProblem, find_call_problem};
use super::call_result;
use super::client_sender::ClientSender;
use super::connection::ClientConnection;
use super::jsonrpc::{JsonRpcMessage, RequestId, code};
use super::method;
use super::tool_list;
use callgate::call::ToolCall;
use callgate::json::{Map, Value};
use callgate::safe_text::escape_controls;

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
    tool_list::load_tools(&connection.session, &upstream, &message).await;
    match find_call_problem(connection, &upstream, (name, tool), &arguments(&message)) {
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
    let executor = UpstreamExecutor::new(connection, &upstream, request, cancelled);
    let response = run(&executor, call, &reply, sender).await;
    // The client cancelled the call, and the server did not answer it.
    if executor.is_cancelled() {
        return None;
    }
    connection.upstreams.cancel_pending(id).await;
    Some(response)
}

/// Runs a call to its response, and asks for approvals on the way. `sender`: the queue for messages that belong to the call.
async fn run(
    executor: &UpstreamExecutor<'_>,
    mut call: ToolCall,
    reply: &ClientReply,
    sender: &ClientSender,
) -> JsonRpcMessage {
    let (connection, message) = (executor.connection, executor.request.message);
    let request = ExecutionRequest { message, reply, sender, origin: CallOrigin::Client };
    let outcome = match approved_execution::execute(connection, executor, &mut call, &request).await {
        Execution::Completed(outcome) => *outcome,
        Execution::InputRequired(result) => return JsonRpcMessage::response(executor.request.id, result),
    };
    let approved = outcome.approved.clone();
    let response = executor.client_response(&call, outcome);
    connection.tasks.record(&call, &response);
    approved_execution::remember_approved(connection, call, approved, &response).await;
    response
}

/// The arguments as policies see them. Servers treat missing arguments as an empty object.
fn arguments(message: &JsonRpcMessage) -> Value {
    match message.param("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
    }
}
