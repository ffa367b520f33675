//! The timeline of a conversation: messages, and each call with its approval request, responses and result as one entry.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::json::Value;
use crate::message::{
    CallOccurrence, CallPart, Dialect, History, Message, Part, PartContent, PartPosition, RequestPart,
    ResponsePart, ResultPart, ResultStatus, Role,
};

/// One entry of a timeline.
#[derive(Clone, Debug)]
pub struct TimelineEntry<'a> {
    /// Its subject.
    pub subject: TimelineSubject<'a>,
    /// The parts of the history that it covers, in order. Each part of a history is in exactly one entry.
    pub positions: Vec<PartPosition>,
}

/// The subject of an entry.
#[derive(Clone, Debug)]
pub enum TimelineSubject<'a> {
    /// Message content: neighboring parts of one message that belong to no call.
    Message {
        /// The author.
        role: &'a Role,
        /// The content.
        parts: Vec<&'a Part>,
    },
    /// A call, with its result if it has one.
    Call {
        /// The call.
        call: &'a CallPart,
        /// Its result.
        result: Option<&'a ResultPart>,
        /// Its status.
        status: TimelineStatus,
    },
    /// An approval request, with its call, the responses and the result.
    Approval {
        /// The call; `None` for a call that the provider runs itself.
        call: Option<&'a CallPart>,
        /// The request.
        request: &'a RequestPart,
        /// The responses, in order; the first one counts.
        responses: Vec<&'a ResponsePart>,
        /// The call's result.
        result: Option<&'a ResultPart>,
        /// Its status.
        status: TimelineStatus,
    },
    /// A request that belongs to no call, or is a later repetition.
    Request(&'a RequestPart),
    /// A response that belongs to no request, or came too late.
    Response(&'a ResponsePart),
    /// A result that belongs to no call.
    Result(&'a ResultPart),
}

/// The status of a call, as far as the history shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimelineStatus {
    /// The request waits for a response.
    Pending,
    /// Approved and without a result yet, or answered by an approver in place of the tool.
    Answered,
    /// The tool, or a substitute, returned a result.
    Executed,
    /// A person or a policy denied it.
    Denied,
    /// The call failed.
    Failed,
    /// The history does not show it: a call without request and result, or a result without response to the request.
    Unknown,
}

/// OpenAI's approval request for a call that it runs itself.
const HOSTED_REQUEST: &str = "mcp_approval_request";

/// Returns the entries of a history, ordered by the first part of their subject.
///
/// ```
/// use callgate::card::{TimelineStatus, TimelineSubject, timeline};
/// use callgate::message::{Dialect, History};
/// use callgate::json::json;
///
/// let history = History::read(Dialect::AiSdk, &json!([
///     {"role": "user", "content": "refund order 7"},
///     {"role": "assistant", "content": [
///         {"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": {"order": 7}},
///         {"type": "tool-approval-request", "approvalId": "approval_c1", "toolCallId": "c1"}]},
///     {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "approval_c1", "approved": true}]}
/// ]))?;
/// let entries = timeline(&history);
/// assert_eq!(entries.len(), 2);
/// assert!(matches!(entries[1].subject, TimelineSubject::Approval { status: TimelineStatus::Answered, .. }));
/// # Ok::<(), callgate::message::DialectError>(())
/// ```
pub fn timeline(history: &History) -> Vec<TimelineEntry<'_>> {
    let mut remaining = part_positions(history);
    let mut entries: BTreeMap<PartPosition, TimelineEntry<'_>> = BTreeMap::new();
    for occurrence in history.occurrences() {
        let mut positions = vec![occurrence.position];
        let belonging = occurrence.request.map(identity).into_iter();
        let belonging = belonging.chain(occurrence.responses.iter().map(|response| identity(*response)));
        let belonging: Vec<PartAddress> = belonging.chain(occurrence.result.map(identity)).collect();
        remaining.remove(&identity(occurrence.call));
        positions.extend(belonging.iter().filter_map(|part| remaining.remove(part)));
        add(&mut entries, TimelineEntry { subject: subject(&occurrence), positions });
    }
    add_hosted_requests(history, &mut remaining, &mut entries);
    add_unrelated_parts(history, &remaining, &mut entries);
    entries.into_values().collect()
}

/// The address of a part, which distinguishes equal parts.
type PartAddress = *const ();

fn identity<T>(content: &T) -> PartAddress {
    std::ptr::from_ref(content).cast()
}

fn identity_of(content: &PartContent) -> Option<PartAddress> {
    match content {
        PartContent::Call(call) => Some(identity(call)),
        PartContent::Result(result) => Some(identity(result)),
        PartContent::Request(request) => Some(identity(request)),
        PartContent::Response(response) => Some(identity(response)),
        PartContent::Text(_) | PartContent::State(_) | PartContent::Other => None,
    }
}

/// The positions of all calls, results, requests and responses.
fn part_positions(history: &History) -> HashMap<PartAddress, PartPosition> {
    let parts = each_part(history);
    parts.filter_map(|(position, _, part)| Some((identity_of(part.content())?, position))).collect()
}

fn each_part(history: &History) -> impl Iterator<Item = (PartPosition, &Message, &Part)> {
    history.messages().iter().enumerate().flat_map(|(message, of)| {
        of.parts()
            .iter()
            .enumerate()
            .map(move |(part, content)| (PartPosition { message, part }, of, content))
    })
}

