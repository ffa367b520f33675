//! Histories as providers accept them: without Callgate's own parts, and with exactly one result for each call.

use super::approval_parts::ResponsePart;
use super::call_matching::{MatchedCall, match_calls};
use super::content_blocks;
use super::dialect::Dialect;
use super::gemini::has_no_id;
use super::history::{History, Message, PartPosition, Role};
use super::history_edit::denied_output;
use super::openai_responses::is_hosted;
use super::part::{CallPart, Part, PartContent, ResultOutput, ResultPart, ResultStatus};
use crate::json::Digest;

impl History {
    /// The history to send to a model. Store the original, which has more information. The differences:
    ///
    /// - Approval parts are removed, except the provider's own (hosted MCP calls of OpenAI Responses).
    /// - Parts and roles that only another dialect has are removed, as are parts of results that the dialect does not
    ///   support there (OpenAI Chat and Gemini support only text).
    /// - Each call has exactly one result, in the message after its round. The first of several results is used, and a
    ///   result without a call is removed. A denied call gets the denial as its result; a call that has not run gets an
    ///   error that says so.
    /// - OpenAI Chat: the text of a round precedes its calls. Anthropic: duplicate ids, and ids with characters that it
    ///   rejects, are replaced. Gemini: system messages come first.
    pub fn for_provider(&self, dialect: Dialect) -> History {
        let mut sent = History { messages: self.settle_rounds(dialect), root: self.root.clone() };
        match dialect {
            Dialect::Anthropic => replace_invalid_ids(&mut sent.messages),
            Dialect::Gemini => {
                // Its frame is that of a message among the contents, which is invalid in the system prompt.
                for message in sent.messages.iter_mut().filter(|message| message.role.is_instruction()) {
                    message.frame.take_if(|frame| !frame.at_root);
                }
                sent.messages.sort_by_key(|message| !message.role.is_instruction());
            }
            _ => {}
        }
        sent
    }

    fn settle_rounds(&self, dialect: Dialect) -> Vec<Message> {
        let matched = match_calls(&self.messages);
        let mut messages = Vec::new();
        let mut index = 0;
        while let Some(message) = self.messages.get(index) {
            if message.role != Role::Assistant {
                messages.extend(accepted_message(dialect, message, false));
                index += 1;
                continue;
            }
            let round: Vec<&Message> = self
                .messages
                .iter()
                .skip(index)
                .take_while(|message| message.role == Role::Assistant)
                .collect();
            let after = index + round.len();
            let first = matched.partition_point(|call| call.position.message < index);
            let calls: Vec<&MatchedCall> =
                matched.iter().skip(first).take_while(|call| call.position.message < after).collect();
            messages.extend(model_messages(dialect, &round));
            index = after;
            if calls.is_empty() {
                continue;
            }
            match self.messages.get(after).filter(|next| next.frame_in(dialect).is_some()) {
                Some(next) if self.has_exactly_results(after, next, &calls) => {
                    messages.extend(accepted_message(dialect, next, true));
                    index += 1;
                }
                _ => {
                    let results =
                        calls.iter().filter_map(|call| self.result_or_placeholder(dialect, call)).collect();
                    messages.push(Message::new(Role::Tool, results));
                }
            }
        }
        messages
    }

    /// Whether the results in this message are exactly those of the calls, in order.
    fn has_exactly_results(&self, index: usize, message: &Message, calls: &[&MatchedCall]) -> bool {
        let results = message
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| matches!(part.content(), PartContent::Result(_)));
        let held: Vec<usize> = results.map(|(part, _)| part).collect();
        held.len() == calls.len()
            && held.iter().zip(calls).all(|(part, call)| {
                call.result.is_some_and(|position| position.message == index && position.part == *part)
            })
    }

    /// The result of a call, or a placeholder for it.
    fn result_or_placeholder(&self, dialect: Dialect, matched: &MatchedCall) -> Option<Part> {
        let called = self.part(matched.position)?;
        let result = match matched.result.and_then(|position| self.part(position)) {
            Some(result) => accepted_part(dialect, result, true)?,
            None => self.placeholder_result(called, matched)?,
        };
        // A call without an id is answered by position, not by the id that was generated for it.
        match result.content() {
            PartContent::Result(result_part)
                if dialect == Dialect::Gemini && has_no_id(called) && result.source_in(dialect).is_none() =>
            {
                Some(Part::result(ResultPart { call_id: String::new(), ..result_part.clone() }))
            }
            _ => Some(result),
        }
    }

    /// The placeholder result of a call that has none.
    fn placeholder_result(&self, called: &Part, matched: &MatchedCall) -> Option<Part> {
        let PartContent::Call(call) = called.content() else { return None };
        let answers: Vec<&ResponsePart> = matched
            .responses
            .iter()
            .filter_map(|position| match self.part(*position)?.content() {
                PartContent::Response(response) => Some(response),
                _ => None,
            })
            .collect();
        let denial = answers.iter().find(|answer| !answer.approved);
        let (output, status) = match (denial, answers.first(), matched.request) {
            (Some(denial), _, _) => (denied_output(denial.reason.as_deref()), ResultStatus::Denied),
            (None, Some(_), _) => {
                (text_output("Not run yet: this call was approved, but has no result."), ResultStatus::Error)
            }
            (None, None, Some(_)) => {
                (text_output("Not run yet: this call is pending approval."), ResultStatus::Error)
            }
            (None, None, None) => (text_output("Not run: this call has no result."), ResultStatus::Error),
        };
        Some(Part::result(ResultPart { call_id: call.id.clone(), name: call.name.clone(), output, status }))
    }
}

