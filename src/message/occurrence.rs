//! Which request, answer and result belong to which call.
//!
//! Ids repeat in real histories, so a call is known by where it stands. A *round* is a row of messages of the model. A
//! result, or a request, belongs to the last round before it that has a call with its id still open, and there to the first
//! such call; each call takes one. An answer belongs to the one open call that was asked about under its id; where several
//! were, it is ambiguous and belongs to none.

use std::collections::{HashMap, VecDeque};

use super::approval::{RequestPart, ResponsePart};
use super::history::{History, Message, Role};
use super::part::{CallPart, Content, Part, ResultPart};
use crate::json::{self, Digest};

/// Where in a history a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The message's index.
    pub message: usize,
    /// The part's index in the message.
    pub part: usize,
}

/// One call of a history with what belongs to it.
#[derive(Clone, Debug)]
pub struct Occurrence<'a> {
    /// Where the call stands.
    pub place: Place,
    /// Which row of the model's messages it stands in, from 0.
    pub round: usize,
    /// How many calls with the same id stand before it.
    pub repeat: usize,
    /// The call.
    pub call: &'a CallPart,
    /// The digest of its arguments.
    pub digest: Digest,
    /// The last question put to a person about it.
    pub request: Option<&'a RequestPart>,
    /// The answers to that question, in order, given before there was a result.
    pub responses: Vec<&'a ResponsePart>,
    /// Its result.
    pub result: Option<&'a ResultPart>,
}

/// A call's place, and the places of what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Matched {
    pub(super) place: Place,
    pub(super) round: usize,
    pub(super) repeat: usize,
    pub(super) request: Option<Place>,
    pub(super) responses: Vec<Place>,
    pub(super) result: Option<Place>,
}

impl History {
    /// Every call of the history, in order, with the request, the answers and the result that belong to it.
    ///
    /// ```
    /// use callgate::message::{Content, Message, History, Output, Part, ResultPart, Role, Settled};
    /// use serde_json::json;
    ///
    /// let call = |n: u64| Message::new(Role::Assistant, vec![Part::call("c1", "look", json!({"n": n}))]);
    /// let result = Part::result(ResultPart {
    ///     call_id: "c1".into(), name: "look".into(), output: Output::Text("seen".into()), settled: Settled::Output,
    /// });
    /// let history = History::new(vec![call(1), Message::new(Role::Tool, vec![result]), call(2)]);
    /// let calls = history.occurrences();
    /// assert!(calls[0].result.is_some() && calls[1].result.is_none());
    /// assert_ne!(calls[0].digest, calls[1].digest);
    /// ```
    pub fn occurrences(&self) -> Vec<Occurrence<'_>> {
        match_up(&self.messages).into_iter().filter_map(|matched| self.occurrence(matched)).collect()
    }

    /// The calls that have no result, in order.
    pub fn calls_without_result(&self) -> Vec<Occurrence<'_>> {
        self.occurrences().into_iter().filter(|occurrence| occurrence.result.is_none()).collect()
    }

    fn occurrence(&self, matched: Matched) -> Option<Occurrence<'_>> {
        let content = |place: Place| self.part(place).map(Part::content);
        let Some(Content::Call(call)) = content(matched.place) else { return None };
        Some(Occurrence {
            place: matched.place,
            round: matched.round,
            repeat: matched.repeat,
            call,
            digest: json::digest(&call.input),
            request: matched.request.and_then(content).and_then(|content| match content {
                Content::Request(request) => Some(request),
                _ => None,
            }),
            responses: matched
                .responses
                .into_iter()
                .filter_map(|place| match content(place) {
                    Some(Content::Response(response)) => Some(response),
                    _ => None,
                })
                .collect(),
            result: matched.result.and_then(content).and_then(|content| match content {
                Content::Result(result) => Some(result),
                _ => None,
            }),
        })
    }

    pub(super) fn part(&self, place: Place) -> Option<&Part> {
        self.messages.get(place.message)?.parts.get(place.part)
    }
}

