//! The payload that travels with a card and returns with the click: everything that does not fit into an action id.

use crate::call::CardLabels;
use crate::json::{self, JsonType, Map, Value, json};
use crate::message::RequestPart;
use crate::safe_text::{escape_controls, truncate};

/// The version of the payload format.
pub const PAYLOAD_VERSION: u64 = 1;
/// The maximum length of a payload in bytes of JSON text, for writing and reading.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;
/// The member of the host's own object that holds a payload.
pub const PAYLOAD_KEY: &str = "toolApproval";

/// The arguments are two levels deep.
const MAX_INPUT_DEPTH: usize = json::MAX_DEPTH - 2;

/// The members of version 1, in output order.
const MEMBERS: [&str; 15] = [
    "version",
    "approvalId",
    "toolCallId",
    "toolName",
    "input",
    "message",
    "policies",
    "expiresAt",
    "inputDigest",
    "approvalToken",
    "server",
    "relevant",
    "repeats",
    "card",
    "conversation",
];

/// An approval request as a JSON record: `{"toolApproval": {"version": 1, "approvalId": …, …}}`.
///
/// It passes through untrusted hands. Its token proves that the request is authentic; a host that can look up the request in the
/// conversation's history should do that instead.
///
/// ```
/// use callgate::card::Payload;
/// use callgate::message::RequestPart;
///
/// let request = RequestPart { approval_id: "approval_c1".into(), tool_call_id: "c1".into(), ..RequestPart::default() };
/// let payload = Payload { conversation: Some("conv-7".into()), ..Payload::from_request(request) };
/// let sent = payload.to_json()?;
/// assert_eq!(sent["toolApproval"]["approvalId"], "approval_c1");
/// assert_eq!(Payload::from_json(&sent)?, payload);
/// # Ok::<(), callgate::card::PayloadError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The approval request, with its token.
    pub request: RequestPart,
    /// The conversation that it belongs to.
    pub conversation: Option<String>,
}

/// Why a payload can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It is too long.
    #[error("the payload has {bytes} bytes, the maximum is {MAX_PAYLOAD_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It is nested too deeply.
    #[error("the payload is nested deeper than {} levels", json::MAX_DEPTH)]
    TooDeep,
    /// The text is not valid JSON, or has a duplicate key.
    #[error("the payload is not valid JSON: {0}")]
    InvalidJson(String),
    /// The object has no payload.
    #[error("`{PAYLOAD_KEY}` is missing in the object")]
    Missing,
    /// It has another version.
    #[error("approval payload version {0} is not supported, only {PAYLOAD_VERSION}; post the card again")]
    UnknownVersion(String),
    /// A required member is missing.
    #[error("`{PAYLOAD_KEY}.{0}` is missing")]
    MissingMember(&'static str),
    /// A member has the wrong type.
    #[error("`{PAYLOAD_KEY}{member}` must be {expected}, it is {}", found.with_article())]
    WrongType {
        /// The member, with a leading dot; empty for the payload itself.
        member: String,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: JsonType,
    },
    /// A member that this version does not have; it may restrict the request.
    #[error("`{PAYLOAD_KEY}.{}` is not a known member", truncate(&escape_controls(.0)))]
    UnknownMember(String),
}

impl Payload {
    /// Creates the payload of a request, without a conversation.
    pub fn from_request(request: RequestPart) -> Self {
        Self { request, conversation: None }
    }

    /// Writes the payload as JSON.
    ///
    /// # Errors
    /// Returns [`PayloadError`] if it is too long or nested too deeply to be read again.
    pub fn to_json(&self) -> Result<Value, PayloadError> {
        let request = &self.request;
        // Check depth first, because copying or writing a value recurses.
        if request.input.as_ref().is_some_and(|input| json::is_deeper_than(input, MAX_INPUT_DEPTH)) {
            return Err(PayloadError::TooDeep);
        }
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let texts = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec().into());
        let words = &request.card;
        let own_words: Map = [("title", &words.title), ("approve", &words.approve), ("deny", &words.deny)]
            .into_iter()
            .filter_map(|(key, words)| Some((key.to_owned(), text(words)?)))
            .collect();
        let members: [Option<Value>; MEMBERS.len()] = [
            Some(PAYLOAD_VERSION.into()),
            Some(request.approval_id.clone().into()),
            Some(request.tool_call_id.clone().into()),
            text(&request.tool_name),
            request.input.clone(),
            text(&request.message),
            texts(&request.policies),
            text(&request.expires_at),
            text(&request.input_digest),
            text(&request.approval_token),
            text(&request.server),
            texts(&request.relevant),
            request.repeats.map(Value::from),
            (!own_words.is_empty()).then(|| own_words.into()),
            text(&self.conversation),
        ];
        let members = MEMBERS.iter().zip(members);
        let record: Map = members.filter_map(|(key, value)| Some(((*key).to_owned(), value?))).collect();
        let record = Value::from(record);
        check_length(&record)?;
        Ok(json!({ PAYLOAD_KEY: record }))
    }

    /// Reads a payload from the object that came back; the object may have other members.
    pub fn from_json(object: &Value) -> Result<Self, PayloadError> {
        let record = object.get(PAYLOAD_KEY).ok_or(PayloadError::Missing)?;
        if json::is_deeper_than(record, MAX_INPUT_DEPTH + 1) {
            return Err(PayloadError::TooDeep);
        }
        check_length(record)?;
        read_record(RecordReader { at: String::new(), map: as_map(record, "")? })
    }

    /// Parses a payload from JSON text, in which duplicate keys are rejected.
    pub fn parse(text: &str) -> Result<Self, PayloadError> {
        if text.len() > MAX_PAYLOAD_BYTES {
            return Err(PayloadError::TooLong { bytes: text.len() });
        }
        Self::from_json(&json::parse(text).map_err(|error| PayloadError::InvalidJson(error.to_string()))?)
    }
}

