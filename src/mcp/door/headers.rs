//! What a request says in its headers, and whether its body says the same.

use axum::http::{HeaderMap, header};

use crate::json::Value;
use crate::mcp::frame::{Frame, code};
use crate::mcp::http_words::{self, EVENT_STREAM, JSON, RepeatedArguments};
use crate::mcp::method;

/// The one value of a header. Error: there are several, or it is no text.
pub(super) fn said<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| format!("the header `{name}` can't be read"))
        }
        (Some(_), Some(_)) => Err(format!("the header `{name}` is there more than once")),
    }
}

/// Whether a client takes answers of a content type.
pub(super) fn accepts(headers: &HeaderMap, content_type: &str) -> bool {
    let family = content_type.split('/').next().unwrap_or_default();
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|part| {
            let kind = part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            kind == content_type || kind == "*/*" || kind == format!("{family}/*")
        })
    })
}

/// Whether a client takes both one message and a stream of them.
pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    accepts(headers, JSON) && accepts(headers, EVENT_STREAM)
}

/// Whether the body is said to be a message.
pub(super) fn is_message(headers: &HeaderMap) -> bool {
    let kind = said(headers, header::CONTENT_TYPE.as_str()).ok().flatten().unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

/// What the headers and `_meta` of a request that stands for itself have to say, and do not.
pub(super) fn mistake(headers: &HeaderMap, frame: &Frame) -> Option<(i64, String)> {
    let Some(version) = http_words::version_of(frame) else {
        let member = http_words::META_VERSION;
        return Some((
            code::INVALID_PARAMS,
            format!("`_meta` is to say the protocol's version in `{member}`"),
        ));
    };
    if !frame.meta(method::CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        let member = method::CLIENT_CAPABILITIES;
        return Some((
            code::INVALID_PARAMS,
            format!("`_meta` is to say what the client can do in `{member}`"),
        ));
    }
    let is_required = matches!(frame.method(), method::TOOLS_CALL | "prompts/get" | "resources/read");
    let subject = http_words::subject(frame);
    let of_body = [
        (http_words::VERSION, Some(version), true),
        (http_words::METHOD, Some(frame.method()), true),
        (http_words::NAME, subject, is_required && subject.is_some()),
    ];
    let mismatch = |why: String| Some((code::HEADER_MISMATCH, why));
    for (name, body, is_required) in of_body {
        let value = match said(headers, name) {
            Ok(value) => value,
            Err(why) => return mismatch(why),
        };
        let Some(value) = value else {
            if is_required {
                return mismatch(format!("the header `{name}` is missing"));
            }
            continue;
        };
        let decoded =
            if name == http_words::NAME { http_words::decode(value) } else { Some(value.to_owned()) };
        if body.is_some_and(|body| decoded.as_deref() != Some(body)) {
            return mismatch(format!("the header `{name}` and the body do not say the same"));
        }
    }
    None
}

/// The same of the arguments that a tool wants repeated in headers.
pub(super) fn mistake_in_arguments(
    headers: &HeaderMap,
    frame: &Frame,
    repeated: &RepeatedArguments,
) -> Option<String> {
    let none = Value::Null;
    let arguments = frame.param("arguments").unwrap_or(&none);
    repeated.of(arguments).find_map(|(name, body)| {
        let value = match said(headers, name) {
            Ok(value) => value,
            Err(why) => return Some(why),
        };
        match (value, body) {
            (None, None) => None,
            (Some(value), Some(body)) => {
                let decoded = http_words::decode(value);
                let is_same = decoded
                    .as_deref()
                    .is_some_and(|decoded| decoded == body || are_one_number(decoded, &body));
                (!is_same).then(|| format!("the header `{name}` and the argument do not say the same"))
            }
            (None, Some(_)) => Some(format!("the header `{name}` is missing")),
            (Some(_), None) => Some(format!("the header `{name}` is there without its argument")),
        }
    })
}

/// `42.0` and `42` are one number.
fn are_one_number(header: &str, body: &str) -> bool {
    let number = |text: &str| crate::json::parse(text).ok().filter(Value::is_number);
    matches!((number(header), number(body)), (Some(header), Some(body)) if header == body)
}
