//! The state of a connection to an HTTP server: its session, its protocol version, and the arguments that its tools require in headers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::http_client::HttpResponse;
use crate::http_headers::{self, HeaderArguments};
use crate::jsonrpc::JsonRpcMessage;
use crate::method;
use callgate::json::Value;

/// The state that the server has reported.
#[derive(Default)]
pub(super) struct ServerSession {
    data: Mutex<ServerSessionData>,
}

#[derive(Default)]
struct ServerSessionData {
    /// The session that it opened in the handshake.
    session: Option<String>,
    /// The protocol version negotiated in the handshake.
    version: Option<String>,
    /// The client's `initialize`, repeated if the server loses the session.
    initialize: Option<JsonRpcMessage>,
    /// The protocol version of requests without a handshake.
    stateless_version: Option<String>,
    header_arguments: HashMap<String, HeaderArguments>,
}

impl ServerSession {
    fn data(&self) -> MutexGuard<'_, ServerSessionData> {
        // Every update is a single step, so a panic elsewhere leaves the data consistent.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn session(&self) -> Option<String> {
        self.data().session.clone()
    }

    pub(super) fn initialize(&self) -> Option<JsonRpcMessage> {
        self.data().initialize.clone()
    }

    /// Removes the session, which the server has lost.
    pub(super) fn forget_session(&self) {
        let mut data = self.data();
        data.session = None;
        data.version = None;
    }

    /// The headers for a message.
    pub(super) fn headers(&self, message: &JsonRpcMessage) -> Vec<(&'static str, String)> {
        let mut data = self.data();
        let version_in_message = http_headers::protocol_version(message)
            .filter(|version| http_headers::is_stateless_version(version));
        if let Some(version) = version_in_message {
            data.stateless_version = Some(version.to_owned());
        }
        // Only requests must have a version.
        let is_request = message.method() == method::INITIALIZE || message.id().is_some();
        let modern = match version_in_message {
            None if !is_request && data.version.is_none() => data.stateless_version.clone(),
            version_in_message => version_in_message.map(str::to_owned),
        };
        let Some(version) = modern else { return data.legacy_headers(message) };
        let mut headers = vec![(http_headers::VERSION, version)];
        if !message.method().is_empty() {
            headers.push((http_headers::METHOD, http_headers::encode(message.method())));
        }
        if let Some(subject) = http_headers::subject(message) {
            headers.push((http_headers::NAME, http_headers::encode(subject)));
        }
        headers
    }

    /// The headers that repeat a call's arguments, as sent to the server, not as received from the client.
    pub(super) fn argument_headers(&self, message: &JsonRpcMessage) -> Vec<(String, String)> {
        if message.method() != method::TOOLS_CALL || http_headers::protocol_version(message).is_none() {
            return Vec::new();
        }
        let data = self.data();
        let tool =
            message.param("name").and_then(Value::as_str).and_then(|name| data.header_arguments.get(name));
        let (Some(tool), Some(arguments)) = (tool, message.param("arguments")) else { return Vec::new() };
        let headers = tool.headers(arguments);
        headers.filter_map(|(header, text)| Some((header.to_owned(), http_headers::encode(&text?)))).collect()
    }

    /// The headers for GET and DELETE, which have no message.
    pub(super) fn session_headers(&self) -> Vec<(&'static str, String)> {
        let data = self.data();
        let session = data.session.iter().map(|session| (http_headers::SESSION, session.clone()));
        session.chain(data.version.iter().map(|version| (http_headers::VERSION, version.clone()))).collect()
    }

    /// Stores the session from the headers of a response.
    pub(super) fn store_session(&self, request: &JsonRpcMessage, reply: &HttpResponse) {
        if request.method() == method::INITIALIZE && reply.is_success() {
            let mut data = self.data();
            data.session = reply.header(http_headers::SESSION).map(str::to_owned);
            data.initialize = Some(request.clone());
        }
    }

    /// Stores the protocol version, or the arguments that tools require in headers, from a response.
    pub(super) fn store_result(&self, request: &JsonRpcMessage, answer: &JsonRpcMessage) {
        let Some(result) = answer.result_value() else { return };
        match request.method() {
            method::INITIALIZE => {
                let version = result.get("protocolVersion").and_then(Value::as_str);
                self.data().version = version.map(str::to_owned);
            }
            method::TOOLS_LIST => {
                let mut data = self.data();
                let tools = result.get("tools").and_then(Value::as_array);
                for tool in tools.into_iter().flatten() {
                    if let (Some(name), Some(schema)) =
                        (tool.get("name").and_then(Value::as_str), tool.get("inputSchema"))
                    {
                        data.header_arguments.insert(name.to_owned(), HeaderArguments::from_schema(schema));
                    }
                }
            }
            _ => {}
        }
    }
}

impl ServerSessionData {
    fn legacy_headers(&self, message: &JsonRpcMessage) -> Vec<(&'static str, String)> {
        // Neither is known before the handshake.
        if message.method() == method::INITIALIZE {
            return Vec::new();
        }
        let session = self.session.iter().map(|session| (http_headers::SESSION, session.clone()));
        session.chain(self.version.iter().map(|version| (http_headers::VERSION, version.clone()))).collect()
    }
}

/// Whether a request is stateless: it has its protocol version itself, and is cancelled by closing its stream.
pub(super) fn is_stateless(message: &JsonRpcMessage) -> bool {
    http_headers::protocol_version(message).is_some_and(http_headers::is_stateless_version)
}
