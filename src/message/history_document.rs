//! Reads and writes whole histories: a document of any dialect ↔ [`History`].

use super::dialect::{Dialect, DialectError};
use super::history::{History, Message, MessageFrame, RequestFrame, Role};
use super::{id_assignment, segments};
use crate::json::{JsonType, MAX_DEPTH, Map, Value, is_deeper_than};

impl History {
    /// Reads a history: an array of messages, or a whole request. The system prompt of a request becomes the first message;
    /// its other members are preserved. Unknown messages and parts are preserved unchanged. Calls without an id get one
    /// from their position.
    ///
    /// # Errors
    /// If the document has no array of messages, or is nested too deeply.
    pub fn read(dialect: Dialect, document: &Value) -> Result<Self, DialectError> {
        if is_deeper_than(document, MAX_DEPTH) {
            return Err(DialectError::TooDeep);
        }
        let shape = |found| DialectError::Shape { dialect, member: dialect.messages_key(), found };
        let mut history = match document {
            Value::Array(items) => Self::new(items.iter().map(|item| dialect.read_message(item)).collect()),
            Value::Object(request) => read_request(dialect, request)
                .ok_or_else(|| shape(format!("an object without the array `{}`", dialect.messages_key())))?,
            other => return Err(shape(JsonType::from_value(other).with_article().to_owned())),
        };
        id_assignment::assign_missing_ids(&mut history.messages);
        Ok(history)
    }

    /// Writes the history. In the dialect that it was read from, unchanged messages are written as they were read, so the
    /// document is equal as JSON. In another dialect, the result is an array of messages; if that dialect has a separate
    /// system prompt (Anthropic, Gemini) and the history begins with one, it is an object with the array and the system
    /// prompt.
    ///
    /// Use this form for storage: it contains approval parts, and the parts of other dialects in an envelope, which
    /// providers reject. To send a history, write the result of [`History::for_provider`].
    pub fn write(&self, dialect: Dialect) -> Value {
        let leading = self.messages.iter().take_while(|message| message.role.is_instruction()).count();
        let (head, tail) = self.messages.split_at_checked(leading).unwrap_or_default();
        let apart = |message: &&Message| match message.frame_in(dialect) {
            Some(frame) => frame.at_root,
            None => dialect.has_separate_system(),
        };
        let (system, rest): (Vec<&Message>, Vec<&Message>) = head.iter().partition(apart);
        let messages: Vec<&Message> = rest.into_iter().chain(tail).collect();
        let system = write_system(dialect, &system);
        let list = dialect.write_messages(&messages);
        let root = self.root.as_ref().filter(|root| root.dialect == dialect);
        if root.is_none() && system.is_none() {
            return list.into();
        }
        let mut request = root.map(|root| root.request.clone()).unwrap_or_default();
        let member = root.and_then(|root| root.system).or(dialect.system_keys().first().copied());
        match (member, system) {
            (Some(member), Some(system)) => _ = request.insert(member.to_owned(), system),
            // The history no longer contains the system prompt that was read.
            (Some(member), None) if root.is_some_and(|root| root.system.is_some()) => {
                _ = request.remove(member);
            }
            _ => {}
        }
        let was_text = matches!(request.get(dialect.messages_key()), Some(Value::String(_)));
        let text = list.first().filter(|_| was_text && list.len() == 1).and_then(|item| item.get("content"));
        let written = text.filter(|text| text.is_string()).cloned().unwrap_or_else(|| list.into());
        request.insert(dialect.messages_key().to_owned(), written);
        request.into()
    }
}

/// Reads a request, and takes its messages and the system prompt out. Returns `None` if it has no array of messages.
fn read_request(dialect: Dialect, request: &Map) -> Option<History> {
    let mut frame = request.clone();
    let mut messages = Vec::new();
    let mut system_key = None;
    if let Some(member) = dialect.system_keys().iter().find(|member| request.contains_key(member))
        && let Some(system) = request.get(member).and_then(|system| read_system(dialect, system))
    {
        frame.insert((*member).to_owned(), Value::Null);
        system_key = Some(*member);
        messages.push(system);
    }
    let emptied = match request.get(dialect.messages_key())? {
        Value::Array(items) => {
            messages.extend(items.iter().map(|item| dialect.read_message(item)));
            Value::Array(Vec::new())
        }
        Value::String(text) if dialect == Dialect::OpenaiResponses => {
            messages.push(dialect.read_message(&segments::message_json(
                "user",
                dialect.content_key(),
                text.clone().into(),
            )));
            Value::String(String::new())
        }
        _ => return None,
    };
    frame.insert(dialect.messages_key().to_owned(), emptied);
    Some(History { messages, root: Some(RequestFrame { dialect, request: frame, system: system_key }) })
}

/// Reads a separate system prompt. Returns `None` if its form is unknown; then it stays in the request.
fn read_system(dialect: Dialect, system: &Value) -> Option<Message> {
    let json = match (dialect, system) {
        (Dialect::Gemini, Value::Object(content)) if content.get("parts").is_some_and(Value::is_array) => {
            system.clone()
        }
        (Dialect::Gemini, _) => return None,
        (Dialect::Anthropic, Value::String(_) | Value::Array(_)) | (_, Value::String(_)) => {
            segments::message_json("system", dialect.content_key(), system.clone())
        }
        _ => return None,
    };
    let mut message = dialect.read_message(&json);
    message.role = Role::System;
    let Some(MessageFrame { at_root, .. }) = &mut message.frame else { return None };
    *at_root = true;
    Some(message)
}

/// The separate system prompt from these messages.
fn write_system(dialect: Dialect, system: &[&Message]) -> Option<Value> {
    let mut written = dialect.write_messages(system).into_iter();
    let first = written.next()?;
    let whole = written.fold(first, |mut whole, next| {
        segments::append_content(&mut whole, dialect.content_key(), &next);
        whole
    });
    match dialect {
        Dialect::Gemini => Some(segments::without_role(whole, system)),
        _ => whole.get(dialect.content_key()).cloned(),
    }
}
