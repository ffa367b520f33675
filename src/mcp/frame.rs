//! JSON-RPC messages, read strictly and kept whole: whatever members they have stay, in their order and with their digits.
//!
//! What a server or a client is given is what was parsed and written anew, never text that could not be read strictly: two readers
//! may understand such text differently, and a gate would then judge another call than the one that runs.

mod id;
mod malformed;

use std::fmt;

pub use id::Id;
pub use malformed::{Malformed, code};

use super::method;
use crate::json::{self, LoneSurrogates, Map, Value, json};
use crate::text::inert;

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It asks for an answer.
    Request(Id),
    /// It tells something.
    Notification,
    /// It answers.
    Response(Id),
    /// It says that a message could not be read, without whose: an error whose id is null.
    Complaint,
}

/// The members that make a message what it is.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    members: Map,
    kind: Kind,
    /// How it came, not what it says.
    is_event: bool,
}

impl Frame {
    /// Reads one message. Errors: text that is not JSON or has a doubled key, a batch, members that differ from
    /// those of a message in case only, an id that is no string and no whole number,
    /// a message that asks and answers at once, parameters that are no object.
    ///
    /// ```
    /// use callgate::mcp::frame::{Frame, Id, Kind};
    ///
    /// let frame = Frame::parse(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).expect("a request");
    /// assert_eq!(frame.kind(), &Kind::Request(Id::of(&7.into()).expect("an id")));
    /// let refused = Frame::parse(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#);
    /// assert!(refused.is_err_and(|why| why.message.contains("duplicate key")));
    /// ```
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        // Some readers of lines end one at a bare carriage return.
        if text.trim_end_matches(['\r', '\n']).contains(['\r', '\n']) {
            return Err(Malformed::unreadable(text, "the message has a line break in it"));
        }
        Self::read(text)
    }

    /// The same of a text that may have line breaks between its members. A lone surrogate is read as U+FFFD: what is judged and what is
    /// passed on is what was read.
    pub(super) fn read(text: &str) -> Result<Self, Malformed> {
        let value = json::parse_with(text, LoneSurrogates::Replace);
        Self::of(value.map_err(|error| Malformed::invalid_json(text, &error))?)
    }

    /// The message that a value is. Errors: as [`parse`](Self::parse).
    pub fn of(value: Value) -> Result<Self, Malformed> {
        let invalid = |id: Option<Id>, message: &str| Malformed::new(id, code::INVALID_REQUEST, message);
        let members = match value {
            Value::Object(members) => members,
            Value::Array(_) => {
                return Err(invalid(None, "batches are not taken; send one message at a time"));
            }
            _ => return Err(invalid(None, "a message is an object")),
        };
        let id = match members.get("id") {
            None => None,
            Some(Value::Null) if members.contains_key("error") && !members.contains_key("method") => None,
            Some(id) => {
                let id = Id::of(id);
                Some(id.ok_or_else(|| {
                    invalid(None, "an `id` is a string or a whole number of up to 18 digits")
                })?)
            }
        };
        if let Some(member) = method::misread(&members, &MEMBERS) {
            let message = format!("some take the member `{}` for another one", inert(member));
            return Err(invalid(id, &message));
        }
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(id, "`jsonrpc` is to be \"2.0\""));
        }
        let answers = members.contains_key("result") || members.contains_key("error");
        let kind = match (members.get("method"), answers) {
            (Some(_), true) => return Err(invalid(id, "a message asks or answers, not both")),
            (Some(Value::String(_)), false) => {
                if members.get("params").is_some_and(|params| !params.is_object()) {
                    return Err(invalid(id, "`params` is to be an object"));
                }
                id.map_or(Kind::Notification, Kind::Request)
            }
            (Some(_), false) => return Err(invalid(id, "`method` is to be a string")),
            (None, true) if members.contains_key("result") && members.contains_key("error") => {
                return Err(invalid(id, "an answer has a result or an error, not both"));
            }
            (None, true) if members.get("error").is_some_and(|error| !error.is_object()) => {
                return Err(invalid(id, "`error` is to be an object"));
            }
            (None, true) => match id {
                Some(id) => Kind::Response(id),
                None if members.contains_key("error") => Kind::Complaint,
                None => return Err(invalid(None, "an answer says in `id` what it answers")),
            },
            (None, false) => return Err(invalid(id, "a message has a `method`, a `result` or an `error`")),
        };
        Ok(Self { members, kind, is_event: false })
    }

    /// A request.
    pub fn request(id: &Id, method: &str, params: Value) -> Self {
        let message = json!({ "jsonrpc": "2.0", "id": id.to_json(), "method": method, "params": params });
        Self::made(message, Kind::Request(id.clone()))
    }

    /// A notification.
    pub fn notification(method: &str, params: Value) -> Self {
        Self::made(json!({ "jsonrpc": "2.0", "method": method, "params": params }), Kind::Notification)
    }

    /// An answer with a result.
    pub fn result(id: &Id, result: Value) -> Self {
        Self::made(
            json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }),
            Kind::Response(id.clone()),
        )
    }

    /// An answer with an error. Without an id it is about a message of which none could be read.
    pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<Value>) -> Self {
        let mut error = json!({ "code": code, "message": message });
        if let (Some(data), Some(error)) = (data, error.as_object_mut()) {
            error.insert("data".to_owned(), data);
        }
        let kind = id.map_or(Kind::Complaint, |id| Kind::Response(id.clone()));
        Self::made(json!({ "jsonrpc": "2.0", "id": id.map(Id::to_json), "error": error }), kind)
    }

    /// An answer with an error that is there already.
    pub fn failed(id: &Id, error: Value) -> Self {
        Self::made(
            json!({ "jsonrpc": "2.0", "id": id.to_json(), "error": error }),
            Kind::Response(id.clone()),
        )
    }

    fn made(message: Value, kind: Kind) -> Self {
        let members = match message {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { members, kind, is_event: false }
    }

    /// The same message, as an event of a stream.
    #[must_use]
    pub(super) fn into_event(mut self) -> Self {
        self.is_event = true;
        self
    }

    /// Whether its server sent it as an event of a stream. Clients get it in the same form.
    pub(super) fn is_event(&self) -> bool {
        self.is_event
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its id, where it has one.
    pub fn id(&self) -> Option<&Id> {
        match &self.kind {
            Kind::Request(id) | Kind::Response(id) => Some(id),
            Kind::Notification | Kind::Complaint => None,
        }
    }

    /// The method of a request or a notification; empty for an answer.
    pub fn method(&self) -> &str {
        self.members.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    /// The parameters, where there are any.
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

    /// Sets one of the parameters, which are made where there are none.
    pub fn set_param(&mut self, name: &str, value: Value) {
        if let Value::Object(params) =
            self.members.entry("params").or_insert_with(|| Value::Object(Map::new()))
        {
            params.insert(name.to_owned(), value);
        }
    }

    /// What stands among the parameters under these keys, one in the other.
    pub fn param_at(&self, place: &[&str]) -> Option<&Value> {
        place.iter().try_fold(self.members.get("params")?, |value, key| value.get(key))
    }

    /// Sets what stands among the parameters under these keys, where all but the last are there.
    pub fn set_param_at(&mut self, place: &[&str], value: Value) {
        let Some((last, way)) = place.split_last() else { return };
        let target = way
            .iter()
            .try_fold(self.members.get_mut("params"), |value, key| value.map(|value| value.get_mut(key)));
        if let Some(Some(Value::Object(target))) = target {
            target.insert((*last).to_owned(), value);
        }
    }

    /// Takes one of the parameters out.
    pub fn take_param(&mut self, name: &str) -> Option<Value> {
        self.members.get_mut("params")?.as_object_mut()?.remove(name)
    }

    /// The result of an answer.
    pub fn result_value(&self) -> Option<&Value> {
        self.members.get("result")
    }

    /// The result of an answer, to be changed.
    pub fn result_mut(&mut self) -> Option<&mut Value> {
        self.members.get_mut("result")
    }

    /// Takes the result or the error of an answer, and leaves its place.
    pub(super) fn take_outcome(&mut self, member: &str) -> Option<Value> {
        self.members.get_mut(member).map(Value::take)
    }

    /// The same answer with this as its result or error.
    #[must_use]
    pub(super) fn with_outcome(mut self, member: &str, value: Value) -> Self {
        self.members.insert(member.to_owned(), value);
        self
    }

    /// The members that make no message, to be changed.
    pub(super) fn other_members(&mut self) -> impl Iterator<Item = &mut Value> {
        let others = self.members.iter_mut().filter(|(name, _)| !MEMBERS.contains(&name.as_str()));
        others.map(|(_, value)| value)
    }

    /// The parameters, to be changed.
    pub(super) fn params_mut(&mut self) -> Option<&mut Value> {
        self.members.get_mut("params")
    }

    /// The error of an answer, to be changed.
    pub(super) fn error_mut(&mut self) -> Option<&mut Value> {
        self.members.get_mut("error")
    }

    /// The error of an answer.
    pub fn error_value(&self) -> Option<&Value> {
        self.members.get("error")
    }

    /// The same message under another id.
    #[must_use]
    pub fn with_id(mut self, id: &Id) -> Self {
        self.members.insert("id".to_owned(), id.to_json());
        self.kind = match self.kind {
            Kind::Request(_) => Kind::Request(id.clone()),
            Kind::Response(_) | Kind::Complaint => Kind::Response(id.clone()),
            Kind::Notification => Kind::Notification,
        };
        self
    }

    /// The message as a line, with its end.
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

/// One line, without its end.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.members, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forwarded_is_what_was_read() {
        let text = r#"{"jsonrpc":"2.0","x":1.50,"id":"a","method":"m","params":{"b":1e400,"a":12345678901234567890}}"#;
        assert_eq!(Frame::parse(text).map(|frame| frame.to_string()).as_deref(), Ok(text));
    }

    #[test]
    fn half_a_character_is_read_as_one_that_stands_for_any() {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":"hello \ud83d","\uDC00":"\\ud83d \ud83d\ude00"}}"#;
        let read = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"hello \u{fffd}\",\"\u{fffd}\":\"\\\\ud83d \u{1f600}\"}}";
        assert_eq!(Frame::parse(text).map(|frame| frame.to_string()).as_deref(), Ok(read));
        let doubled = r#"{"jsonrpc":"2.0","id":1,"result":{"\ud800":1,"\udc00":2}}"#;
        assert!(Frame::parse(doubled).is_err_and(|why| why.message.contains("duplicate key")));
    }

    #[test]
    fn each_odd_message_has_its_answer() {
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
            assert_eq!(Frame::parse(text).map_err(|why| why.code), Err(code), "{text}");
        }
    }
}
