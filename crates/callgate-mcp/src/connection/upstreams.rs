//! The servers of a client's connection: routes names by prefix, and sends messages to all servers.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::request_table::RequestTable;
use super::upstream::{Upstream, UpstreamContext};
use crate::jsonrpc::{JsonRpcMessage, RequestId, code};
use crate::method;
use crate::upstream_event::UpstreamError;
use callgate::host::BoxFuture;
use callgate::json::{Value, json};

/// Timeout for sending cancellations.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The servers of a client's connection, in the order of the configuration.
pub(crate) struct Upstreams {
    servers: Vec<Upstream>,
    requests: Arc<RequestTable>,
}

impl Upstreams {
    /// Connects to all servers.
    pub(super) fn open(shared: &UpstreamContext) -> Result<Self, UpstreamError> {
        let specs = shared.gateway.servers.iter().enumerate();
        let servers =
            specs.map(|(index, spec)| Upstream::open(index, spec, shared)).collect::<Result<_, _>>()?;
        Ok(Self { servers, requests: Arc::clone(&shared.requests) })
    }

    /// All servers.
    pub(crate) fn as_slice(&self) -> &[Upstream] {
        &self.servers
    }

    /// Routes a tool name to its server by prefix; returns the server and the tool's own name.
    pub(crate) fn route<'n>(&self, name: &'n str) -> Option<(&Upstream, &'n str)> {
        self.servers.iter().find_map(|server| Some((server, server.unprefixed_name(name)?)))
    }

    /// Runs a future for each server, all concurrently; returns the results in the order of the servers.
    pub(crate) async fn for_each<'s, T>(
        &'s self,
        future: impl Fn(&'s Upstream) -> BoxFuture<'s, T>,
    ) -> Vec<(&'s Upstream, T)> {
        let mut pending: Vec<_> = self.servers.iter().map(|server| (server, future(server), None)).collect();
        poll_fn(|context| {
            let mut is_over = true;
            for (_, future, result) in pending.iter_mut().filter(|(_, _, result)| result.is_none()) {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *result = Some(done),
                    Poll::Pending => is_over = false,
                }
            }
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        pending.into_iter().filter_map(|(server, _, result)| Some((server, result?))).collect()
    }

    /// Sends a request to all servers; returns their responses, in the order of the servers.
    pub(crate) async fn request_all<'s>(
        &'s self,
        message: &'s JsonRpcMessage,
        id: &'s RequestId,
    ) -> Vec<(&'s Upstream, Result<JsonRpcMessage, UpstreamError>)> {
        self.for_each(|server| Box::pin(server.request_with_timeout(message.clone(), id))).await
    }

    /// Sends a notification to all servers.
    pub(super) async fn notify_all(&self, message: &JsonRpcMessage) {
        for server in &self.servers {
            let _ = server.send(message.clone()).await;
        }
    }

    /// Forwards the cancellation of a client's request to the servers to which it was sent.
    pub(crate) async fn forward_cancellation(&self, id: &RequestId, reason: Option<&Value>) {
        for (index, sent_as) in self.requests.sent_to(id) {
            let Some(server) = self.servers.get(index) else { continue };
            let mut params = json!({ "requestId": sent_as.to_json() });
            if let (Some(reason), Some(params)) = (reason, params.as_object_mut()) {
                params.insert("reason".to_owned(), reason.clone());
            }
            let _ = server.send(JsonRpcMessage::notification(method::CANCELLED, params)).await;
        }
    }

    /// Cancels a request that took too long, at all servers that have not answered it.
    pub(crate) async fn cancel_pending(&self, id: &RequestId) {
        for (index, sent_as) in self.requests.sent_to(id) {
            let Some(server) = self.servers.get(index) else { continue };
            server.cancel(&sent_as, "it took too long").await;
        }
    }

    /// As [`cancel_pending`](Self::cancel_pending), but waits only briefly for servers that do not read their messages.
    pub(crate) async fn cancel_pending_briefly(&self, id: &RequestId) {
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.cancel_pending(id)).await;
    }

    /// Removes a request of the client; later responses to it are not forwarded.
    pub(super) fn remove_request(&self, id: &RequestId) {
        for (index, sent_as) in self.requests.remove(id) {
            if let Some(server) = self.servers.get(index) {
                server.take_response_receiver(&sent_as);
            }
        }
    }

    /// Fails all pending requests to the client, whose input has ended.
    pub(super) async fn fail_server_requests(&self) {
        for (index, id) in self.requests.take_server_requests() {
            let Some(server) = self.servers.get(index) else { continue };
            let message = "the client has closed the connection";
            // A lost server is not restarted for this.
            server
                .send_if_connected(JsonRpcMessage::error_response(
                    Some(&id),
                    code::INTERNAL_ERROR,
                    message,
                    None,
                ))
                .await;
        }
    }

    /// Closes the connections to all servers; returns when the servers have ended.
    pub(super) async fn close(&self) {
        drop(self.requests.take_server_requests());
        let mut ends = Vec::new();
        for server in &self.servers {
            ends.extend(server.close().await);
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
        // Requests that are still pending get no response any more.
        for server in &self.servers {
            server.fail_after_close().await;
        }
        // Requests that arrived in the meantime.
        drop(self.requests.take_server_requests());
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::client_info::ClientInfo;
    use crate::gateway::Gateway;
    use crate::{HttpSpec, ServerSpec, Transport};
    use callgate::engine::Engine;

    /// Servers with these prefixes. HTTP servers are not contacted before the first message.
    fn upstreams(prefixes: &[Option<&str>]) -> Upstreams {
        let spec = |(index, prefix): (usize, &Option<&str>)| ServerSpec {
            name: format!("server{index}"),
            prefix: prefix.map(str::to_owned),
            reach: Transport::Http(HttpSpec {
                url: "http://127.0.0.1:9/mcp".to_owned(),
                headers: Vec::new(),
                auth: None,
            }),
            rules: None,
        };
        let specs = prefixes.iter().enumerate().map(spec);
        let gateway = Gateway::new(Engine::from_text("policies: []").unwrap(), specs);
        let shared = UpstreamContext {
            gateway: Arc::new(gateway),
            client: Arc::new(ClientInfo::default()),
            requests: Arc::new(RequestTable::new()),
            connections: mpsc::unbounded_channel().0,
        };
        Upstreams::open(&shared).unwrap()
    }

    #[tokio::test]
    async fn routes_names_by_prefix() {
        let upstreams = upstreams(&[Some("git_"), Some("mail_")]);
        let route = |name| upstreams.route(name).map(|(server, tool)| (server.name().to_owned(), tool));
        assert_eq!(route("git_commit"), Some(("server0".to_owned(), "commit")));
        assert_eq!(route("mail_git_commit"), Some(("server1".to_owned(), "git_commit")));
        assert_eq!(route("commit"), None);
    }

    #[tokio::test]
    async fn prefixes_the_names_of_items() {
        let upstreams = upstreams(&[Some("git_"), None]);
        for (server, expected) in upstreams.as_slice().iter().zip(["git_commit", "commit"]) {
            let mut items = [json!({ "name": "commit" }), json!({ "uri": "file:///a" }), json!(7)];
            server.prefix_names(&mut items);
            assert_eq!(items, [json!({ "name": expected }), json!({ "uri": "file:///a" }), json!(7)]);
        }
    }

    #[tokio::test]
    async fn results_are_in_the_order_of_the_servers() {
        let upstreams = upstreams(&[Some("a_"), Some("b_"), Some("c_")]);
        let results = upstreams
            .for_each(|server| {
                Box::pin(async move {
                    // The first server responds last.
                    for _ in server.index()..3 {
                        tokio::task::yield_now().await;
                    }
                    server.index()
                })
            })
            .await;
        let results: Vec<(&str, usize)> =
            results.into_iter().map(|(server, result)| (server.name(), result)).collect();
        assert_eq!(results, [("server0", 0), ("server1", 1), ("server2", 2)]);
    }
}
