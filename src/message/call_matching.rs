//! Matches each call with its approval requests, answers and result.
//!
//! Real histories repeat ids, so a call is identified by its position. A *round* is a sequence of consecutive model
//! messages. A result or a request belongs to the last round before it with an open call of its id, and there to the first
//! such call; each call takes one. Among calls with the same id, a request prefers one with the arguments that it shows,
//! and a result prefers one without a pending request: a call with a pending request can't have ended before another of its
//! id. An answer belongs to the only open call with a request of its id; if there are several, it is ambiguous and belongs
//! to none.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::approval_parts::{RequestPart, ResponsePart};
use super::history::{Message, PartPosition, Role};
use super::part::{CallPart, PartContent, ResultPart};
use crate::json::{self, Digest, Value};

/// The position of a call, and the positions of its request, answers and result.
#[derive(Clone, Debug)]
pub(super) struct MatchedCall {
    pub(super) position: PartPosition,
    pub(super) round: usize,
    pub(super) repeat: usize,
    pub(super) request: Option<PartPosition>,
    pub(super) responses: Vec<PartPosition>,
    pub(super) result: Option<PartPosition>,
}

/// Matches all calls of the messages, in time linear in their length.
pub(super) fn match_calls(messages: &[Message]) -> Vec<MatchedCall> {
    match_with_generated_ids(messages, &BTreeSet::new())
}

/// The same, for messages in which Callgate generated the ids of the calls at `named_by_us`: a result with an unknown id
/// may belong to one of these.
pub(super) fn match_with_generated_ids(
    messages: &[Message],
    named_by_us: &BTreeSet<PartPosition>,
) -> Vec<MatchedCall> {
    let mut matcher = CallMatcher { repeated: repeated_ids(messages), ..CallMatcher::default() };
    let mut models_turn = false;
    for (message_index, message) in messages.iter().enumerate() {
        let is_model_message = message.role == Role::Assistant;
        if is_model_message && !models_turn && message_index > 0 {
            matcher.round += 1;
        }
        models_turn = is_model_message;
        for (part_index, part) in message.parts.iter().enumerate() {
            let position = PartPosition { message: message_index, part: part_index };
            match part.content() {
                PartContent::Call(call) => matcher.add_call(position, call, named_by_us.contains(&position)),
                PartContent::Result(result) => matcher.add_result(position, result),
                PartContent::Request(request) => matcher.add_request(position, request),
                PartContent::Response(response) => matcher.add_response(position, response),
                PartContent::Text(_) | PartContent::State(_) | PartContent::Other => {}
            }
        }
    }
    matcher.matched
}

/// The ids of several calls. Only for these, arguments need to be compared.
fn repeated_ids(messages: &[Message]) -> HashSet<&str> {
    let mut seen = HashSet::new();
    let ids = messages.iter().flat_map(Message::parts).filter_map(|part| match part.content() {
        PartContent::Call(call) => Some(call.id.as_str()),
        _ => None,
    });
    ids.filter(|id| !seen.insert(*id)).collect()
}

