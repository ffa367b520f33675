//! What is known of an HTTP server while it is connected: its session, its version of the protocol, and what its tools want repeated
//! in headers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::wire::Reply;
use crate::json::Value;
use crate::mcp::frame::Frame;
use crate::mcp::http_words::{self, RepeatedArguments};
use crate::mcp::method;

/// What is known of the server.
#[derive(Default)]
pub(super) struct Peer {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The session that it opened, of a client that shakes hands.
    session: Option<String>,
    /// The version that was agreed on in the handshake.
    version: Option<String>,
    /// How the client began, to begin anew where the server has lost the session.
    initialize: Option<Frame>,
    /// The version that requests without a handshake say.
    modern_version: Option<String>,
    repeated: HashMap<String, RepeatedArguments>,
}

impl Peer {
    fn known(&self) -> MutexGuard<'_, Known> {
        // What is kept here is changed in single steps, so a panic elsewhere leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn session(&self) -> Option<String> {
        self.known().session.clone()
    }

    pub(super) fn initialize(&self) -> Option<Frame> {
        self.known().initialize.clone()
    }

    /// The server knows the session no more.
    pub(super) fn forget_session(&self) {
        let mut known = self.known();
        known.session = None;
        known.version = None;
    }

    /// What a message says of itself in headers.
    pub(super) fn headers(&self, frame: &Frame) -> Vec<(&'static str, String)> {
        let mut known = self.known();
        let said = http_words::version_of(frame).filter(|version| http_words::is_modern(version));
        if let Some(version) = said {
            known.modern_version = Some(version.to_owned());
        }
        // Messages beside requests need not say their version.
        let is_request = frame.method() == method::INITIALIZE || frame.id().is_some();
        let modern = match said {
            None if !is_request && known.version.is_none() => known.modern_version.clone(),
            said => said.map(str::to_owned),
        };
        let Some(version) = modern else { return known.legacy_headers(frame) };
        let mut headers = vec![(http_words::VERSION, version)];
        if !frame.method().is_empty() {
            headers.push((http_words::METHOD, http_words::encode(frame.method())));
        }
        if let Some(subject) = http_words::subject(frame) {
            headers.push((http_words::NAME, http_words::encode(subject)));
        }
        headers
    }

    /// The arguments of a call that its tool wants repeated: what reaches the server, not what the client sent.
    pub(super) fn repeated(&self, frame: &Frame) -> Vec<(String, String)> {
        if frame.method() != method::TOOLS_CALL || http_words::version_of(frame).is_none() {
            return Vec::new();
        }
        let known = self.known();
        let tool = frame.param("name").and_then(Value::as_str).and_then(|name| known.repeated.get(name));
        let (Some(tool), Some(arguments)) = (tool, frame.param("arguments")) else { return Vec::new() };
        let said = tool.of(arguments);
        said.filter_map(|(header, text)| Some((header.to_owned(), http_words::encode(&text?)))).collect()
    }

    /// What is told of GET and DELETE, which hold no message.
    pub(super) fn session_headers(&self) -> Vec<(&'static str, String)> {
        let known = self.known();
        let session = known.session.iter().map(|session| (http_words::SESSION, session.clone()));
        session.chain(known.version.iter().map(|version| (http_words::VERSION, version.clone()))).collect()
    }

    /// Takes in what the answer to a request tells beside its messages.
    pub(super) fn answered(&self, request: &Frame, reply: &Reply) {
        if request.method() == method::INITIALIZE && reply.is_success() {
            let mut known = self.known();
            known.session = reply.header(http_words::SESSION).map(str::to_owned);
            known.initialize = Some(request.clone());
        }
    }

    /// Takes in what an answer says.
    pub(super) fn said(&self, request: &Frame, answer: &Frame) {
        let Some(result) = answer.result_value() else { return };
        match request.method() {
            method::INITIALIZE => {
                let version = result.get("protocolVersion").and_then(Value::as_str);
                self.known().version = version.map(str::to_owned);
            }
            method::TOOLS_LIST => {
                let mut known = self.known();
                let tools = result.get("tools").and_then(Value::as_array);
                for tool in tools.into_iter().flatten() {
                    if let (Some(name), Some(schema)) =
                        (tool.get("name").and_then(Value::as_str), tool.get("inputSchema"))
                    {
                        known.repeated.insert(name.to_owned(), RepeatedArguments::of_schema(schema));
                    }
                }
            }
            _ => {}
        }
    }
}

impl Known {
    fn legacy_headers(&self, frame: &Frame) -> Vec<(&'static str, String)> {
        // A client that begins has neither yet.
        if frame.method() == method::INITIALIZE {
            return Vec::new();
        }
        let session = self.session.iter().map(|session| (http_words::SESSION, session.clone()));
        session.chain(self.version.iter().map(|version| (http_words::VERSION, version.clone()))).collect()
    }
}

/// Whether a request says its version itself, so that its stream is all that the server knows of it.
pub(super) fn is_modern(frame: &Frame) -> bool {
    http_words::version_of(frame).is_some_and(http_words::is_modern)
}
