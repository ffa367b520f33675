//! Names what a dialect leaves unnamed: ids of calls (Gemini's, and OpenAI's older function calls), and the call and the
//! tool that a result belongs to.

use super::history::Message;
use super::occurrence::{Place, match_up};
use super::part::{CallPart, Content, Part, ResultPart};

/// Gives every call without an id one by its place, and every result what its call is named. A result's part keeps the JSON
/// it was read from, so that in its own dialect nothing is added.
pub(super) fn settle(messages: &mut [Message]) {
    for matched in match_up(messages) {
        let Some(call) = call_at(messages, matched.place) else { continue };
        if call.id.is_empty() {
            call.id = format!("call_{}_{}", matched.place.message, matched.place.part);
        }
        let (id, name) = (call.id.clone(), call.name.clone());
        let Some(result) = matched.result.and_then(|place| result_at(messages, place)) else { continue };
        result.call_id = id;
        if result.name.is_empty() {
            result.name = name;
        }
    }
}

fn content_at(messages: &mut [Message], place: Place) -> Option<&mut Content> {
    messages.get_mut(place.message)?.parts.get_mut(place.part).map(Part::content_to_name)
}

fn call_at(messages: &mut [Message], place: Place) -> Option<&mut CallPart> {
    match content_at(messages, place)? {
        Content::Call(call) => Some(call),
        _ => None,
    }
}

fn result_at(messages: &mut [Message], place: Place) -> Option<&mut ResultPart> {
    match content_at(messages, place)? {
        Content::Result(result) => Some(result),
        _ => None,
    }
}
