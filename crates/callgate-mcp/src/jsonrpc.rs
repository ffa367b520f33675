//! JSON-RPC messages, parsed strictly: text → [`JsonRpcMessage`]. All members are kept, in their order and with their digits.
//!
//! The gateway forwards what it parsed and serialized, never text that failed strict parsing: two parsers can interpret such text
//! differently, and the evaluated call would then not be the one that runs.

mod id;
mod malformed;
mod message_trace;

use std::fmt;
use std::sync::Arc;

pub use id::RequestId;
pub use malformed::{MessageError, code};
pub(crate) use message_trace::{MessageTrace, TRACE_PARENT, TRACE_STATE};

use super::method;
use callgate::call::Task;
use callgate::json::{self, LoneSurrogates, Map, Value, json};
use callgate::safe_text::escape_controls;
use callgate_http::CallerToken;

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// It requires a response.
    Request(RequestId),
    /// It requires no response.
    Notification,
    /// It answers a request.
    Response(RequestId),
    /// An error with a null id: the peer could not parse a message.
    UnidentifiedError,
}

/// The members that JSON-RPC defines.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonRpcMessage {
    members: Map,
    kind: MessageKind,
    /// It arrived as an event of a stream; not part of the message.
    is_stream_event: bool,
    /// What the user asked for, as the host told it beside the message; not part of the message, so that no client can set it.
    task: Option<Task>,
    /// The trace of the HTTP request that it arrived in; not part of the message.
    trace: Option<Box<MessageTrace>>,
    /// The token of its caller; not part of the message.
    caller: Option<Arc<CallerToken>>,
}

impl JsonRpcMessage {
    /// Parses one message.
    ///
    /// # Errors
    /// Invalid JSON, a duplicate key, a batch, a member that differs from one of JSON-RPC only in case, an id that is not a string or an
    /// integer, both a method and a result or error, parameters that are not an object.
    ///
    /// ```
    /// use callgate_mcp::jsonrpc::{JsonRpcMessage, MessageKind, RequestId};
    ///
    /// let message = JsonRpcMessage::parse(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).expect("a request");
    /// assert_eq!(message.kind(), &MessageKind::Request(RequestId::from_value(&7.into()).expect("an id")));
    /// let refused = JsonRpcMessage::parse(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#);
    /// assert!(refused.is_err_and(|why| why.message.contains("duplicate key")));
    /// ```
    pub fn parse(text: &str) -> Result<Self, MessageError> {
        // Some line readers treat a bare carriage return as a line end.
        if text.trim_end_matches(['\r', '\n']).contains(['\r', '\n']) {
            return Err(MessageError::unparsable(text, "the message contains a line break"));
        }
        Self::parse_multiline(text)
    }

    /// Parses a message that may have line breaks between its members. A lone surrogate is read as U+FFFD, for evaluation and forwarding
    /// alike.
    pub(super) fn parse_multiline(text: &str) -> Result<Self, MessageError> {
        let value = json::parse_with_surrogates(text, LoneSurrogates::Replace);
        Self::from_value(value.map_err(|error| MessageError::invalid_json(text, &error))?)
    }

