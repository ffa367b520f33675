//! Executes the calls of an operation: on one of the server's own tool servers, or by the host.

use std::sync::Arc;

use callgate::call::ToolCall;
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::Value;
use callgate::message::{History, Message, PartContent};
use callgate_mcp::ToolServers;

use crate::api::Api;
use crate::endpoint::ApiRequest;
use crate::operation::{Operation, RemoteExecutor};
use crate::problem::Problem;

/// Executes the calls of an operation.
pub(crate) struct CallExecutor {
    host: RemoteExecutor,
    servers: Option<Arc<ToolServers>>,
}

impl CallExecutor {
    pub(crate) fn new(api: &Api, operation: &Arc<Operation>) -> Self {
        let host = RemoteExecutor { operation: Arc::clone(operation) };
        Self { host, servers: api.tool_servers.clone() }
    }
}

impl ToolExecutor for CallExecutor {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.servers.as_deref().filter(|servers| servers.has_server_of(call)) {
            Some(servers) => servers.execute(call).await,
            None => self.host.execute(call).await,
        }
    }
}

impl Api {
    /// Resolves calls of the server's own tool servers, and waits until these servers have listed their tools. To be called before the
    /// session is opened, which knows the tools that are listed by then.
    ///
    /// # Errors
    /// A call of one of these servers can't be evaluated.
    pub(crate) async fn resolve_calls(&self, calls: &mut [ToolCall]) -> Result<(), Problem> {
        let Some(servers) = &self.tool_servers else { return Ok(()) };
        for call in calls {
            servers.resolve(call);
            // On the heap: most servers have no tools of their own, and each request would carry the future.
            Box::pin(servers.check(call)).await.map_err(server_problem)?;
        }
        Ok(())
    }

    /// Waits until the servers of a history's calls have listed their tools, or can't be reached.
    pub(crate) async fn wait_for_servers_of(&self, history: &History) {
        let Some(servers) = &self.tool_servers else { return };
        let parts = history.messages().iter().flat_map(Message::parts);
        for part in parts {
            if let PartContent::Call(part) = part.content() {
                let mut call = part.to_call();
                servers.resolve(&mut call);
                // What is wrong with a call is the outcome of its execution.
                let _ = servers.check(&call).await;
            }
        }
    }

    /// Adds to calls what the request says of all of them.
    pub(crate) fn complete_calls(&self, calls: &mut [ToolCall], context: &Value, request: &ApiRequest) {
        for call in calls {
            call.context.clone_from(context);
            call.set_request_trace(request.trace.parent.as_deref(), request.trace.state.as_deref());
            if let Some(servers) = &self.tool_servers {
                servers.name_span(call);
            }
        }
    }
}

fn server_problem(error: ToolError) -> Problem {
    match error.kind.as_deref() {
        Some("unavailable") => Problem::unavailable("server_unavailable", error.message),
        Some(callgate_mcp::QUARANTINED) => Problem::new(403, callgate_mcp::QUARANTINED, error.message),
        _ => Problem::new(422, "ambiguous_call", error.message),
    }
}