fn check_length(record: &Value) -> Result<(), PayloadError> {
    let bytes = record.to_string().len() + PAYLOAD_KEY.len() + r#"{"":}"#.len();
    if bytes > MAX_PAYLOAD_BYTES { Err(PayloadError::TooLong { bytes }) } else { Ok(()) }
}

fn read_record(record: RecordReader<'_>) -> Result<Payload, PayloadError> {
    // First, because the members of another version may have another meaning.
    match record.map.get("version") {
        None => return Err(PayloadError::MissingMember("version")),
        Some(Value::Number(number)) if number.as_u64() == Some(PAYLOAD_VERSION) => {}
        Some(Value::Number(number)) => {
            return Err(PayloadError::UnknownVersion(truncate(&escape_controls(&number.text()))));
        }
        Some(other) => return Err(record.wrong_type("version", "a number", other)),
    }
    record.reject_unknown_members(&MEMBERS)?;
    let card = match record.map.get("card") {
        None => CardLabels::default(),
        Some(words) => read_words(RecordReader { at: ".card".to_owned(), map: as_map(words, ".card")? })?,
    };
    let repeats = match record.map.get("repeats") {
        None => None,
        Some(Value::Number(number)) if number.as_u64().is_some() => number.as_u64(),
        Some(other) => return Err(record.wrong_type("repeats", "a non-negative integer", other)),
    };
    Ok(Payload {
        request: RequestPart {
            approval_id: record.string("approvalId")?.ok_or(PayloadError::MissingMember("approvalId"))?,
            tool_call_id: record.string("toolCallId")?.ok_or(PayloadError::MissingMember("toolCallId"))?,
            tool_name: record.string("toolName")?,
            input: record.map.get("input").cloned(),
            message: record.string("message")?,
            policies: record.strings("policies")?,
            expires_at: record.string("expiresAt")?,
            input_digest: record.string("inputDigest")?,
            approval_token: record.string("approvalToken")?,
            server: record.string("server")?,
            relevant: record.strings("relevant")?,
            repeats,
            card,
        },
        conversation: record.string("conversation")?,
    })
}

fn read_words(words: RecordReader<'_>) -> Result<CardLabels, PayloadError> {
    words.reject_unknown_members(&["title", "approve", "deny"])?;
    Ok(CardLabels {
        title: words.string("title")?,
        approve: words.string("approve")?,
        deny: words.string("deny")?,
    })
}

fn as_map<'a>(value: &'a Value, member: &str) -> Result<&'a Map, PayloadError> {
    let wrong = || PayloadError::WrongType {
        member: member.to_owned(),
        expected: "an object",
        found: JsonType::from_value(value),
    };
    value.as_object().ok_or_else(wrong)
}

/// An object, and its path in the payload.
struct RecordReader<'a> {
    at: String,
    map: &'a Map,
}

impl RecordReader<'_> {
    fn wrong_type(&self, key: &str, expected: &'static str, found: &Value) -> PayloadError {
        PayloadError::WrongType {
            member: format!("{}.{key}", self.at),
            expected,
            found: JsonType::from_value(found),
        }
    }

    fn reject_unknown_members(&self, members: &[&str]) -> Result<(), PayloadError> {
        match self.map.keys().find(|key| !members.contains(&key.as_str())) {
            Some(key) => Err(PayloadError::UnknownMember(format!("{}{key}", self.prefix()))),
            None => Ok(()),
        }
    }

    fn prefix(&self) -> String {
        self.at.strip_prefix('.').map(|at| format!("{at}.")).unwrap_or_default()
    }

    fn string(&self, key: &str) -> Result<Option<String>, PayloadError> {
        match self.map.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong_type(key, "a string", other)),
        }
    }

    fn strings(&self, key: &str) -> Result<Vec<String>, PayloadError> {
        let items = match self.map.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(self.wrong_type(key, "an array of strings", other)),
        };
        let text = |(index, item): (usize, &Value)| {
            let wrong = || self.wrong_type(&format!("{key}[{index}]"), "a string", item);
            item.as_str().map(str::to_owned).ok_or_else(wrong)
        };
        items.iter().enumerate().map(text).collect()
    }
}
