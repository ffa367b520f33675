//! Requests of the client: evaluates them for the server that receives them, and sends them.

use tokio::sync::watch;

use super::final_params::FinalParams;
use super::method_executor::{MethodExecutor, SendRequest};
use super::{call_for, is_evaluated, rejection, visible_params, with_params};
use crate::approval_channels::ClientReply;
use crate::approved_execution::{self, CallOrigin, Execution, ExecutionRequest};
use crate::client_sender::ClientSender;
use crate::connection::{ClientConnection, LATE_RESPONSE_WINDOW, Upstream};
use crate::jsonrpc::{JsonRpcMessage, RequestId};
use crate::method;
use crate::upstream_event::UpstreamError;
use callgate::call::ToolCall;
use callgate::host::BoxFuture;
use callgate::message::RequestPart;

/// A request of the client that several servers may receive.
pub(crate) struct ClientRequest {
    pub(crate) id: RequestId,
    /// The queue for messages that belong to it.
    pub(crate) sender: ClientSender,
    /// The answer to an earlier approval request, with the server of that request.
    pub(crate) reply: ClientReply,
    /// Becomes true when the client cancels it.
    pub(crate) cancelled: watch::Receiver<bool>,
}

/// How long a response may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseTimeout {
    /// Not limited.
    None,
    /// That of a request to all servers.
    Merged,
}

/// Sends a request of the client to a server, after the policies have permitted it. Returns the response; `Ok(None)` if the client
/// cancelled it and the server did not answer.
pub(crate) async fn start_request(
    connection: &ClientConnection,
    upstream: &Upstream,
    message: &JsonRpcMessage,
    (request, timeout): (&ClientRequest, ResponseTimeout),
) -> Result<Option<JsonRpcMessage>, UpstreamError> {
    let sender = UpstreamSender { upstream, request, timeout };
    if !is_evaluated(connection, upstream.name(), message.method()) {
        return sender.forward(message.clone()).await.map(Some);
    }
    let mut call = call_for(connection, upstream.name(), message.method(), visible_params(message.params()));
    message.set_trace_of(&mut call);
    connection.gateway.name_span(&mut call);
    let is_for_this = |asked: &RequestPart| asked.server.as_deref() == Some(upstream.name());
    let none = ClientReply::default();
    let reply = match request.reply.request.as_ref().is_none_or(is_for_this) {
        true => &request.reply,
        false => &none,
    };
    if message.method() == method::LISTEN {
        return subscribe(connection, message, (call, sender)).await;
    }
    let executor = MethodExecutor::new(connection, upstream.name(), message, sender);
    let asked = ExecutionRequest { message, reply, sender: &request.sender, origin: CallOrigin::Client };
    let outcome = match approved_execution::execute(connection, &executor, &mut call, &asked).await {
        Execution::Completed(outcome) => outcome,
        Execution::InputRequired(result) => return Ok(Some(JsonRpcMessage::response(&request.id, result))),
    };
    if executor.is_cancelled() {
        return Ok(None);
    }
    let approved = outcome.approved.clone();
    let response = executor.response(connection, &request.id, (&call, &outcome));
    let response = response.unwrap_or_else(|| rejection(&request.id, &outcome));
    approved_execution::remember_approved(connection, call, approved, &response).await;
    Ok(Some(response))
}

/// Subscribes if the policies permit it. The request is answered when the subscription ends; until then no later call may wait for it.
async fn subscribe(
    connection: &ClientConnection,
    message: &JsonRpcMessage,
    (call, sender): (ToolCall, UpstreamSender<'_>),
) -> Result<Option<JsonRpcMessage>, UpstreamError> {
    let executor = FinalParams::default();
    let outcome = connection.session.execute(call, &executor).await;
    match executor.into_permitted(&outcome) {
        Some(params) => sender.forward(with_params(message, &params)).await.map(Some),
        None => Ok(Some(rejection(&sender.request.id, &outcome))),
    }
}

/// Sends a request to its server.
struct UpstreamSender<'c> {
    upstream: &'c Upstream,
    request: &'c ClientRequest,
    timeout: ResponseTimeout,
}

impl UpstreamSender<'_> {
    async fn forward(&self, message: JsonRpcMessage) -> Result<JsonRpcMessage, UpstreamError> {
        match self.timeout {
            ResponseTimeout::None => self.upstream.request_for_client(message, &self.request.id).await,
            ResponseTimeout::Merged => self.upstream.request_with_timeout(message, &self.request.id).await,
        }
    }
}

impl SendRequest for UpstreamSender<'_> {
    fn send(&self, message: JsonRpcMessage) -> BoxFuture<'_, Result<Option<JsonRpcMessage>, UpstreamError>> {
        Box::pin(async move {
            let mut cancelled = self.request.cancelled.clone();
            if *cancelled.borrow() {
                return Ok(None);
            }
            let gone = async {
                if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(LATE_RESPONSE_WINDOW).await;
            };
            tokio::select! {
                response = self.forward(message) => response.map(Some),
                () = gone => Ok(None),
            }
        })
    }
}
