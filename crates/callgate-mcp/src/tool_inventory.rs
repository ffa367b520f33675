//! The inventory of all servers' tools as they describe them now, for a review.

use std::sync::Arc;
use std::time::Duration;

use super::client_info::ClientContext;
use super::client_sender::ClientSender;
use super::connection::ClientConnection;
use super::gateway::Gateway;
use super::handshake::handshake;
use super::tool_list;
use super::upstream_event::UpstreamError;
use callgate::json::Value;

/// How long a server has to list its tools; its package may have to be installed first.
const LIST_TIMEOUT: Duration = Duration::from_secs(300);

/// A server and its current tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInventory {
    /// Its name.
    pub server: String,
    /// Its tools by their own (unprefixed) names, sorted.
    pub tools: Vec<(String, Value)>,
}

impl Gateway {
    /// Lists the tools of all servers, as a client would.
    ///
    /// # Errors
    /// A server can't be started, or does not list its tools.
    pub async fn list_tools(self: &Arc<Self>) -> Result<Vec<ToolInventory>, UpstreamError> {
        // Messages from servers to the client are dropped: there is no client.
        let (sender, _) = ClientSender::lossy();
        let connection = ClientConnection::open(self, &ClientContext::default(), sender)?;
        let mut inventories = Vec::new();
        for upstream in connection.upstreams.all().iter() {
            let name = upstream.name();
            let listed = async {
                let envelope = handshake(&connection, upstream).await?;
                Ok(tool_list::load_tools(&connection.session, upstream, &envelope).await)
            };
            let listed = tokio::time::timeout(LIST_TIMEOUT, listed).await;
            let listed = listed.unwrap_or_else(|_| Err(UpstreamError("it does not respond".to_owned())));
            if !listed.map_err(|error| UpstreamError(format!("the server `{name}`: {error}")))? {
                return Err(UpstreamError(format!("the server `{name}` does not list its tools")));
            }
            inventories.push(ToolInventory { server: name.to_owned(), tools: upstream.tools().all() });
        }
        connection.close().await;
        Ok(inventories)
    }
}
