//! Calls of a history, each with its approval request, answers and result.

use super::approval_parts::{RequestPart, ResponsePart};
use super::call_matching::{MatchedCall, match_calls};
use super::history::{History, PartPosition};
use super::part::{CallPart, Part, PartContent, ResultPart};
use crate::json::{self, Digest};

/// A call at one position in a history, with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct CallOccurrence<'a> {
    /// The position of the call.
    pub position: PartPosition,
    /// The index of its round, a sequence of consecutive model messages, from 0.
    pub round: usize,
    /// The number of earlier calls with the same id.
    pub repeat: usize,
    /// The call.
    pub call: &'a CallPart,
    /// The digest of its arguments.
    pub digest: Digest,
    /// Its latest approval request.
    pub request: Option<&'a RequestPart>,
    /// The answers to that request that precede the result, in order.
    pub responses: Vec<&'a ResponsePart>,
    /// Its result.
    pub result: Option<&'a ResultPart>,
}

impl History {
    /// Every call of the history, in order, with its request, answers and result.
    ///
    /// ```
    /// use callgate::message::{Message, History, Part, ResultOutput, ResultPart, ResultStatus, Role};
    /// use callgate::json::json;
    ///
    /// let call = |n: u64| Message::new(Role::Assistant, vec![Part::call("c1", "look", json!({"n": n}))]);
    /// let result = Part::result(ResultPart {
    ///     call_id: "c1".into(), name: "look".into(), output: ResultOutput::Text("seen".into()), status: ResultStatus::Output,
    /// });
    /// let history = History::new(vec![call(1), Message::new(Role::Tool, vec![result]), call(2)]);
    /// let calls = history.occurrences();
    /// assert!(calls[0].result.is_some() && calls[1].result.is_none());
    /// assert_ne!(calls[0].digest, calls[1].digest);
    /// ```
    pub fn occurrences(&self) -> Vec<CallOccurrence<'_>> {
        match_calls(&self.messages).into_iter().filter_map(|matched| self.occurrence(matched)).collect()
    }

    /// The calls without a result, in order.
    pub fn calls_without_result(&self) -> Vec<CallOccurrence<'_>> {
        self.occurrences().into_iter().filter(|occurrence| occurrence.result.is_none()).collect()
    }

    fn occurrence(&self, matched: MatchedCall) -> Option<CallOccurrence<'_>> {
        let content = |position: PartPosition| self.part(position).map(Part::content);
        let Some(PartContent::Call(call)) = content(matched.position) else { return None };
        Some(CallOccurrence {
            position: matched.position,
            round: matched.round,
            repeat: matched.repeat,
            call,
            digest: json::digest(&call.input),
            request: matched.request.and_then(content).and_then(|content| match content {
                PartContent::Request(request) => Some(request),
                _ => None,
            }),
            responses: matched
                .responses
                .into_iter()
                .filter_map(|position| match content(position) {
                    Some(PartContent::Response(response)) => Some(response),
                    _ => None,
                })
                .collect(),
            result: matched.result.and_then(content).and_then(|content| match content {
                PartContent::Result(result) => Some(result),
                _ => None,
            }),
        })
    }
}
