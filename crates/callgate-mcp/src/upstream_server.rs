//! A connection to an upstream server: one interface over its transports, stdio process and streamable HTTP.

use std::sync::Arc;

use thiserror::Error;
use tokio::sync::{mpsc, watch};

use super::http_upstream::{HttpSpec, HttpUpstream};
use super::jsonrpc::{JsonRpcMessage, RequestId};
use super::stdio_upstream::{StdioSpec, StdioUpstream};
use callgate::engine::Engine;

/// The problem with a server: it can't be started or reached, its connection was lost, or it does not respond.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UpstreamError(pub(super) String);

/// An event from a server.
#[derive(Debug)]
pub(super) enum UpstreamEvent {
    /// A message, with the request that it belongs to if its transport reports that.
    Message { message: JsonRpcMessage, about: Option<RequestId> },
    /// A malformed message: the problem, and the requests that it may answer.
    Malformed { why: String, answers: Vec<RequestId> },
    /// A problem that answers no request.
    Problem(String),
    /// The connection ended; no event follows.
    Closed(UpstreamError),
}

/// The channel for a server's events.
pub(super) type UpstreamEventSender = mpsc::Sender<UpstreamEvent>;

/// The transport to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A child process, over stdin and stdout.
    Child(StdioSpec),
    /// Streamable HTTP.
    Http(HttpSpec),
}

/// A server behind a gateway.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Its name, which policies match by `server:`.
    pub name: String,
    /// The prefix of its tool and prompt names, if there are several servers.
    pub prefix: Option<String>,
    /// Its transport.
    pub reach: Transport,
    /// Rules for its calls only, which tighten those of the gateway.
    pub rules: Option<Engine>,
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
