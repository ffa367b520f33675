//! Reads recordings: a line of a decision log or an audit log with content, of a file of calls, or with a history → [`RecordedLine`].

use std::collections::HashSet;
use std::sync::Arc;

use callgate::call::{CallRecord, OutcomeKind, reason_code};
use callgate::json::{self, Map, Value};
use callgate_log::LogEntry;
use jiff::{SignedDuration, Timestamp};

use super::decision::CallDecision;
use super::history_recording::{find_dialect, read_history};
use super::recorded_call::{CallOrigin, CallStage, RecordedCall, RecordedDecision};
use super::redaction_marks::has_redacted_values;

/// The most pending calls whose later outcome is recognized as theirs.
const MAX_PENDING: usize = 100_000;

/// What a line contains.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedLine {
    /// A call.
    Call(Box<RecordedCall>),
    /// A history with its calls.
    History(Vec<RecordedCall>),
    /// The log has lost so many events before this line.
    EventsLost(u64),
    /// The process that wrote the line before crashed while it did.
    IncompleteLineBefore,
    /// Nothing that a backtest needs.
    Other,
}

/// Why a line is not a recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingError {
    /// It is not JSON: incomplete, or damaged.
    Json(String),
    /// It has other content.
    Content(String),
}

impl std::fmt::Display for RecordingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Json(problem) | Self::Content(problem)) = self;
        f.write_str(problem)
    }
}

/// Reads the lines of recordings, in order.
#[derive(Debug, Default)]
pub struct RecordingReader {
    /// Calls whose approval is pending: their session and id.
    pending: HashSet<(String, String)>,
    has_read_events: bool,
}

impl RecordingReader {
    /// Reads one line of a file.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn read(&mut self, text: &str, file: &Arc<str>, line: u64) -> Result<RecordedLine, RecordingError> {
        let document = json::parse(text).map_err(|error| {
            RecordingError::Json(format!("invalid JSON: {} (column {})", error.kind, error.column))
        })?;
        let origin = CallOrigin { file: Arc::clone(file), line };
        let read = if document.as_object().is_some_and(is_event) {
            self.has_read_events = true;
            self.read_event(document, origin)
        } else if let Some(dialect) = find_dialect(&document) {
            // Two histories are two sessions, also in one file.
            let session = format!("{file}:{line}");
            read_history(dialect, &document, &session, &origin).map(RecordedLine::History)
        } else {
            read_call(document, origin)
        };
        read.map_err(RecordingError::Content)
    }

    /// Whether a line was an event of a decision log.
    pub fn has_read_events(&self) -> bool {
        self.has_read_events
    }

    fn read_event(&mut self, document: Value, origin: CallOrigin) -> Result<RecordedLine, String> {
        let entry = LogEntry::from_json(document).map_err(|error| error.to_string())?;
        let number = |name: &str| entry.members.get(name).and_then(Value::as_u64);
        match entry.event.as_str() {
            "call_completed" => {}
            "events_lost" => return Ok(RecordedLine::EventsLost(number("count").unwrap_or(1))),
            "log_opened" if entry.members.contains_key("incomplete_line_before") => {
                return Ok(RecordedLine::IncompleteLineBefore);
            }
            _ => return Ok(RecordedLine::Other),
        }
        if entry.members.contains_key("input_digest") {
            return Err("the log has digests in place of arguments; record it with `--log-content redacted`"
                .to_owned());
        }
        let name = entry.text("outcome").unwrap_or_default();
        let kind = OutcomeKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| format!("unknown outcome `{name}`"))?;
        let Some(stage) = self.stage(&entry, kind) else { return Ok(RecordedLine::Other) };
        let time = decided_at(entry.time, number("duration_us").unwrap_or_default());
        let decision = read_decision(&entry, kind);
        let position = entry.round_position();
        let run = entry.text("run").map(str::to_owned);
        let is_dry = entry.members.contains_key("dry");
        let mut record = read_record(Value::Object(entry.members))?;
        if is_dry {
            record.recorded = None;
        }
        Ok(RecordedLine::Call(Box::new(RecordedCall {
            is_redacted: has_redacted_values(&record),
            record,
            origin,
            time: Some(time),
            run,
            position: position.filter(|_| stage == CallStage::Decided),
            stage,
            decision,
        })))
    }

    /// Which part of its call an outcome is. Returns `None` if nothing of it is to be replayed: a repeated request, or the end of a call
    /// that was not approved.
    fn stage(&mut self, entry: &LogEntry, kind: OutcomeKind) -> Option<CallStage> {
        let text = |name: &str| entry.text(name).unwrap_or_default().to_owned();
        let call = (text("session"), text("id"));
        if kind == OutcomeKind::Suspended {
            let is_known = self.pending.len() >= MAX_PENDING || self.pending.insert(call);
            return is_known.then_some(CallStage::Decided);
        }
        if !self.pending.remove(&call) {
            return Some(CallStage::Decided);
        }
        (kind.effect() == Some(callgate::Effect::Run)).then_some(CallStage::Resumed)
    }
}

/// Reads a line of a file of calls.
fn read_call(document: Value, origin: CallOrigin) -> Result<RecordedLine, String> {
    let mut record = read_record(document)?;
    if record.call.id.is_empty() {
        record.call.id = format!("line_{}", origin.line);
    }
    let decision = match &record.recorded {
        Some(_) => RecordedDecision::Known { decision: ran(), is_approved: false },
        None => RecordedDecision::Unknown,
    };
    Ok(RecordedLine::Call(Box::new(RecordedCall {
        is_redacted: has_redacted_values(&record),
        record,
        origin,
        time: None,
        run: None,
        position: None,
        stage: CallStage::Decided,
        decision,
    })))
}

/// Whether a line is an event of a decision log. Calls have no `event`.
fn is_event(members: &Map) -> bool {
    let is_text = |name: &str| members.get(name).is_some_and(Value::is_string);
    is_text("event") && is_text("time") && members.get("version").is_some_and(Value::is_number)
}

fn read_record(document: Value) -> Result<CallRecord, String> {
    CallRecord::from_json(document).map_err(|error| error.to_string())
}

fn read_decision(entry: &LogEntry, kind: OutcomeKind) -> RecordedDecision {
    let code = entry.reason("code").unwrap_or_default();
    let effect = kind.effect().filter(|_| !reason_code::NOT_REPRODUCIBLE.contains(&code));
    match effect {
        Some(effect) => RecordedDecision::Known {
            decision: CallDecision {
                effect,
                policy: entry.reason("policy").map(str::to_owned),
                code: code.to_owned(),
            },
            is_approved: entry.members.contains_key("approved_by"),
        },
        None => {
            RecordedDecision::NotReproducible(if code.is_empty() { kind.name() } else { code }.to_owned())
        }
    }
}

/// The decision on a call of which only a result is recorded.
fn ran() -> CallDecision {
    CallDecision { effect: callgate::Effect::Run, policy: None, code: reason_code::ALLOWED.to_owned() }
}

/// The time of the decision: outcomes are recorded when calls end.
fn decided_at(ended: Timestamp, duration_us: u64) -> Timestamp {
    let duration = SignedDuration::from_micros(i64::try_from(duration_us).unwrap_or(i64::MAX));
    ended.checked_sub(duration).unwrap_or(Timestamp::MIN)
}
