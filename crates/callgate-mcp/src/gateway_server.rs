//! A server of a gateway: its configuration, its health, and connections to it.

use std::sync::Arc;

use tokio::sync::watch;

use super::jsonrpc::JsonRpcMessage;
use super::server_health::ServerHealth;
use super::shared_upstream::{SharedMember, SharedUpstream};
use super::upstream_event::{UpstreamError, UpstreamEventSender};
use super::upstream_server::{ServerSpec, UpstreamConnection};

/// The servers of a gateway at one time, in the order of the configuration.
pub(super) type ServerList = Arc<[Arc<GatewayServer>]>;

/// A server of a gateway.
pub(super) struct GatewayServer {
    pub(super) spec: Arc<ServerSpec>,
    pub(super) health: ServerHealth,
    /// The connection that clients share, if they do.
    shared: Option<Arc<SharedUpstream>>,
}

/// A client's connection to a server.
pub(super) enum ServerConnection {
    /// Its own.
    Own(UpstreamConnection),
    /// Its part of a shared one.
    Shared(SharedMember),
}

impl GatewayServer {
    pub(super) fn new(spec: ServerSpec) -> Self {
        let shared = spec.shared.then(Arc::default);
        Self { spec: Arc::new(spec), health: ServerHealth::default(), shared }
    }

    /// Whether a configuration is the present one, so that connections can stay.
    pub(super) fn is_unchanged(&self, spec: &ServerSpec) -> bool {
        let ServerSpec { name, prefix, reach, rules, shared } = &*self.spec;
        let has_same_rules = match (rules, &spec.rules) {
            (Some(present), Some(new)) => Arc::ptr_eq(&present.rules(), &new.rules()),
            (present, new) => present.is_none() && new.is_none(),
        };
        (name, prefix, reach, shared) == (&spec.name, &spec.prefix, &spec.reach, &spec.shared)
            && has_same_rules
    }

    /// Connects a client. `limit`: the maximum size of a message, in bytes.
    pub(super) fn connect(
        &self,
        events: UpstreamEventSender,
        limit: usize,
    ) -> Result<ServerConnection, UpstreamError> {
        match &self.shared {
            Some(shared) => Ok(ServerConnection::Shared(shared.join(&self.spec, events, limit))),
            None => UpstreamConnection::open(&self.spec, events, limit).map(ServerConnection::Own),
        }
    }

    /// Closes the shared connection; returns when the server has ended.
    pub(super) async fn close_shared(&self) {
        if let Some(shared) = &self.shared {
            shared.close().await;
        }
    }
}

impl ServerConnection {
    pub(super) async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        match self {
            Self::Own(connection) => connection.send(message).await,
            Self::Shared(member) => member.send(message).await,
        }
    }

    /// Ends the connection; the receiver becomes true when a server that only this client used has ended.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        match self {
            Self::Own(connection) => connection.close(),
            Self::Shared(member) => member.close(),
        }
    }
}
