//! Events from a server, whatever its transport: messages, problems, and the end of the connection.

use thiserror::Error;
use tokio::sync::mpsc;

use super::jsonrpc::{JsonRpcMessage, RequestId};

/// The problem with a server: it can't be started or reached, its connection was lost, or it does not respond.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UpstreamError(pub(super) String);

/// An event from a server.
#[derive(Debug)]
pub(super) enum UpstreamEvent {
    /// A message, with the request that it belongs to if its transport reports that.
    Message { message: JsonRpcMessage, about: Option<RequestId> },
    /// An error response on behalf of the server, which can't be reached or fails.
    Failed { response: JsonRpcMessage, about: RequestId },
    /// A malformed message: the problem, and the requests that it may answer.
    Malformed { why: String, answers: Vec<RequestId> },
    /// A problem that answers no request.
    Problem(String),
    /// The connection ended; no event follows.
    Closed(UpstreamError),
}

/// The channel for a server's events.
pub(super) type UpstreamEventSender = mpsc::Sender<UpstreamEvent>;
