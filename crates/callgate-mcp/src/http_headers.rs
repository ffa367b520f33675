//! The HTTP headers of MCP: their names, encoding and relation to the message, for server and client side.

use data_encoding::BASE64;

use super::jsonrpc::{JsonRpcMessage, MessageError, MessageKind, code};
use super::method;
use callgate::json::{self, Value, json};

/// The header with the protocol version.
pub(super) const VERSION: &str = "mcp-protocol-version";
/// The header with the method of the message.
pub(super) const METHOD: &str = "mcp-method";
/// The header with the subject of the message: a tool, a prompt, a resource.
pub(super) const NAME: &str = "mcp-name";
/// The header with the session, for clients with a handshake.
pub(super) const SESSION: &str = "mcp-session-id";
/// What the user asked for, sealed by the host.
pub(super) const TASK: &str = "callgate-task";
/// The prefix of headers that repeat arguments.
pub(super) const PARAM: &str = "mcp-param-";
/// The header with the last event id, to resume a broken stream.
pub(super) const LAST_EVENT: &str = "last-event-id";
/// The content type of messages.
pub(super) const JSON: &str = "application/json";
/// The content type of streams.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The member of `_meta` with the protocol version of a request without a handshake.
pub(super) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with the id of the request that started a subscription.
pub(super) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The first protocol version without a handshake. Versions are dates, so they sort.
const FIRST_STATELESS_VERSION: &str = "2026-07-28";
/// The protocol versions with a handshake.
pub(super) const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The error for an unsupported protocol version. A request with a version in `_meta` can't have a version with a handshake, so it is
/// not offered those.
pub(super) fn unsupported_version_error(request: &JsonRpcMessage, requested: &str) -> JsonRpcMessage {
    let mut supported = vec![FIRST_STATELESS_VERSION];
    if protocol_version(request).is_none() {
        supported.splice(0..0, HANDSHAKE_VERSIONS);
    }
    let message = format!("unsupported protocol version; supported: {}", supported.join(", "));
    let data = json!({ "supported": supported, "requested": requested });
    let id = request.id().filter(|_| matches!(request.kind(), MessageKind::Request(_)));
    JsonRpcMessage::error_response(id, code::UNSUPPORTED_VERSION, &message, Some(data))
}

/// Whether a protocol version has no handshake.
pub(super) fn is_stateless_version(version: &str) -> bool {
    version >= FIRST_STATELESS_VERSION && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The protocol version of a request without a handshake.
pub(super) fn protocol_version(message: &JsonRpcMessage) -> Option<&str> {
    message.meta(META_VERSION).and_then(Value::as_str)
}

const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Encodes text as a header value.
pub(super) fn encode(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) && text.trim() == text;
    let (begin, end) = ENCODED;
    if is_plain && !(text.starts_with(begin) && text.ends_with(end)) {
        return text.to_owned();
    }
    format!("{begin}{}{end}", BASE64.encode(text.as_bytes()))
}

/// Decodes a header value. Returns `None` if it is malformed.
pub(super) fn decode(value: &str) -> Option<String> {
    let (begin, end) = ENCODED;
    match value.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)) {
        Some(encoded) => String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The subject of a message, as in its `Mcp-Name` header.
pub(super) fn subject(message: &JsonRpcMessage) -> Option<&str> {
    let member = match message.method() {
        method::TOOLS_CALL | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    message.param(member).and_then(Value::as_str)
}

/// Parses a body or the data of an event as one message, as strictly as a line, but allows line breaks between members.
pub(super) fn read_message(body: &[u8]) -> Result<JsonRpcMessage, MessageError> {
    match std::str::from_utf8(body) {
        Ok(text) => JsonRpcMessage::parse_multiline(text),
        Err(_) => Err(MessageError::unparsable(&String::from_utf8_lossy(body), "the message is not UTF-8")),
    }
}

/// The arguments of a tool that requests repeat in headers, marked by `x-mcp-header` in its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderArguments {
    /// The path of each argument, and its header.
    arguments: Vec<(Vec<String>, String)>,
}

impl HeaderArguments {
    /// Reads a tool's `inputSchema`. Skips marks that the protocol does not allow.
    pub(super) fn from_schema(schema: &Value) -> Self {
        let mut found = Self::default();
        found.collect(schema, &mut Vec::new());
        found
    }

    fn collect(&mut self, schema: &Value, path: &mut Vec<String>) {
        // Parsed schemas are not deeper than this; the bound is for schemas from other sources.
        if path.len() > json::MAX_DEPTH {
            return;
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            path.push(name.to_string());
            let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
            if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str)
                && matches!(kind, "string" | "integer" | "boolean")
                && is_header_name(header)
            {
                self.arguments.push((path.clone(), format!("{PARAM}{}", header.to_ascii_lowercase())));
            }
            self.collect(property, path);
            path.pop();
        }
    }

    /// The headers for these arguments, each with its value if the argument is present.
    pub(super) fn headers<'a>(
        &'a self,
        arguments: &'a Value,
    ) -> impl Iterator<Item = (&'a str, Option<String>)> {
        self.arguments.iter().map(move |(path, header)| {
            let value = path.iter().try_fold(arguments, |value, name| value.get(name));
            let text = value.and_then(|value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(is) => Some(is.to_string()),
                _ => None,
            });
            (header.as_str(), text)
        })
    }
}

/// Whether a name is a valid HTTP header name.
fn is_header_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn encodes_text_that_no_header_can_contain() {
        let cases = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (text, header) in cases {
            assert_eq!(encode(text), header);
            assert_eq!(decode(header).as_deref(), Some(text));
        }
        assert_eq!(decode("=?base64?not base64?="), None);
    }

    #[test]
    fn reads_bodies_with_line_breaks_and_lone_surrogates() {
        let read = |body: &[u8]| read_message(body).map(|message| message.to_string());
        let answer = b"{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"result\":{\"a\":\"\\ud83d\"}}";
        let expected = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\u{fffd}\"}}";
        assert_eq!(read(answer).as_deref(), Ok(expected));
        let refused = read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}");
        let result = refused.map_err(|why| (why.message, why.id.map(|id| id.to_string())));
        assert_eq!(result, Err(("the message is not UTF-8".to_owned(), Some("1".to_owned()))));
    }

    #[test]
    fn finds_marked_arguments_where_the_protocol_allows_them() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "at": { "type": "object", "properties": { "row": { "type": "integer", "x-mcp-header": "Row" } } },
            "price": { "type": "number", "x-mcp-header": "Price" },
            "odd": { "type": "string", "x-mcp-header": "a b" },
            "list": { "type": "array", "items": { "properties": { "x": { "type": "string", "x-mcp-header": "X" } } } },
        }});
        let repeated = HeaderArguments::from_schema(&schema);
        let arguments = json!({ "region": "eu", "at": { "row": 7 }, "price": 1.5, "odd": "x" });
        let headers: Vec<_> = repeated.headers(&arguments).collect();
        let (region, row) = (Some("eu".to_owned()), Some("7".to_owned()));
        assert_eq!(headers, [("mcp-param-region", region), ("mcp-param-row", row)]);
    }

    #[test]
    fn distinguishes_versions_by_date() {
        for (version, modern) in
            [("2025-11-25", false), ("2026-07-28", true), ("2027-01-01", true), ("draft", false)]
        {
            assert_eq!(is_stateless_version(version), modern, "{version}");
        }
    }
}
