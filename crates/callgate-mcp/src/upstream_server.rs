//! A connection to an upstream server: one interface over its transports, stdio process and streamable HTTP.

use std::sync::Arc;

use tokio::sync::watch;

use super::http_upstream::{HttpSpec, HttpUpstream};
use super::jsonrpc::JsonRpcMessage;
use super::stdio_upstream::{StdioSpec, StdioUpstream};
use super::upstream_event::{UpstreamError, UpstreamEventSender};
use callgate::engine::Engine;

/// The transport to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A child process, over stdin and stdout.
    Child(StdioSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
}

/// A server behind a gateway.
///
/// ```
/// use callgate_mcp::{ServerSpec, StdioSpec, Transport};
///
/// let command = StdioSpec { command: "my-server".to_owned(), args: Vec::new(), env: Vec::new(), cwd: None };
/// let files = ServerSpec::new("files", Transport::Child(command)).with_prefix("files__");
/// assert_eq!(files.prefix.as_deref(), Some("files__"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Its name, which policies match by `server:`.
    pub name: String,
    /// The prefix of its tool and prompt names, if there are several servers.
    pub prefix: Option<String>,
    /// Its transport.
    pub reach: Transport,
    /// Rules for its calls only, which tighten those of the gateway.
    pub rules: Option<Engine>,
    /// All clients share one connection to it.
    pub shared: bool,
}

impl ServerSpec {
    /// A server without a prefix and rules of its own, to which each client has a connection.
    pub fn new(name: impl Into<String>, reach: Transport) -> Self {
        Self { name: name.into(), prefix: None, reach, rules: None, shared: false }
    }

    /// Sets the prefix of its tool and prompt names.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets rules for its calls only.
    #[must_use]
    pub fn with_rules(mut self, rules: Engine) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Shares one connection among all clients. For servers that do not tell clients apart, and keep nothing between their calls. They
    /// can't ask clients, and have no log level, subscriptions to resources or tasks.
    #[must_use]
    pub fn with_shared_connection(mut self) -> Self {
        self.shared = true;
        self
    }
}

/// A connection to a server.
pub(super) enum UpstreamConnection {
    Stdio(StdioUpstream),
    Http(HttpUpstream),
}

impl UpstreamConnection {
    /// Connects. `limit`: the maximum size of a message, in bytes.
    pub(super) fn open(
        spec: &Arc<ServerSpec>,
        events: UpstreamEventSender,
        limit: usize,
    ) -> Result<Self, UpstreamError> {
        match &spec.reach {
            Transport::Child(child) => StdioUpstream::start(child, events, limit).map(Self::Stdio),
            Transport::Http(http) => HttpUpstream::open(http, events, limit).map(Self::Http),
        }
    }

    pub(super) async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        match self {
            Self::Stdio(child) => child.send(message).await,
            Self::Http(http) => http.send(message).await,
        }
    }

    /// Shuts the server down; the receiver becomes true when it has ended.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        match self {
            Self::Stdio(child) => child.close(),
            Self::Http(http) => http.close(),
        }
    }
}