fn text_output(text: &str) -> ResultOutput {
    ResultOutput::Text(text.to_owned())
}

/// The model's messages of a round: one message if the provider requires the results right after the calls.
fn model_messages(dialect: Dialect, round: &[&Message]) -> Vec<Message> {
    let mut messages: Vec<Message> =
        round.iter().filter_map(|message| accepted_message(dialect, message, false)).collect();
    let calls = messages.iter().any(Message::has_calls);
    if calls && messages.len() > 1 && dialect != Dialect::OpenaiResponses {
        let parts = messages.into_iter().flat_map(|message| message.parts).collect();
        messages = vec![Message::new(Role::Assistant, parts)];
    }
    if dialect == Dialect::OpenaiChat {
        for message in messages.iter_mut().filter(|message| message.frame_in(dialect).is_none()) {
            message.parts.sort_by_key(|part| matches!(part.content(), PartContent::Call(_)));
        }
    }
    messages
}

/// The parts of a message that the provider accepts. Returns `None` if there are none.
fn accepted_message(dialect: Dialect, message: &Message, with_results: bool) -> Option<Message> {
    let own = message.frame_in(dialect);
    if own.is_none() && matches!(&message.role, Role::Other(name) if !name.is_empty()) {
        return None;
    }
    // Without its results it would be the result of no call.
    if own.is_some() && dialect == Dialect::OpenaiChat && message.role == Role::Tool {
        return None;
    }
    let parts: Vec<Part> =
        message.parts.iter().filter_map(|part| accepted_part(dialect, part, with_results)).collect();
    let is_empty_message = own.is_some() && message.parts.is_empty();
    let frame = own.cloned();
    (is_empty_message || !parts.is_empty()).then(|| Message { role: message.role.clone(), parts, frame })
}

fn accepted_part(dialect: Dialect, part: &Part, with_results: bool) -> Option<Part> {
    match part.content() {
        PartContent::Text(_) | PartContent::Call(_) => Some(part.clone()),
        PartContent::Request(_) | PartContent::Response(_) | PartContent::State(_) => {
            (dialect == Dialect::OpenaiResponses && is_hosted(part)).then(|| part.clone())
        }
        PartContent::Other => part
            .source_in(dialect)
            .filter(|own| !content_blocks::has_own_type(&own.json))
            .map(|_| part.clone()),
        PartContent::Result(_) if !with_results => None,
        PartContent::Result(result) => {
            let ResultOutput::Parts(parts) = &result.output else { return Some(part.clone()) };
            let texts_only = match dialect {
                Dialect::OpenaiChat => part.source_in(dialect).is_none(),
                Dialect::Gemini => true,
                Dialect::AiSdk => result.status != ResultStatus::Output,
                Dialect::OpenaiResponses | Dialect::Anthropic => false,
            };
            let accepted =
                |part: &&Part| part.as_text().is_some() || !(texts_only || part.is_foreign_to(dialect));
            if parts.iter().all(|part| accepted(&part)) {
                return Some(part.clone());
            }
            let output = ResultOutput::Parts(parts.iter().filter(accepted).cloned().collect());
            Some(Part::result(ResultPart { output, ..result.clone() }))
        }
    }
}

/// Replaces ids that Anthropic rejects: an id must be unique, with only letters, digits, `_` and `-`.
fn replace_invalid_ids(messages: &mut [Message]) {
    for matched in match_calls(messages) {
        let part = |messages: &[Message], position: PartPosition| {
            messages.get(position.message)?.parts.get(position.part).cloned()
        };
        let Some(call) = part(messages, matched.position) else { continue };
        let PartContent::Call(call) = call.content() else { continue };
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if matched.repeat == 0 && !call.id.is_empty() && call.id.chars().all(allowed) {
            continue;
        }
        let id = format!("call_{}_{}", Digest::compute(call.id.as_bytes()).short_hex(), matched.repeat);
        let renamed = PartContent::Call(CallPart { id: id.clone(), ..call.clone() });
        replace_content(messages, matched.position, renamed);
        let Some(position) = matched.result else { continue };
        let Some(result) = part(messages, position) else { continue };
        let PartContent::Result(result) = result.content() else { continue };
        replace_content(
            messages,
            position,
            PartContent::Result(ResultPart { call_id: id, ..result.clone() }),
        );
    }
}

fn replace_content(messages: &mut [Message], position: PartPosition, content: PartContent) {
    if let Some(part) =
        messages.get_mut(position.message).and_then(|message| message.parts.get_mut(position.part))
    {
        *part = content.into();
    }
}