/// The keys of the index of open calls.
#[derive(PartialEq, Eq, Hash)]
enum OpenCallKey<'a> {
    Id(&'a str),
    /// Calls by tool, for results without a call id.
    Name(&'a str),
    /// Calls with a generated id by tool, for results with an unknown id.
    GeneratedId(&'a str),
    /// Any call, for results with neither id nor name.
    Any,
    /// Calls by a repeated id, without those that have a pending request.
    Ready(&'a str),
    /// Calls by id that have no request yet.
    NotRequested(&'a str),
    /// The same by id and arguments, for repeated ids.
    NotRequestedInput(&'a str, Digest),
}

#[derive(Default)]
struct CallMatcher<'a> {
    round: usize,
    matched: Vec<MatchedCall>,
    calls: Vec<&'a CallPart>,
    /// The id of each call's latest request.
    approvals: Vec<Option<&'a str>>,
    /// Calls by key, grouped by round; rounds and calls are in order.
    open: HashMap<OpenCallKey<'a>, Vec<(usize, VecDeque<usize>)>>,
    /// Calls by the ids of their requests.
    requested: HashMap<&'a str, Vec<usize>>,
    repeated: HashSet<&'a str>,
    /// How many calls had each id so far.
    repeats: HashMap<&'a str, usize>,
}

impl<'a> CallMatcher<'a> {
    fn add_call(&mut self, position: PartPosition, call: &'a CallPart, named_by_us: bool) {
        let index = self.matched.len();
        let repeats = self.repeats.entry(&call.id).or_default();
        let repeat = *repeats;
        *repeats += 1;
        self.matched.push(MatchedCall {
            position,
            round: self.round,
            repeat,
            request: None,
            responses: Vec::new(),
            result: None,
        });
        self.calls.push(call);
        self.approvals.push(None);
        let by_us = named_by_us.then_some(OpenCallKey::GeneratedId(&call.name));
        let repeated = self.repeated.contains(call.id.as_str());
        let by_input = repeated.then(|| OpenCallKey::NotRequestedInput(&call.id, json::digest(&call.input)));
        let ready = repeated.then_some(OpenCallKey::Ready(&call.id));
        for key in [
            OpenCallKey::Id(&call.id),
            OpenCallKey::NotRequested(&call.id),
            OpenCallKey::Name(&call.name),
            OpenCallKey::Any,
        ]
        .into_iter()
        .chain(by_us)
        .chain(by_input)
        .chain(ready)
        {
            let rounds = self.open.entry(key).or_default();
            match rounds.last_mut() {
                Some((round, indices)) if *round == self.round => indices.push_back(index),
                _ => rounds.push((self.round, VecDeque::from([index]))),
            }
        }
    }

    fn add_result(&mut self, position: PartPosition, result: &'a ResultPart) {
        let index = match (result.call_id.as_str(), result.name.as_str()) {
            ("", "") => self.first_open(&OpenCallKey::Any),
            ("", name) => self.first_open(&OpenCallKey::Name(name)),
            (id, name) => self.first_ready(id).or_else(|| self.first_open(&OpenCallKey::GeneratedId(name))),
        };
        if let Some(matched) = index.and_then(|index| self.matched.get_mut(index)) {
            matched.result = Some(position);
        }
    }

    fn add_request(&mut self, position: PartPosition, request: &'a RequestPart) {
        let id = request.tool_call_id.as_str();
        let approval = request.approval_id.as_str();
        // A first or a repeated request.
        let found = self
            .first_without_request(id, request.input.as_ref())
            .or_else(|| self.only_requested(approval))
            .or_else(|| self.first_open(&OpenCallKey::Id(id)));
        let Some(index) = found else { return };
        let (Some(call), Some(matched)) = (self.calls.get(index), self.matched.get_mut(index)) else {
            return;
        };
        if call.id != id || request.tool_name.as_ref().is_some_and(|name| *name != call.name) {
            return;
        }
        matched.request = Some(position);
        matched.responses.clear();
        let last = self.approvals.get_mut(index).and_then(|last| last.replace(approval));
        if last != Some(approval) {
            self.requested.entry(approval).or_default().push(index);
        }
    }

    fn add_response(&mut self, position: PartPosition, response: &'a ResponsePart) {
        let Some(index) = self.only_requested(&response.approval_id) else { return };
        let (Some(matched), Some(call)) = (self.matched.get_mut(index), self.calls.get(index)) else {
            return;
        };
        matched.responses.push(position);
        // It was removed from this index while its request was pending.
        if let Some(rounds) = self.open.get_mut(&OpenCallKey::Ready(call.id.as_str())) {
            let at = rounds.partition_point(|(round, _)| *round < matched.round);
            match rounds.get_mut(at).filter(|(round, _)| *round == matched.round) {
                Some((_, indices)) => {
                    let at = indices.partition_point(|other| *other < index);
                    indices.insert(at, index);
                }
                None => rounds.insert(at, (matched.round, VecDeque::from([index]))),
            }
        }
    }

    /// The first open call of this id, preferably one without a pending request: from its round, or from an earlier round
    /// if its own request is pending.
    fn first_ready(&mut self, id: &'a str) -> Option<usize> {
        let first = self.first_open(&OpenCallKey::Id(id))?;
        if !self.repeated.contains(id) {
            return Some(first);
        }
        let Some(ready) = self.first_open(&OpenCallKey::Ready(id)) else { return Some(first) };
        let round = |index: usize| self.matched.get(index).map(|call| call.round);
        let is_pending = |call: &MatchedCall| call.request.is_some() && call.responses.is_empty();
        let is_first_pending = self.matched.get(first).is_some_and(is_pending);
        Some(if is_first_pending || round(ready) == round(first) { ready } else { first })
    }

    /// The first call of this id without a request, preferably one of its round with these arguments.
    fn first_without_request(&mut self, id: &'a str, input: Option<&Value>) -> Option<usize> {
        let first = self.first_open(&OpenCallKey::NotRequested(id))?;
        let Some(input) = input.filter(|_| self.repeated.contains(id)) else { return Some(first) };
        let Some(same) = self.first_open(&OpenCallKey::NotRequestedInput(id, json::digest(input))) else {
            return Some(first);
        };
        let round = |index: usize| self.matched.get(index).map(|call| call.round);
        Some(if round(same) == round(first) { same } else { first })
    }

    /// The first open call of the last round that has one. Closed calls never reopen, so they are removed from the index
    /// and inspected once.
    fn first_open(&mut self, key: &OpenCallKey<'a>) -> Option<usize> {
        let rounds = self.open.get_mut(key)?;
        while let Some((_, indices)) = rounds.last_mut() {
            while let Some(index) = indices.front().copied() {
                let call = self.matched.get(index)?;
                let has_request =
                    matches!(key, OpenCallKey::NotRequested(_) | OpenCallKey::NotRequestedInput(..))
                        && call.request.is_some();
                let is_pending = matches!(key, OpenCallKey::Ready(_))
                    && call.request.is_some()
                    && call.responses.is_empty();
                if call.result.is_none() && !has_request && !is_pending {
                    return Some(index);
                }
                indices.pop_front();
            }
            rounds.pop();
        }
        None
    }

    /// The only open call whose latest request has this id. Returns `None` if there are several.
    fn only_requested(&mut self, approval: &str) -> Option<usize> {
        let indices = self.requested.get_mut(approval)?;
        let mut open = Vec::new();
        while let Some(index) = indices.pop() {
            let has_no_result = self.matched.get(index).is_some_and(|call| call.result.is_none());
            if has_no_result && self.approvals.get(index).copied().flatten() == Some(approval) {
                open.push(index);
            }
            if open.len() == 2 {
                break;
            }
        }
        indices.extend(open.iter().rev());
        match open.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }
}