    /// Converts a JSON value into a message.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_value(value: Value) -> Result<Self, MessageError> {
        let invalid =
            |id: Option<RequestId>, message: &str| MessageError::new(id, code::INVALID_REQUEST, message);
        let members = match value {
            Value::Object(members) => members,
            Value::Array(_) => {
                return Err(invalid(None, "batches are not supported: send one message at a time"));
            }
            _ => return Err(invalid(None, "a message must be a JSON object")),
        };
        let id = match members.get("id") {
            None => None,
            Some(Value::Null) if members.contains_key("error") && !members.contains_key("method") => None,
            Some(id) => {
                let id = RequestId::from_value(id);
                Some(id.ok_or_else(|| {
                    invalid(None, "`id` must be a string or an integer of at most 18 digits")
                })?)
            }
        };
        if let Some(member) = method::find_ambiguous_member(&members, &MEMBERS) {
            let message = format!(
                "ambiguous member `{}`: some parsers read it as another one",
                escape_controls(member)
            );
            return Err(invalid(id, &message));
        }
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
        }
        let answers = members.contains_key("result") || members.contains_key("error");
        let kind = match (members.get("method"), answers) {
            (Some(_), true) => {
                return Err(invalid(id, "a message has either `method` or `result` or `error`, not several"));
            }
            (Some(Value::String(_)), false) => {
                if members.get("params").is_some_and(|params| !params.is_object()) {
                    return Err(invalid(id, "`params` must be an object"));
                }
                id.map_or(MessageKind::Notification, MessageKind::Request)
            }
            (Some(_), false) => return Err(invalid(id, "`method` must be a string")),
            (None, true) if members.contains_key("result") && members.contains_key("error") => {
                return Err(invalid(id, "a response has either `result` or `error`, not both"));
            }
            (None, true) if members.get("error").is_some_and(|error| !error.is_object()) => {
                return Err(invalid(id, "`error` must be an object"));
            }
            (None, true) => match id {
                Some(id) => MessageKind::Response(id),
                None if members.contains_key("error") => MessageKind::UnidentifiedError,
                None => return Err(invalid(None, "a response must have the `id` of its request")),
            },
            (None, false) => return Err(invalid(id, "a message must have `method`, `result` or `error`")),
        };
        Ok(Self { members, kind, is_stream_event: false, task: None, trace: None, caller: None })
    }

    /// Creates a request.
    pub fn request(id: &RequestId, method: &str, params: Value) -> Self {
        let message = json!({ "jsonrpc": "2.0", "id": id.to_json(), "method": method, "params": params });
        Self::from_parts(message, MessageKind::Request(id.clone()))
    }

    /// Creates a notification.
    pub fn notification(method: &str, params: Value) -> Self {
        Self::from_parts(
            json!({ "jsonrpc": "2.0", "method": method, "params": params }),
            MessageKind::Notification,
        )
    }

    /// Creates a response with a result.
    pub fn response(id: &RequestId, result: Value) -> Self {
        Self::from_parts(
            json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }),
            MessageKind::Response(id.clone()),
        )
    }

    /// Creates a response with an error. `None` as id: the request's id could not be read.
    pub fn error_response(id: Option<&RequestId>, code: i64, message: &str, data: Option<Value>) -> Self {
        let mut error = json!({ "code": code, "message": message });
        if let (Some(data), Some(error)) = (data, error.as_object_mut()) {
            error.insert("data", data);
        }
        let kind = id.map_or(MessageKind::UnidentifiedError, |id| MessageKind::Response(id.clone()));
        Self::from_parts(json!({ "jsonrpc": "2.0", "id": id.map(RequestId::to_json), "error": error }), kind)
    }

    /// Creates a response with an existing error object.
    pub fn error_response_from(id: &RequestId, error: Value) -> Self {
        Self::from_parts(
            json!({ "jsonrpc": "2.0", "id": id.to_json(), "error": error }),
            MessageKind::Response(id.clone()),
        )
    }

    /// Sets the token by which the caller of its request was authenticated.
    pub(crate) fn with_caller(self, caller: Option<&Arc<CallerToken>>) -> Self {
        Self { caller: caller.cloned(), ..self }
    }

    /// The token of its caller.
    pub(crate) fn caller(&self) -> Option<&Arc<CallerToken>> {
        self.caller.as_ref()
    }

    /// Sets what the user asked for, from an authentic channel beside the message.
    pub(crate) fn with_task(self, task: Task) -> Self {
        Self { task: Some(task), ..self }
    }

    /// What the user asked for, if the host told it beside the message.
    pub(crate) fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    fn from_parts(message: Value, kind: MessageKind) -> Self {
        let members = match message {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { members, kind, is_stream_event: false, task: None, trace: None, caller: None }
    }

    /// Marks the message as an event of a stream.
    #[must_use]
    pub(super) fn into_stream_event(mut self) -> Self {
        self.is_stream_event = true;
        self
    }

    /// Whether its server sent it as an event of a stream. Clients receive it in the same form.
    pub(super) fn is_stream_event(&self) -> bool {
        self.is_stream_event
    }

    /// Its kind.
    pub fn kind(&self) -> &MessageKind {
        &self.kind
    }

    /// Its id, if it has one.
    pub fn id(&self) -> Option<&RequestId> {
        match &self.kind {
            MessageKind::Request(id) | MessageKind::Response(id) => Some(id),
            MessageKind::Notification | MessageKind::UnidentifiedError => None,
        }
    }

    /// The method of a request or a notification; empty for a response.
    pub fn method(&self) -> &str {
        self.members.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    /// The parameters, if there are any.
    pub fn params(&self) -> Option<&Map> {
        self.members.get("params")?.as_object()
    }

    /// One of the parameters.
    pub fn param(&self, name: &str) -> Option<&Value> {
        self.members.get("params")?.get(name)
    }

    /// One of the members of `params._meta`.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.param("_meta")?.get(name)
    }

    /// Sets one of the parameters; creates `params` if it is missing.
    pub fn set_param(&mut self, name: &str, value: Value) {
        if let Value::Object(params) =
            self.members.entry("params").or_insert_with(|| Value::Object(Map::new()))
        {
            params.insert(name, value);
        }
    }

    /// The parameter at a path of nested keys.
    pub fn param_at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self.members.get("params")?, |value, key| value.get(key))
    }

    /// Sets the parameter at a path of nested keys. Does nothing if a key before the last is missing.
    pub fn set_param_at(&mut self, path: &[&str], value: Value) {
        let Some((last, way)) = path.split_last() else { return };
        let target = way
            .iter()
            .try_fold(self.members.get_mut("params"), |value, key| value.map(|value| value.get_mut(key)));
        if let Some(Some(Value::Object(target))) = target {
            target.insert((*last).to_owned(), value);
        }
    }

    /// Removes one of the parameters.
    pub fn take_param(&mut self, name: &str) -> Option<Value> {
        self.members.get_mut("params")?.as_object_mut()?.remove(name)
    }

    /// Replaces all parameters.
    pub(super) fn replace_params(&mut self, params: Map) {
        self.members.insert("params", Value::Object(params));
    }

    /// The result of a response.
    pub fn result_value(&self) -> Option<&Value> {
        self.members.get("result")
    }

    /// The result of a response, mutable.
    pub fn result_mut(&mut self) -> Option<&mut Value> {
        self.members.get_mut("result")
    }

    /// Takes the result or the error of a response, and leaves null in its position.
    pub(super) fn take_payload(&mut self, member: &str) -> Option<Value> {
        self.members.get_mut(member).map(Value::take)
    }

    /// Sets the result or the error of a response.
    #[must_use]
    pub(super) fn with_payload(mut self, member: &str, value: Value) -> Self {
        self.members.insert(member, value);
        self
    }

    /// The members that JSON-RPC does not define, mutable.
    pub(super) fn extension_members(&mut self) -> impl Iterator<Item = &mut Value> {
        let others = self.members.iter_mut().filter(|(name, _)| !MEMBERS.contains(&name.as_str()));
        others.map(|(_, value)| value)
    }

    /// The parameters, mutable.
    pub(super) fn params_mut(&mut self) -> Option<&mut Value> {
        self.members.get_mut("params")
    }

    /// The error of a response, mutable.
    pub(super) fn error_mut(&mut self) -> Option<&mut Value> {
        self.members.get_mut("error")
    }

    /// The error of a response.
    pub fn error_value(&self) -> Option<&Value> {
        self.members.get("error")
    }

    /// Replaces the id.
    #[must_use]
    pub fn with_id(mut self, id: &RequestId) -> Self {
        self.members.insert("id", id.to_json());
        self.kind = match self.kind {
            MessageKind::Request(_) => MessageKind::Request(id.clone()),
            MessageKind::Response(_) | MessageKind::UnidentifiedError => MessageKind::Response(id.clone()),
            MessageKind::Notification => MessageKind::Notification,
        };
        self
    }

    /// The message as one line, with its line end.
    pub(super) fn to_line(&self) -> String {
        let mut line = self.to_string();
        line.push('\n');
        line
    }

    /// The message as JSON.
    pub fn into_json(self) -> Value {
        Value::Object(self.members)
    }
}

