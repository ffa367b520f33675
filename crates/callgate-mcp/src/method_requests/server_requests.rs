//! Requests of a server to the client (sampling, elicitation, roots): evaluates them, and answers those that are not permitted.

use std::sync::Arc;

use super::method_executor::{MethodExecutor, SendRequest};
use super::{call_for, visible_params};
use crate::approval_channels::ClientReply;
use crate::approved_execution::{self, CallOrigin, Execution, ExecutionRequest};
use crate::client_sender::ClientSender;
use crate::connection::{ClientConnection, RequestTable, Upstream};
use crate::jsonrpc::{JsonRpcMessage, RequestId, code};
use crate::upstream_event::UpstreamError;
use callgate::host::BoxFuture;

/// What a server learns of a request that is not permitted: nothing of the policies.
const REFUSAL: &str = "the request is not permitted";

/// Evaluates a request of a server; returns the response for it. `sender`: the queue of the client for it.
pub(crate) async fn handle_server_request(
    connection: &Arc<ClientConnection>,
    upstream: &Upstream,
    (message, id): (&JsonRpcMessage, &RequestId),
    sender: &ClientSender,
) -> JsonRpcMessage {
    let mut call = call_for(connection, upstream.name(), message.method(), visible_params(message.params()));
    message.set_trace_of(&mut call);
    connection.gateway.name_span(&mut call);
    let requester = ClientRequester { requests: &connection.requests, id, sender };
    let executor = MethodExecutor::new(connection, upstream.name(), message, requester);
    let reply = ClientReply::default();
    let request = ExecutionRequest { message, reply: &reply, sender, origin: CallOrigin::Server };
    let response = match approved_execution::execute(connection, &executor, &mut call, &request).await {
        Execution::Completed(outcome) => executor.response(connection, id, (&call, &outcome)),
        Execution::InputRequired(_) => None,
    };
    response.unwrap_or_else(|| {
        upstream
            .log(&format!("its request `{}` was not permitted, or failed", message.method().escape_debug()));
        JsonRpcMessage::error_response(Some(id), code::NOT_PERMITTED, REFUSAL, None)
    })
}

/// Sends a request to the client.
struct ClientRequester<'c> {
    requests: &'c RequestTable,
    id: &'c RequestId,
    sender: &'c ClientSender,
}

impl SendRequest for ClientRequester<'_> {
    fn send(&self, message: JsonRpcMessage) -> BoxFuture<'_, Result<Option<JsonRpcMessage>, UpstreamError>> {
        Box::pin(async move {
            let response = self.requests.forward_to_client(message, self.id, self.sender).await;
            response.map(Some).ok_or_else(|| UpstreamError("the client has closed the connection".to_owned()))
        })
    }
}