/// What open calls are looked up by.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Id(&'a str),
    /// Calls by their tool, for results that name no call.
    Name(&'a str),
    /// Calls without an id by their tool, for results whose id no call has.
    NamelessId(&'a str),
    /// Any call, for results that name neither.
    Any,
    /// Calls by id that no one was asked about yet.
    Unasked(&'a str),
}

/// Calls by key; of each key the rounds in order, of each round the calls in order.
type Open<'a> = HashMap<Key<'a>, Vec<(usize, VecDeque<usize>)>>;

/// Every call of the messages with the places of what belongs to it, in time linear in their length.
pub(super) fn match_up(messages: &[Message]) -> Vec<Matched> {
    let mut calls: Vec<Matched> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    // The id under which each call was last asked about.
    let mut approvals: Vec<Option<&str>> = Vec::new();
    let mut open: Open = HashMap::new();
    let mut asked: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut round: usize = 0;
    let mut models_turn = false;
    for (message_index, message) in messages.iter().enumerate() {
        let model_speaks = message.role == Role::Assistant;
        if model_speaks && !models_turn {
            round += 1;
        }
        models_turn = model_speaks;
        for (part_index, part) in message.parts.iter().enumerate() {
            let place = Place { message: message_index, part: part_index };
            match part.content() {
                Content::Call(call) => {
                    let repeat = seen.entry(&call.id).or_default();
                    calls.push(Matched {
                        place,
                        round: round.saturating_sub(1),
                        repeat: *repeat,
                        request: None,
                        responses: Vec::new(),
                        result: None,
                    });
                    *repeat += 1;
                    names.push(&call.name);
                    approvals.push(None);
                    let mut keys = vec![Key::Name(&call.name), Key::Any];
                    if call.id.is_empty() {
                        keys.push(Key::NamelessId(&call.name));
                    } else {
                        keys.push(Key::Id(&call.id));
                    }
                    keys.push(Key::Unasked(&call.id));
                    for key in keys {
                        let rounds = open.entry(key).or_default();
                        match rounds.last_mut() {
                            Some((last, indices)) if *last == round => indices.push_back(calls.len() - 1),
                            _ => rounds.push((round, VecDeque::from([calls.len() - 1]))),
                        }
                    }
                }
                Content::Result(result) => {
                    let keys = match (result.call_id.as_str(), result.name.as_str()) {
                        ("", "") => [Some(Key::Any), None],
                        ("", name) => [Some(Key::Name(name)), None],
                        (id, name) => [Some(Key::Id(id)), Some(Key::NamelessId(name))],
                    };
                    let free = |index: usize| unsettled(&calls, index);
                    let found = keys.into_iter().flatten().find_map(|key| take(&mut open, &key, &free));
                    if let Some(call) = found.and_then(|index| calls.get_mut(index)) {
                        call.result = Some(place);
                    }
                }
                Content::Request(request) => {
                    let free = |index: usize| {
                        calls.get(index).is_some_and(|call| call.result.is_none() && call.request.is_none())
                    };
                    let id = request.tool_call_id.as_str();
                    let approval = request.approval_id.as_str();
                    // Asked for the first time, or again.
                    let found = take(&mut open, &Key::Unasked(id), &free)
                        .or_else(|| only_open(&mut asked, approval, &calls, &approvals))
                        .or_else(|| first(&mut open, &Key::Id(id), &|index| unsettled(&calls, index)));
                    let Some(index) = found else { continue };
                    let names_it =
                        request.tool_name.as_deref().is_none_or(|name| names.get(index) == Some(&name));
                    let (Some(call), Some(current)) = (calls.get_mut(index), approvals.get_mut(index)) else {
                        continue;
                    };
                    if !names_it || id_at(messages, call.place) != Some(id) {
                        continue;
                    }
                    if current.replace(approval) != Some(approval) {
                        asked.entry(approval).or_default().push(index);
                    }
                    call.request = Some(place);
                    call.responses.clear();
                }
                Content::Response(response) => {
                    let only = only_open(&mut asked, &response.approval_id, &calls, &approvals);
                    if let Some(call) = only.and_then(|index| calls.get_mut(index)) {
                        call.responses.push(place);
                    }
                }
                Content::Text(_) | Content::Other => {}
            }
        }
    }
    calls
}

fn id_at(messages: &[Message], place: Place) -> Option<&str> {
    match messages.get(place.message)?.parts.get(place.part)?.content() {
        Content::Call(call) => Some(&call.id),
        _ => None,
    }
}

fn unsettled(calls: &[Matched], index: usize) -> bool {
    calls.get(index).is_some_and(|call| call.result.is_none())
}

/// The one open call that was last asked about under this id; none where there are several.
fn only_open<'a>(
    asked: &mut HashMap<&'a str, Vec<usize>>,
    approval: &str,
    calls: &[Matched],
    approvals: &[Option<&'a str>],
) -> Option<usize> {
    let asked = asked.get_mut(approval)?;
    let mut open = Vec::new();
    // What is closed stays so: it is looked at once.
    while let Some(index) = asked.pop() {
        if unsettled(calls, index) && approvals.get(index).copied().flatten() == Some(approval) {
            open.push(index);
        }
        if open.len() == 2 {
            break;
        }
    }
    asked.extend(open.iter().rev());
    match open.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// Takes the first free call of the last round that has one.
fn take<'a>(open: &mut Open<'a>, key: &Key<'a>, free: &dyn Fn(usize) -> bool) -> Option<usize> {
    let found = first(open, key, free)?;
    let (_, indices) = open.get_mut(key)?.last_mut()?;
    indices.pop_front();
    Some(found)
}

/// The first free call of the last round that has one.
fn first<'a>(open: &mut Open<'a>, key: &Key<'a>, free: &dyn Fn(usize) -> bool) -> Option<usize> {
    let rounds = open.get_mut(key)?;
    while let Some((_, indices)) = rounds.last_mut() {
        while let Some(index) = indices.front().copied() {
            if free(index) {
                return Some(index);
            }
            indices.pop_front();
        }
        rounds.pop();
    }
    None
}