fn add<'a>(entries: &mut BTreeMap<PartPosition, TimelineEntry<'a>>, mut entry: TimelineEntry<'a>) {
    // Ordered by the position of the call, or of the first part if there is no call.
    if let Some(first) = entry.positions.first().copied() {
        entry.positions.sort();
        entries.insert(first, entry);
    }
}

fn subject<'a>(occurrence: &CallOccurrence<'a>) -> TimelineSubject<'a> {
    let status = status(occurrence.request, &occurrence.responses, occurrence.result);
    match occurrence.request {
        Some(request) => TimelineSubject::Approval {
            call: Some(occurrence.call),
            request,
            responses: occurrence.responses.clone(),
            result: occurrence.result,
            status,
        },
        None => TimelineSubject::Call { call: occurrence.call, result: occurrence.result, status },
    }
}

fn status(
    request: Option<&RequestPart>,
    responses: &[&ResponsePart],
    result: Option<&ResultPart>,
) -> TimelineStatus {
    let refused = responses.first().map(|first| !first.approved || first.cancel);
    let has_output = responses.first().is_some_and(|first| first.output.is_some());
    match (result.map(|result| result.status), refused) {
        // Some dialects write a denial as an error, or as any other result.
        (_, Some(true)) | (Some(ResultStatus::Denied), _) => TimelineStatus::Denied,
        (Some(ResultStatus::Error), _) => TimelineStatus::Failed,
        (Some(ResultStatus::Output), Some(false)) if has_output => TimelineStatus::Answered,
        (Some(ResultStatus::Output), Some(false)) => TimelineStatus::Executed,
        (Some(ResultStatus::Output), None) if request.is_none() => TimelineStatus::Executed,
        (None, Some(false)) => TimelineStatus::Answered,
        (None, None) if request.is_some() => TimelineStatus::Pending,
        (Some(ResultStatus::Output) | None, None) => TimelineStatus::Unknown,
    }
}

/// Adds requests about calls that the provider runs itself, with their responses.
fn add_hosted_requests<'a>(
    history: &'a History,
    remaining: &mut HashMap<PartAddress, PartPosition>,
    entries: &mut BTreeMap<PartPosition, TimelineEntry<'a>>,
) {
    let mut answers: HashMap<&str, &ResponsePart> = HashMap::new();
    for (_, _, part) in each_part(history) {
        if let PartContent::Response(response) = part.content() {
            answers.entry(&response.approval_id).or_insert(response);
        }
    }
    for (position, _, part) in each_part(history).filter(|(_, _, part)| is_hosted(part)) {
        let PartContent::Request(request) = part.content() else { continue };
        if remaining.remove(&identity(request)).is_none() {
            continue;
        }
        let answer = answers.get(request.approval_id.as_str()).copied();
        let answer = answer.and_then(|answer| Some((answer, remaining.remove(&identity(answer))?)));
        let (responses, answered): (Vec<_>, Vec<_>) = answer.into_iter().unzip();
        let status = status(Some(request), &responses, None);
        let subject = TimelineSubject::Approval { call: None, request, responses, result: None, status };
        let positions = std::iter::once(position).chain(answered).collect();
        add(entries, TimelineEntry { subject, positions });
    }
}

fn is_hosted(part: &Part) -> bool {
    let kind = |json: &Value| json.get("type").is_some_and(|kind| kind == HOSTED_REQUEST);
    part.source().is_some_and(|(dialect, json)| dialect == Dialect::OpenaiResponses && kind(json))
}

/// Adds message content, and parts that belong to nothing.
fn add_unrelated_parts<'a>(
    history: &'a History,
    remaining: &HashMap<PartAddress, PartPosition>,
    entries: &mut BTreeMap<PartPosition, TimelineEntry<'a>>,
) {
    let mut message_entry: Option<TimelineEntry<'a>> = None;
    for (position, message, part) in each_part(history) {
        let alone = |subject| TimelineEntry { subject, positions: vec![position] };
        let unlinked = identity_of(part.content()).is_some_and(|part| remaining.contains_key(&part));
        let entry = match part.content() {
            PartContent::Text(_) | PartContent::State(_) | PartContent::Other => {
                let follows = message_entry
                    .as_ref()
                    .and_then(|message_entry| message_entry.positions.last())
                    .is_some_and(|last| last.message == position.message && last.part + 1 == position.part);
                if !follows && let Some(message_entry) = message_entry.take() {
                    add(entries, message_entry);
                }
                let entry = message_entry.get_or_insert_with(|| TimelineEntry {
                    subject: TimelineSubject::Message { role: message.role(), parts: Vec::new() },
                    positions: Vec::new(),
                });
                if let TimelineSubject::Message { parts, .. } = &mut entry.subject {
                    parts.push(part);
                }
                entry.positions.push(position);
                continue;
            }
            PartContent::Request(request) => alone(TimelineSubject::Request(request)),
            PartContent::Response(response) => alone(TimelineSubject::Response(response)),
            PartContent::Result(result) => alone(TimelineSubject::Result(result)),
            // Every call is an occurrence.
            PartContent::Call(_) => continue,
        };
        if unlinked {
            add(entries, entry);
        }
    }
    if let Some(message_entry) = message_entry {
        add(entries, message_entry);
    }
}