/// One line, without its line end.
impl fmt::Display for JsonRpcMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.members, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_messages_as_they_were_read() {
        let text = r#"{"jsonrpc":"2.0","x":1.50,"id":"a","method":"m","params":{"b":1e400,"a":12345678901234567890}}"#;
        assert_eq!(JsonRpcMessage::parse(text).map(|message| message.to_string()).as_deref(), Ok(text));
    }

    #[test]
    fn reads_lone_surrogates_as_replacement_characters() {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":"hello \ud83d","\uDC00":"\\ud83d \ud83d\ude00"}}"#;
        let read = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"hello \u{fffd}\",\"\u{fffd}\":\"\\\\ud83d \u{1f600}\"}}";
        assert_eq!(JsonRpcMessage::parse(text).map(|message| message.to_string()).as_deref(), Ok(read));
        let doubled = r#"{"jsonrpc":"2.0","id":1,"result":{"\ud800":1,"\udc00":2}}"#;
        assert!(JsonRpcMessage::parse(doubled).is_err_and(|why| why.message.contains("duplicate key")));
    }

    #[test]
    fn rejects_malformed_messages_with_their_error_codes() {
        let cases = [
            ("nonsense", code::PARSE_ERROR),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, code::PARSE_ERROR),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}"#, code::PARSE_ERROR),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\r\"method\":\"a\"}", code::PARSE_ERROR),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1e1,"method":"a"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":-0,"method":"a"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"a"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1234567890123456789,"method":"a"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":["a"]}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","result":{}}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, code::INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, code::INVALID_REQUEST),
            ("7", code::INVALID_REQUEST),
        ];
        for (text, code) in cases {
            assert_eq!(JsonRpcMessage::parse(text).map_err(|why| why.code), Err(code), "{text}");
        }
    }
}
