//! A server of the gateway, as one client's connection meets it: however it is reached, messages go to it and come from it.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::child::{ChildServer, ChildSpec};
use super::frame::{Frame, Id};
use super::upstream::{HttpServer, HttpSpec};
use crate::engine::Engine;

/// Why a server says nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gone(pub(super) String);

/// What a server says.
#[derive(Debug)]
pub(super) enum FromServer {
    /// A message, with the request that it belongs to where its transport says so.
    Frame { frame: Frame, about: Option<Id> },
    /// Something that is no message, and why; with the requests that it may have been meant to answer.
    Garbage { why: String, answers: Vec<Id> },
    /// Something went wrong that is no answer to a request.
    Trouble(String),
    /// Nothing more.
    Gone(Gone),
}

/// Where a server's messages go.
pub(super) type ServerEvents = mpsc::Sender<FromServer>;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// As a process of ours.
    Child(ChildSpec),
    /// Over streamable HTTP.
    Http(HttpSpec),
}

/// A server behind a gateway.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Its name, which policies test as `server:`.
    pub name: String,
    /// What stands before the names of its tools and prompts, where there are several servers.
    pub prefix: Option<String>,
    /// How it is reached.
    pub reach: Reach,
    /// Rules for its calls alone, which tighten those of the gateway.
    pub rules: Option<Engine>,
}

/// A connection to a server.
pub(super) enum Connection {
    Child(ChildServer),
    Http(HttpServer),
}

impl Connection {
    /// Connects. `limit`: the longest message, in bytes.
    pub(super) fn open(spec: &Arc<ServerSpec>, events: ServerEvents, limit: usize) -> Result<Self, Gone> {
        match &spec.reach {
            Reach::Child(child) => ChildServer::start(child, events, limit).map(Self::Child),
            Reach::Http(http) => HttpServer::open(http, events, limit).map(Self::Http),
        }
    }

    pub(super) async fn send(&self, frame: Frame) -> Result<(), Gone> {
        match self {
            Self::Child(child) => child.send(frame).await,
            Self::Http(http) => http.send(frame).await,
        }
    }

    /// Lets the server end; tells when it has.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        match self {
            Self::Child(child) => child.close(),
            Self::Http(http) => http.close(),
        }
    }
}
