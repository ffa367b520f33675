//! Distribution of parts into messages, shared by the dialects, which differ in what one message may contain.

use super::dialect::Dialect;
use super::history::{Message, MessageFrame, Role};
use super::part::{Part, PartContent, SourceSlot};
use crate::json::{Map, Value};

/// A sequence of parts of one role, which becomes one message of a dialect, or a few.
pub(super) struct Segment<'a> {
    pub(super) role: Role,
    /// The frame of the message that was read in this dialect, if any.
    pub(super) frame: Option<&'a MessageFrame>,
    pub(super) parts: Vec<&'a Part>,
}

impl Segment<'_> {
    pub(super) fn has_response(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part.content(), PartContent::Response(_) | PartContent::State(_)))
    }

    /// The source JSON of the segment's only part, if that is a whole message of this dialect.
    pub(super) fn whole_message(&self, dialect: Dialect) -> Option<&Value> {
        self.parts.first().and_then(|part| whole_message_source(dialect, part))
    }

    /// Writes the segment as one message.
    pub(super) fn write(
        &self,
        dialect: Dialect,
        (role, content_key): (&str, &str),
        plain: bool,
        block: impl Fn(&Part) -> Value,
    ) -> Value {
        if let Some(whole) = self.whole_message(dialect) {
            return whole.clone();
        }
        let mut map = match self.frame {
            Some(frame) => frame.json.clone(),
            None => Map::from_iter([("role".to_owned(), role.into())]),
        };
        if let Some(content) = content_json(map.get(content_key), &self.parts, plain, block) {
            map.insert(content_key, content);
        }
        map.into()
    }
}

/// Splits messages into segments of one role each. A message that was read in this dialect stays one segment. Adjacent
/// segments are merged if `joins` returns `true`, but never two that were read as separate messages.
pub(super) fn segments<'a>(
    dialect: Dialect,
    messages: &[&'a Message],
    joins: impl Fn(&Segment, &Segment) -> bool,
) -> Vec<Segment<'a>> {
    let mut segments: Vec<Segment<'a>> = Vec::new();
    let mut add = |next: Segment<'a>| match segments.last_mut() {
        Some(last)
            if (last.frame.is_none() || next.frame.is_none())
                && last.whole_message(dialect).or(next.whole_message(dialect)).is_none()
                && joins(last, &next) =>
        {
            last.frame = last.frame.or(next.frame);
            // Results merged with a user's text form a user's message.
            if last.role == Role::Tool && next.role == Role::User {
                last.role = Role::User;
            }
            last.parts.extend(next.parts);
        }
        _ => segments.push(next),
    };
    for message in messages {
        if let Some(frame) = message.frame_in(dialect) {
            let parts = message.parts.iter().collect();
            add(Segment { role: message.role.clone(), frame: Some(frame), parts });
            continue;
        }
        // Providers reject empty texts.
        let nonempty_parts = message
            .parts
            .iter()
            .filter(|part| part.source_in(dialect).is_some() || part.as_text() != Some(""));
        let mut run: Option<Segment<'a>> = None;
        for part in nonempty_parts {
            let role = role_of_part(part, &message.role);
            match &mut run {
                Some(run)
                    if run.role == role
                        && run.whole_message(dialect).or(whole_message_source(dialect, part)).is_none() =>
                {
                    run.parts.push(part);
                }
                _ => run
                    .replace(Segment { role, frame: None, parts: vec![part] })
                    .into_iter()
                    .for_each(&mut add),
            }
        }
        run.into_iter().for_each(&mut add);
    }
    segments
}

/// The source JSON of the part, if it is a whole message of this dialect.
pub(super) fn whole_message_source(dialect: Dialect, part: &Part) -> Option<&Value> {
    part.source_in(dialect).filter(|source| source.slot == SourceSlot::Whole).map(|source| &source.json)
}

