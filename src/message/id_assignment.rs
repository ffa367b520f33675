//! Adds missing ids and names: ids of calls (Gemini, OpenAI's older function calls), and the call id and tool name of
//! results.

use std::collections::BTreeSet;

use super::call_matching::match_with_generated_ids;
use super::history::{Message, PartPosition};
use super::part::{CallPart, Part, PartContent, ResultPart};

/// Gives every call without an id one from its position, and every result the id and tool name of its call. A part's source
/// JSON is not changed, so nothing is added when it is written in its own dialect.
pub(super) fn assign_missing_ids(messages: &mut [Message]) {
    let mut named = BTreeSet::new();
    for (message_index, message) in messages.iter_mut().enumerate() {
        for (part_index, part) in message.parts.iter_mut().enumerate() {
            if let PartContent::Call(CallPart { id, .. }) = part.content_mut()
                && id.is_empty()
            {
                *id = format!("call_{message_index}_{part_index}");
                named.insert(PartPosition { message: message_index, part: part_index });
            }
        }
    }
    for matched in match_with_generated_ids(messages, &named) {
        let call = messages
            .get(matched.position.message)
            .and_then(|message| message.parts.get(matched.position.part));
        let Some(PartContent::Call(CallPart { id, name, .. })) = call.map(Part::content) else { continue };
        let (id, name) = (id.clone(), name.clone());
        let Some(result) = matched.result.and_then(|position| result_at(messages, position)) else {
            continue;
        };
        result.call_id = id;
        if result.name.is_empty() {
            result.name = name;
        }
    }
}

fn result_at(messages: &mut [Message], position: PartPosition) -> Option<&mut ResultPart> {
    match messages.get_mut(position.message)?.parts.get_mut(position.part)?.content_mut() {
        PartContent::Result(result) => Some(result),
        _ => None,
    }
}
