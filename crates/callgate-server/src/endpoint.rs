//! An endpoint of the API: method, path, who may use it, what it takes, and its handler. Routing and the OpenAPI document read the same
//! table, so that they can't differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use callgate::call::RequestTrace;
use callgate::host::BoxFuture;
use callgate::json::{self, Value};
use callgate_http::{Access, Caller};
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::Api;
use crate::operation::RetryKey;
use crate::problem::Problem;

/// The method of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// A parameter of the query.
pub(crate) struct QueryParameter {
    pub(crate) name: &'static str,
    pub(crate) kind: QueryKind,
    /// One line for the OpenAPI document.
    pub(crate) doc: &'static str,
}

/// The largest number in a query.
const MAX_NUMBER: usize = 1_000_000;

/// What a parameter of the query may be.
#[derive(Clone, Copy)]
pub(crate) enum QueryKind {
    Text,
    /// A number from 0.
    Number,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl QueryParameter {
    pub(crate) const fn new(name: &'static str, kind: QueryKind, doc: &'static str) -> Self {
        Self { name, kind, doc }
    }

    /// The JSON schema of its value.
    pub(crate) fn schema(&self) -> serde_json::Value {
        use serde_json::json;
        match self.kind {
            QueryKind::Text => json!({ "type": "string" }),
            QueryKind::Number => json!({ "type": "integer", "minimum": 0, "maximum": MAX_NUMBER }),
            QueryKind::Flag => json!({ "type": "boolean" }),
            QueryKind::Word(words) => json!({ "type": "string", "enum": words }),
        }
    }
}

/// The handler of an endpoint.
pub(crate) type Handler = for<'a> fn(&'a Arc<Api>, ApiRequest) -> BoxFuture<'a, Result<ApiResponse, Problem>>;

/// An endpoint.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// The path; a segment in braces is a parameter.
    pub(crate) path: &'static str,
    /// Who may use it.
    pub(crate) access: Access,
    /// One line for the OpenAPI document.
    pub(crate) summary: &'static str,
    /// The schema of the body, if it takes one.
    pub(crate) body: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(crate) query: &'static [QueryParameter],
    /// The statuses of success, with their descriptions.
    pub(crate) responses: &'static [(u16, &'static str)],
    pub(crate) handler: Handler,
}

impl Endpoint {
    /// The values of the path's parameters, if the path is this endpoint's.
    pub(crate) fn matches(&self, path: &str) -> Option<Vec<String>> {
        if !self.path.contains('{') {
            return (self.path == path).then(Vec::new);
        }
        let (mut expected, mut found) = (self.path.split('/'), path.split('/'));
        let mut parameters = Vec::new();
        loop {
            match (expected.next(), found.next()) {
                (None, None) => return Some(parameters),
                (Some(expected), Some(found)) if expected.starts_with('{') && !found.is_empty() => {
                    parameters.push(percent_decoded(found)?);
                }
                (Some(expected), Some(found)) if expected == found => {}
                _ => return None,
            }
        }
    }
}

/// The body of a request.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    pub(crate) value: Value,
    /// The length as it was received, in bytes.
    pub(crate) bytes: usize,
}

/// A request whose caller is known.
pub(crate) struct ApiRequest {
    pub(crate) caller: Caller,
    /// The values of the path's parameters, in order.
    pub(crate) parameters: Vec<String>,
    pub(crate) query: BTreeMap<String, String>,
    /// The body; null if there is none.
    pub(crate) body: Value,
    /// The length of the body as it was received, in bytes.
    pub(crate) body_bytes: usize,
    /// The trace that the request names (W3C Trace Context).
    pub(crate) trace: RequestTrace,
    /// Whether the approvals page sends it.
    pub(crate) is_from_page: bool,
    /// What identifies the request if it is sent again, with the digest of its content.
    pub(crate) retry: Option<RetryKey>,
}

impl ApiRequest {
    /// The value of a parameter of the path.
    pub(crate) fn parameter(&self, index: usize) -> &str {
        self.parameters.get(index).map_or("", String::as_str)
    }

    /// The body as this type.
    ///
    /// # Errors
    /// A member is missing, unknown or of the wrong type.
    pub(crate) fn take_body<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        if !self.body.is_object() {
            return Err(Problem::invalid("the body must be a JSON object"));
        }
        json::from_value(self.body.take()).map_err(|error| Problem::invalid(error.to_string()))
    }

    /// A truth value of the query; false if it is absent.
    ///
    /// # Errors
    /// It is neither `true` nor `false`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.query.get(name).map(String::as_str) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => {
                Err(Problem::invalid(format!("the query parameter `{name}` must be `true` or `false`")))
            }
        }
    }

    /// A number of the query, or else a default; at most `most`.
    ///
    /// # Errors
    /// It is not a number.
    pub(crate) fn number(&self, name: &str, default: usize, most: usize) -> Result<usize, Problem> {
        match self.query.get(name) {
            None => Ok(default.min(most)),
            Some(text) => text
                .parse::<usize>()
                .ok()
                .filter(|number| *number <= MAX_NUMBER)
                .map(|number| number.min(most))
                .ok_or_else(|| {
                    Problem::invalid(format!(
                        "the query parameter `{name}` must be a number from 0 to {MAX_NUMBER}"
                    ))
                }),
        }
    }
}

/// A response with a JSON body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON text.
    pub(crate) body: String,
}

impl ApiResponse {
    pub(crate) fn new(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string() }
    }

    pub(crate) fn ok(body: &Value) -> Self {
        Self::new(200, body)
    }

    /// A response with status 200, written without a [`Value`] in between.
    ///
    /// # Errors
    /// The body is not JSON, such as a map whose keys are no strings.
    pub(crate) fn from_document(body: &impl Serialize) -> Result<Self, Problem> {
        let mut text = String::with_capacity(512);
        let appended = json::append_json(&mut text, body);
        appended.map_err(|error| Problem::new(500, "internal_error", error.to_string()))?;
        Ok(Self { status: 200, headers: Vec::new(), body: text })
    }
}

impl From<Problem> for ApiResponse {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status, body: problem.body().to_string(), headers: problem.headers }
    }
}

/// Decodes the percent encoding of a path segment or a query. Returns `None` if it is malformed, or not UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

/// The parameters of a query string. Of a repeated one the last counts; malformed ones are left out.
pub(crate) fn parse_query(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((percent_decoded(&name.replace('+', " "))?, percent_decoded(&value.replace('+', " "))?))
    });
    pairs.filter(|(name, _)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_percent_encoding_and_rejects_malformed_ones() {
        assert_eq!(percent_decoded("a%2Fb%20c").as_deref(), Some("a/b c"));
        assert_eq!(percent_decoded("%C3%A9").as_deref(), Some("é"));
        for malformed in ["%", "%2", "%zz", "%ff", "%C3"] {
            assert_eq!(percent_decoded(malformed), None, "{malformed}");
        }
        assert_eq!(
            parse_query("status=pending&q=a+b&q=c&=x&%=y").into_iter().collect::<Vec<_>>(),
            [("q".to_owned(), "c".to_owned()), ("status".to_owned(), "pending".to_owned())]
        );
    }
}
