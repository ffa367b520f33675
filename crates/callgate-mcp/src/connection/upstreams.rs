//! The servers of a client's connection: routes names by prefix, and sends messages to all servers.

use std::future::poll_fn;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use super::request_table::RequestTable;
use super::upstream::{Upstream, UpstreamContext};
use crate::gateway_server::ServerList;
use crate::jsonrpc::{JsonRpcMessage, RequestId, code};
use crate::method;
use crate::upstream_event::UpstreamError;
use callgate::host::BoxFuture;
use callgate::json::{Value, json};

/// Timeout for sending cancellations.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The servers of a client's connection.
pub(crate) struct Upstreams {
    servers: RwLock<UpstreamList>,
    requests: Arc<RequestTable>,
    shared: UpstreamContext,
}

struct UpstreamList {
    /// In the order of the configuration.
    present: Arc<[Arc<Upstream>]>,
    /// Removed servers that still have requests.
    draining: Vec<Arc<Upstream>>,
    /// The number of the next server.
    next_index: usize,
}

impl Upstreams {
    /// Connects to all servers.
    pub(super) fn open(servers: &ServerList, shared: UpstreamContext) -> Result<Self, UpstreamError> {
        let opened = servers.iter().enumerate();
        let opened = opened.map(|(index, server)| Upstream::open(index, server, &shared).map(Arc::new));
        let present = opened.collect::<Result<_, _>>()?;
        let list = UpstreamList { present, draining: Vec::new(), next_index: servers.len() };
        Ok(Self { servers: RwLock::new(list), requests: Arc::clone(&shared.requests), shared })
    }

    /// Takes over a changed list of servers: connections to those that stay are kept, and new ones are connected by their first message.
    /// Returns those that are removed: they get no new requests, and are still found until they are [forgotten](Self::forget).
    pub(super) fn update(&self, servers: &ServerList) -> Vec<Arc<Upstream>> {
        let mut list = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Vec::new();
        for server in servers.iter() {
            let kept = list.present.iter().find(|upstream| Arc::ptr_eq(upstream.server(), server)).cloned();
            next.push(kept.unwrap_or_else(|| {
                list.next_index += 1;
                Arc::new(Upstream::added(list.next_index - 1, server, &self.shared))
            }));
        }
        let stays = |upstream: &Arc<Upstream>| next.iter().any(|next| Arc::ptr_eq(next, upstream));
        let removed: Vec<Arc<Upstream>> =
            list.present.iter().filter(|upstream| !stays(upstream)).cloned().collect();
        list.draining.extend(removed.iter().cloned());
        list.present = next.into();
        removed
    }

    /// Forgets a removed server, whose requests are completed.
    pub(super) fn forget(&self, removed: &Arc<Upstream>) {
        let mut list = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        list.draining.retain(|upstream| !Arc::ptr_eq(upstream, removed));
    }

    /// The servers at present, in the order of the configuration.
    pub(crate) fn all(&self) -> Arc<[Arc<Upstream>]> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner).present)
    }

    /// A server by its number, also if it was removed and still has requests.
    pub(super) fn find(&self, index: usize) -> Option<Arc<Upstream>> {
        let list = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        list.present.iter().chain(&list.draining).find(|upstream| upstream.index() == index).cloned()
    }

    /// Routes a tool name to its server by prefix; returns the server and the tool's own name.
    pub(crate) fn route<'n>(&self, name: &'n str) -> Option<(Arc<Upstream>, &'n str)> {
        self.all().iter().find_map(|server| Some((Arc::clone(server), server.unprefixed_name(name)?)))
    }

    /// Runs a future for each server, all concurrently; returns the results in the order of the servers.
    pub(crate) async fn for_each<'f, T>(
        &self,
        future: impl Fn(Arc<Upstream>) -> BoxFuture<'f, T>,
    ) -> Vec<(Arc<Upstream>, T)> {
        let servers = self.all();
        let started = servers.iter().map(|server| (Arc::clone(server), future(Arc::clone(server)), None));
        let mut pending: Vec<_> = started.collect();
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
    pub(crate) async fn request_all(
        &self,
        message: &JsonRpcMessage,
        id: &RequestId,
    ) -> Vec<(Arc<Upstream>, Result<JsonRpcMessage, UpstreamError>)> {
        self.for_each(|server| {
            Box::pin(async move { server.request_with_timeout(message.clone(), id).await })
        })
        .await
    }

    /// Sends a notification to all servers.
    pub(super) async fn notify_all(&self, message: &JsonRpcMessage) {
        for server in self.all().iter() {
            let _ = server.send(message.clone()).await;
        }
    }

    /// Forwards the cancellation of a client's request to the servers to which it was sent.
    pub(crate) async fn forward_cancellation(&self, id: &RequestId, reason: Option<&Value>) {
        for (index, sent_as) in self.requests.sent_to(id) {
            let Some(server) = self.find(index) else { continue };
            let mut params = json!({ "requestId": sent_as.to_json() });
            if let (Some(reason), Some(params)) = (reason, params.as_object_mut()) {
                params.insert("reason", reason.clone());
            }
            let _ = server.send(JsonRpcMessage::notification(method::CANCELLED, params)).await;
        }
    }

    /// Cancels a request that took too long, at all servers that have not answered it.
    pub(crate) async fn cancel_pending(&self, id: &RequestId) {
        for (index, sent_as) in self.requests.sent_to(id) {
            let Some(server) = self.find(index) else { continue };
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
            if let Some(server) = self.find(index) {
                server.take_response_receiver(&sent_as);
            }
        }
    }

    /// Fails all pending requests to the client, whose input has ended.
    pub(super) async fn fail_server_requests(&self) {
        for (index, id) in self.requests.take_server_requests() {
            let Some(server) = self.find(index) else { continue };
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
        let removed = self.servers.read().unwrap_or_else(PoisonError::into_inner).draining.clone();
        let servers: Vec<Arc<Upstream>> = self.all().iter().cloned().chain(removed).collect();
        let mut ends = Vec::new();
        for server in &servers {
            ends.extend(server.close().await);
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
        // Requests that are still pending get no response any more.
        for server in &servers {
            server.fail_after_close("the gateway is shutting down").await;
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
        let spec = |(index, prefix): (usize, &Option<&str>)| {
            let url = "http://127.0.0.1:9/mcp".to_owned();
            let reach = Transport::Http(HttpSpec { url, headers: Vec::new(), auth: None });
            let spec = ServerSpec::new(format!("server{index}"), reach);
            match prefix {
                Some(prefix) => spec.with_prefix(*prefix),
                None => spec,
            }
        };
        let specs = prefixes.iter().enumerate().map(spec);
        let gateway = Gateway::new(Engine::from_text("policies: []").unwrap(), specs);
        let servers = Arc::clone(&*gateway.watch_servers().borrow());
        let shared = UpstreamContext {
            gateway: Arc::new(gateway),
            client: Arc::new(ClientInfo::default()),
            requests: Arc::new(RequestTable::new()),
            connections: mpsc::unbounded_channel().0,
        };
        Upstreams::open(&servers, shared).unwrap()
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
        for (server, expected) in upstreams.all().iter().zip(["git_commit", "commit"]) {
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
            results.iter().map(|(server, result)| (server.name(), *result)).collect();
        assert_eq!(results, [("server0", 0), ("server1", 1), ("server2", 2)]);
    }
}
