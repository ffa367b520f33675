//! The timeline of a conversation: messages, and each call with its approval request, responses and result as one entry.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::json::Value;
use crate::message::{
    CallOccurrence, CallPart, Content, Dialect, History, Message, Part, Place, RequestPart, ResponsePart,
    ResultPart, Role, Settled,
};

/// One entry of a timeline.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its subject.
    pub subject: Subject<'a>,
    /// The parts of the history that it covers, in order. Each part of a history is in exactly one entry.
    pub places: Vec<Place>,
}

/// The subject of an entry.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// Message content: neighboring parts of one message that belong to no call.
    Said {
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
        status: Status,
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
        status: Status,
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
pub enum Status {
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
/// use callgate::card::{Status, Subject, timeline};
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
/// assert!(matches!(entries[1].subject, Subject::Approval { status: Status::Answered, .. }));
/// # Ok::<(), callgate::message::DialectError>(())
/// ```
pub fn timeline(history: &History) -> Vec<Entry<'_>> {
    let mut places = places(history);
    let mut entries: BTreeMap<Place, Entry<'_>> = BTreeMap::new();
    for occurrence in history.occurrences() {
        let mut taken = vec![occurrence.place];
        let belonging = occurrence.request.map(identity).into_iter();
        let belonging = belonging.chain(occurrence.responses.iter().map(|response| identity(*response)));
        let belonging: Vec<Identity> = belonging.chain(occurrence.result.map(identity)).collect();
        places.remove(&identity(occurrence.call));
        taken.extend(belonging.iter().filter_map(|part| places.remove(part)));
        add(&mut entries, Entry { subject: subject(&occurrence), places: taken });
    }
    add_hosted_requests(history, &mut places, &mut entries);
    add_unrelated_parts(history, &places, &mut entries);
    entries.into_values().collect()
}

/// The address of a part, which distinguishes equal parts.
type Identity = *const ();

fn identity<T>(content: &T) -> Identity {
    std::ptr::from_ref(content).cast()
}

fn identity_of(content: &Content) -> Option<Identity> {
    match content {
        Content::Call(call) => Some(identity(call)),
        Content::Result(result) => Some(identity(result)),
        Content::Request(request) => Some(identity(request)),
        Content::Response(response) => Some(identity(response)),
        Content::Text(_) | Content::State(_) | Content::Other => None,
    }
}

/// The positions of all calls, results, requests and responses.
fn places(history: &History) -> HashMap<Identity, Place> {
    let parts = each_part(history);
    parts.filter_map(|(place, _, part)| Some((identity_of(part.content())?, place))).collect()
}

fn each_part(history: &History) -> impl Iterator<Item = (Place, &Message, &Part)> {
    history.messages().iter().enumerate().flat_map(|(message, of)| {
        of.parts().iter().enumerate().map(move |(part, content)| (Place { message, part }, of, content))
    })
}

fn add<'a>(entries: &mut BTreeMap<Place, Entry<'a>>, mut entry: Entry<'a>) {
    // Ordered by the position of the call, or of the first part if there is no call.
    if let Some(first) = entry.places.first().copied() {
        entry.places.sort();
        entries.insert(first, entry);
    }
}

fn subject<'a>(occurrence: &CallOccurrence<'a>) -> Subject<'a> {
    let status = status(occurrence.request, &occurrence.responses, occurrence.result);
    match occurrence.request {
        Some(request) => Subject::Approval {
            call: Some(occurrence.call),
            request,
            responses: occurrence.responses.clone(),
            result: occurrence.result,
            status,
        },
        None => Subject::Call { call: occurrence.call, result: occurrence.result, status },
    }
}

fn status(request: Option<&RequestPart>, responses: &[&ResponsePart], result: Option<&ResultPart>) -> Status {
    let refused = responses.first().map(|first| !first.approved || first.cancel);
    let in_its_place = responses.first().is_some_and(|first| first.output.is_some());
    match (result.map(|result| result.settled), refused) {
        // Some dialects write a denial as an error, or as any other result.
        (_, Some(true)) | (Some(Settled::Denied), _) => Status::Denied,
        (Some(Settled::Error), _) => Status::Failed,
        (Some(Settled::Output), Some(false)) if in_its_place => Status::Answered,
        (Some(Settled::Output), Some(false)) => Status::Executed,
        (Some(Settled::Output), None) if request.is_none() => Status::Executed,
        (None, Some(false)) => Status::Answered,
        (None, None) if request.is_some() => Status::Pending,
        (Some(Settled::Output) | None, None) => Status::Unknown,
    }
}

/// Adds requests about calls that the provider runs itself, with their responses.
fn add_hosted_requests<'a>(
    history: &'a History,
    places: &mut HashMap<Identity, Place>,
    entries: &mut BTreeMap<Place, Entry<'a>>,
) {
    let mut answers: HashMap<&str, &ResponsePart> = HashMap::new();
    for (_, _, part) in each_part(history) {
        if let Content::Response(response) = part.content() {
            answers.entry(&response.approval_id).or_insert(response);
        }
    }
    for (place, _, part) in each_part(history).filter(|(_, _, part)| is_hosted(part)) {
        let Content::Request(request) = part.content() else { continue };
        if places.remove(&identity(request)).is_none() {
            continue;
        }
        let answer = answers.get(request.approval_id.as_str()).copied();
        let answer = answer.and_then(|answer| Some((answer, places.remove(&identity(answer))?)));
        let (responses, answered): (Vec<_>, Vec<_>) = answer.into_iter().unzip();
        let status = status(Some(request), &responses, None);
        let subject = Subject::Approval { call: None, request, responses, result: None, status };
        add(entries, Entry { subject, places: std::iter::once(place).chain(answered).collect() });
    }
}

fn is_hosted(part: &Part) -> bool {
    let kind = |json: &Value| json.get("type").is_some_and(|kind| kind == HOSTED_REQUEST);
    part.source().is_some_and(|(dialect, json)| dialect == Dialect::OpenaiResponses && kind(json))
}

/// Adds message content, and parts that belong to nothing.
fn add_unrelated_parts<'a>(
    history: &'a History,
    places: &HashMap<Identity, Place>,
    entries: &mut BTreeMap<Place, Entry<'a>>,
) {
    let mut said: Option<Entry<'a>> = None;
    for (place, message, part) in each_part(history) {
        let alone = |subject| Entry { subject, places: vec![place] };
        let unlinked = identity_of(part.content()).is_some_and(|part| places.contains_key(&part));
        let entry = match part.content() {
            Content::Text(_) | Content::State(_) | Content::Other => {
                let follows = said
                    .as_ref()
                    .and_then(|said| said.places.last())
                    .is_some_and(|last| last.message == place.message && last.part + 1 == place.part);
                if !follows && let Some(said) = said.take() {
                    add(entries, said);
                }
                let entry = said.get_or_insert_with(|| Entry {
                    subject: Subject::Said { role: message.role(), parts: Vec::new() },
                    places: Vec::new(),
                });
                if let Subject::Said { parts, .. } = &mut entry.subject {
                    parts.push(part);
                }
                entry.places.push(place);
                continue;
            }
            Content::Request(request) => alone(Subject::Request(request)),
            Content::Response(response) => alone(Subject::Response(response)),
            Content::Result(result) => alone(Subject::Result(result)),
            // Every call is an occurrence.
            Content::Call(_) => continue,
        };
        if unlinked {
            add(entries, entry);
        }
    }
    if let Some(said) = said {
        add(entries, said);
    }
}