/// A message of unknown form, or one that is a single part.
pub(super) fn message_of_one_part(
    dialect: Dialect,
    role: Role,
    json: &Value,
    content: PartContent,
) -> Message {
    Message::new(role, vec![Part::from_source(dialect, SourceSlot::Whole, json.clone(), content)])
}

/// The role of a message that is new to a dialect. A message without a role is written as the user's.
pub(super) fn new_message_role(role: &Role) -> &str {
    match role {
        Role::Other(name) if name.is_empty() => "user",
        other => other.name(),
    }
}

/// The role of this part, whatever message it is in.
fn role_of_part(part: &Part, message: &Role) -> Role {
    match part.content() {
        PartContent::Result(_) | PartContent::Response(_) | PartContent::State(_) => Role::Tool,
        PartContent::Call(_) | PartContent::Request(_) => Role::Assistant,
        // A tool message contains only results, and this must not be read as one.
        PartContent::Text(_) | PartContent::Other if *message == Role::Tool => Role::User,
        PartContent::Text(_) | PartContent::Other => message.clone(),
    }
}

/// A message with a role and one member for its content.
pub(super) fn message_json(role: &str, content_key: &str, content: Value) -> Value {
    Map::from_iter([("role".to_owned(), role.into()), (content_key.to_owned(), content)]).into()
}

/// The contents in the form of the frame: a single text stays a string if the message had a string, or if the message is
/// new and `plain` is set.
pub(super) fn content_json(
    frame: Option<&Value>,
    parts: &[&Part],
    plain: bool,
    block: impl Fn(&Part) -> Value,
) -> Option<Value> {
    let as_string = match frame {
        None => plain,
        Some(Value::Null) => plain && parts.iter().all(|part| part.original_source().is_none()),
        Some(framed) => framed.is_string() && parts.iter().all(|part| part.original_source().is_none()),
    };
    match parts {
        [] => frame.cloned(),
        [only] if as_string && only.as_text().is_some() => only.as_text().map(Value::from),
        _ => Some(parts.iter().map(|part| block(part)).collect::<Vec<_>>().into()),
    }
}

/// Appends the content of `next` to that of `whole`; a string becomes an array with one text.
pub(super) fn append_content(whole: &mut Value, content_key: &str, next: &Value) {
    let list = |content: Option<&Value>| match content {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(Value::String(text)) => vec![super::content_blocks::text_block(text)],
        _ => Vec::new(),
    };
    let blocks: Vec<Value> =
        list(whole.get(content_key)).into_iter().chain(list(next.get(content_key))).collect();
    if let Some(whole) = whole.as_object_mut() {
        whole.insert(content_key.to_owned(), blocks.into());
    }
}

/// Removes the role of a system instruction, unless it was read with one.
pub(super) fn without_role(mut whole: Value, system: &[&Message]) -> Value {
    let has_role = system
        .iter()
        .filter_map(|message| message.frame_in(Dialect::Gemini))
        .any(|frame| frame.json.contains_key("role"));
    if let (false, Some(whole)) = (has_role, whole.as_object_mut()) {
        whole.remove("role");
    }
    whole
}

/// The role of a user message in a dialect without a tool role: a message with only results and answers is a tool message.
/// An answer among other user content is not, because a client that relays user content relays it too.
pub(super) fn role_of_user_message(
    named: Role,
    content: Option<&Value>,
    is_result_or_answer: impl Fn(&Value) -> bool,
) -> Role {
    let blocks = content.and_then(Value::as_array).filter(|blocks| !blocks.is_empty());
    match blocks {
        Some(blocks) if named == Role::User && blocks.iter().all(is_result_or_answer) => Role::Tool,
        _ => named,
    }
}

/// Whether two segments form one turn for providers with two alternating roles: results first, then the user's content.
/// Answers stay separate; merged, they would not be recognised as answers.
pub(super) fn is_same_turn(last: &Segment, next: &Segment) -> bool {
    match (&last.role, &next.role) {
        (Role::Tool, Role::Tool) => true,
        (Role::Tool, Role::User) => !last.has_response(),
        (last, next) => last == next && !last.is_instruction(),
    }
}
