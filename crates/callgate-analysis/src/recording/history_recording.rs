//! Reads histories as recordings: the messages of a provider → the calls in them, with their results.

use callgate::call::{CallRecord, Effect, RecordedResult, RoundPosition, reason_code};
use callgate::json::{Map, Value};
use callgate::message::{CallOccurrence, Dialect, History, ResultOutput, ResultPart, ResultStatus};

use super::decision::CallDecision;
use super::recorded_call::{CallOrigin, CallStage, RecordedCall, RecordedDecision};
use super::redaction_marks::has_redacted_values;

/// Recognizes the dialect of a document. Returns `None` if it is no history: neither an array of messages nor a request with one.
///
/// A history that contains no calls may be of several dialects; then it does not matter which.
pub(super) fn find_dialect(document: &Value) -> Option<Dialect> {
    match document {
        Value::Array(items) => dialect_of(items),
        Value::Object(members) if members.contains_key("tool") => None,
        Value::Object(members) => {
            let items = |name: &str| members.get(name).and_then(Value::as_array);
            match (items("contents"), items("input"), items("messages")) {
                (Some(_), _, _) => Some(Dialect::Gemini),
                (None, Some(_), _) => Some(Dialect::OpenaiResponses),
                (None, None, Some(messages)) => dialect_of(messages),
                (None, None, None) => None,
            }
        }
        _ => None,
    }
}

fn dialect_of(items: &[Value]) -> Option<Dialect> {
    let is_message =
        |item: &&Value| item.get("role").is_some_and(Value::is_string) || item.get("type").is_some();
    items.first().filter(|item| item.is_object()).filter(is_message)?;
    let has_type = |value: &Value, names: &[&str]| {
        value.get("type").and_then(Value::as_str).is_some_and(|name| names.contains(&name))
    };
    let parts = || items.iter().filter_map(|item| item.get("content")?.as_array()).flatten();
    Some(if items.iter().any(|item| item.get("parts").is_some()) {
        Dialect::Gemini
    } else if items.iter().any(|item| has_type(item, &["function_call", "function_call_output"])) {
        Dialect::OpenaiResponses
    } else if parts().any(|part| has_type(part, &["tool-call", "tool-result"])) {
        Dialect::AiSdk
    } else if parts().any(|part| has_type(part, &["tool_use", "tool_result"])) {
        Dialect::Anthropic
    } else {
        Dialect::OpenaiChat
    })
}

/// Reads the calls of a history, in order. `session` is the name of the session that it is.
///
/// # Errors
/// If the document is nested too deeply.
pub(super) fn read_history(
    dialect: Dialect,
    document: &Value,
    session: &str,
    origin: &CallOrigin,
) -> Result<Vec<RecordedCall>, String> {
    let history = History::read(dialect, document).map_err(|error| error.to_string())?;
    let occurrences = history.occurrences();
    let mut tasks = TaskReader::new(&history);
    let calls = occurrences.iter().map(|occurrence| {
        let decision = read_decision(occurrence);
        let record = CallRecord {
            call: occurrence.call.to_call(),
            session: Some(session.to_owned()),
            round: None,
            task: tasks.task_before(occurrence.position.message),
            recorded: occurrence.result.and_then(recorded_result),
        };
        RecordedCall {
            is_redacted: has_redacted_values(&record),
            record,
            origin: origin.clone(),
            time: None,
            run: None,
            position: round_position(&occurrences, occurrence),
            stage: CallStage::Decided,
            decision,
        }
    });
    Ok(calls.collect())
}

/// The position of a call among those of its round. Returns `None` if it is the only one.
fn round_position(all: &[CallOccurrence<'_>], occurrence: &CallOccurrence<'_>) -> Option<RoundPosition> {
    let of_round = || all.iter().filter(|other| other.round == occurrence.round);
    let size = of_round().count();
    let index = of_round().position(|other| other.position == occurrence.position)?;
    (size > 1).then_some(RoundPosition { size, index })
}

fn read_decision(occurrence: &CallOccurrence<'_>) -> RecordedDecision {
    let known = |effect, code: &str, is_approved| RecordedDecision::Known {
        decision: CallDecision { effect, policy: None, code: code.to_owned() },
        is_approved,
    };
    let is_approved = occurrence.responses.iter().any(|response| response.approved)
        && occurrence.responses.iter().all(|response| response.approved);
    match (occurrence.result, occurrence.request) {
        (Some(result), _) if result.status == ResultStatus::Denied => {
            known(Effect::Deny, reason_code::DENIED, false)
        }
        (Some(_), Some(_)) if !is_approved && !occurrence.responses.is_empty() => {
            known(Effect::Deny, reason_code::APPROVAL_DENIED, false)
        }
        (Some(_), _) => known(Effect::Run, reason_code::ALLOWED, is_approved),
        (None, Some(_)) => known(Effect::Suspend, reason_code::APPROVAL_REQUIRED, false),
        (None, None) => RecordedDecision::Unknown,
    }
}

fn recorded_result(result: &ResultPart) -> Option<RecordedResult> {
    match result.status {
        ResultStatus::Denied => None,
        ResultStatus::Error => Some(RecordedResult::Error { message: result.output.text(), kind: None }),
        _ => Some(RecordedResult::Output(match &result.output {
            ResultOutput::Json(value) => value.clone(),
            other => other.text().into(),
        })),
    }
}

/// What the user asked for before each call.
struct TaskReader {
    /// The index of each message of the user, with its text.
    turns: Vec<(usize, String)>,
    reported: usize,
}

impl TaskReader {
    fn new(history: &History) -> Self {
        Self { turns: history.user_texts().collect(), reported: 0 }
    }

    /// The task of a call in this message. Returns `None` if it is that of the call before.
    fn task_before(&mut self, message: usize) -> Option<Value> {
        let known = self.turns.iter().take_while(|(index, _)| *index < message).count();
        if known == std::mem::replace(&mut self.reported, known) {
            return None;
        }
        let turns = self.turns.iter().take(known).map(|(_, text)| {
            let mut turn = Map::new();
            turn.insert("text", text.as_str().into());
            Value::Object(turn)
        });
        Some(Value::Array(turns.collect()))
    }
}
