//! A server that all clients of a gateway share: one connection for each protocol version, over which the requests of all clients go.
//!
//! No client learns what others do: responses, progress and the messages of a request go to its client only, and what would affect or
//! reveal others (log levels, subscriptions to resources, tasks, log messages, requests of the server) is refused or dropped.

mod live_connection;
mod member_table;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use self::live_connection::{LiveConnection, Member};
use super::http_headers;
use super::jsonrpc::{JsonRpcMessage, MessageKind, code};
use super::method;
use super::upstream_event::{UpstreamError, UpstreamEvent, UpstreamEventSender};
use super::upstream_server::ServerSpec;
use callgate::json::Value;

/// The maximum number of times within a minute that a connection is opened.
const MAX_STARTS: usize = 5;
const START_WINDOW: Duration = Duration::from_secs(60);
/// The handshake that servers of earlier protocol versions expect.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A server that clients share.
#[derive(Default)]
pub(super) struct SharedUpstream {
    /// By the protocol version of the handshake, `None` without one: clients of one version never get answers of another one.
    connections: Mutex<HashMap<Option<&'static str>, Starts>>,
}

/// A connection, and when it was opened lately.
#[derive(Default)]
struct Starts {
    connection: Option<Arc<LiveConnection>>,
    at: Vec<Instant>,
}

/// One client's part of a shared server: to its session, a connection as any other.
pub(super) struct SharedMember {
    server: Arc<SharedUpstream>,
    spec: Arc<ServerSpec>,
    limit: usize,
    events: UpstreamEventSender,
    joined: Mutex<Joined>,
}

/// The connections in use.
#[derive(Default)]
struct Joined {
    /// After the handshake that the client has sent.
    handshake: Option<Arc<Member>>,
    stateless: Option<Arc<Member>>,
}

impl Joined {
    fn members(&self) -> [Option<Arc<Member>>; 2] {
        [self.handshake.clone(), self.stateless.clone()]
    }
}

impl SharedUpstream {
    fn connections(&self) -> MutexGuard<'_, HashMap<Option<&'static str>, Starts>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client's part of the server. `limit`: the maximum size of a message, in bytes.
    pub(super) fn join(
        self: &Arc<Self>,
        spec: &Arc<ServerSpec>,
        events: UpstreamEventSender,
        limit: usize,
    ) -> SharedMember {
        let (server, spec) = (Arc::clone(self), Arc::clone(spec));
        SharedMember { server, spec, limit, events, joined: Mutex::default() }
    }

    /// The connection of a protocol version, which is opened if there is none or it was lost.
    fn connection(
        &self,
        version: Option<&'static str>,
        spec: &Arc<ServerSpec>,
        limit: usize,
    ) -> Result<Arc<LiveConnection>, UpstreamError> {
        let mut connections = self.connections();
        let starts = connections.entry(version).or_default();
        if let Some(connection) = starts.connection.as_ref().filter(|connection| !connection.is_lost()) {
            return Ok(Arc::clone(connection));
        }
        starts.at.retain(|at| at.elapsed() < START_WINDOW);
        if starts.at.len() >= MAX_STARTS {
            return Err(UpstreamError("it was restarted too often in the last minute".to_owned()));
        }
        starts.at.push(Instant::now());
        let connection = LiveConnection::open(version, spec, limit)?;
        starts.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Closes all connections; returns when the server has ended.
    pub(super) async fn close(&self) {
        let open: Vec<_> = self.connections().drain().filter_map(|(_, starts)| starts.connection).collect();
        let mut ends = Vec::new();
        for connection in open {
            ends.extend(connection.close("the gateway is shutting down").await);
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

impl SharedMember {
    fn joined(&self) -> MutexGuard<'_, Joined> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for a request.
    fn member(&self, request: &JsonRpcMessage) -> Result<Arc<Member>, UpstreamError> {
        let mut joined = self.joined();
        let is_initialize = request.method() == method::INITIALIZE;
        let version = request.meta(method::PROTOCOL_VERSION).and_then(Value::as_str);
        let is_stateless = !is_initialize && version.is_some_and(http_headers::is_stateless_version);
        let (place, version) = match is_stateless {
            true => (&mut joined.stateless, None),
            false => (&mut joined.handshake, Some(handshake_version(request))),
        };
        if let Some(member) = place
            && !is_initialize
        {
            return Ok(Arc::clone(member));
        }
        let connection = self.server.connection(version, &self.spec, self.limit)?;
        let member = Arc::new(Member::join(connection, self.events.clone()));
        *place = Some(Arc::clone(&member));
        Ok(member)
    }

    /// Sends a message of the client.
    pub(super) async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        match message.kind().clone() {
            MessageKind::Request(id) => {
                if let Some(why) = member_table::unshared_request(message.method(), message.params()) {
                    let message =
                        JsonRpcMessage::error_response(Some(&id), code::METHOD_NOT_FOUND, why, None);
                    let events = self.events.clone();
                    // The receiver of events may be who sends.
                    tokio::spawn(async move {
                        events.send(UpstreamEvent::Message { message, about: None }).await
                    });
                    return Ok(());
                }
                let member = self.member(&message)?;
                match message.method() {
                    method::INITIALIZE => member.answer_initialize(id),
                    _ => member.send_request(message, &id).await?,
                }
            }
            MessageKind::Notification if message.method() == method::CANCELLED => {
                let members = self.joined().members();
                for member in members.into_iter().flatten() {
                    member.cancel(&message).await;
                }
            }
            // The connection's own handshake is complete, and no other message of a client may affect those of others.
            MessageKind::Notification | MessageKind::Response(_) | MessageKind::UnidentifiedError => {}
        }
        Ok(())
    }

    /// Leaves the server, which goes on. The receiver is true.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        watch::channel(true).1
    }
}

/// The version of the handshake that a client's `initialize` asks for, or of the latest one.
fn handshake_version(initialize: &JsonRpcMessage) -> &'static str {
    let asked = initialize.param("protocolVersion").and_then(Value::as_str);
    let known = HANDSHAKE_VERSIONS.into_iter().find(|known| asked == Some(*known));
    known.unwrap_or(HANDSHAKE_VERSIONS[0])
}
