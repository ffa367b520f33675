//! Lines of calls: a call, or the end of a call in a decision log → [`CallLine`].

use std::collections::HashSet;

use callgate::call::{CallRecord, CallRecordError, RoundPosition};
use callgate::json::{self, Map, Value};
use callgate_log::LogEntry;

/// Reads calls from lines, in order.
pub(in super::super) struct CallLines<'c> {
    /// Merged into the context of every call, which overrides it.
    context: &'c Map,
    /// Calls of a log that were pending: their later ends are no further calls. Session and id.
    pending: HashSet<(String, String)>,
}

/// A call of a line.
pub(in super::super) struct CallLine {
    pub(in super::super) record: CallRecord,
    /// Its place in its round, in a log.
    pub(in super::super) position: Option<RoundPosition>,
    /// The run that it belongs to, in a log.
    pub(in super::super) run: Option<String>,
}

impl CallLine {
    /// Whether a later call of the session is part of the round of another one.
    pub(in super::super) fn continues_round_of(&self, earlier: &Self) -> bool {
        match (earlier.position, self.position) {
            (Some(earlier), Some(own)) => earlier.size == own.size && earlier.index < own.index,
            _ => earlier.record.round.is_some() && earlier.record.round == self.record.round,
        }
    }
}

impl<'c> CallLines<'c> {
    pub(in super::super) fn new(context: &'c Map) -> Self {
        Self { context, pending: HashSet::new() }
    }

    /// Reads one line. Returns `None` for events of a log that are no calls.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub(in super::super) fn read(&mut self, text: &str, number: u64) -> Result<Option<CallLine>, String> {
        let document = json::parse(text)
            .map_err(|error| format!("invalid JSON: {} (column {})", error.kind, error.column))?;
        let (document, position, run) = match document.as_object().is_some_and(is_event) {
            true => {
                let entry = LogEntry::from_json(document).map_err(|error| error.to_string())?;
                if !self.is_call(&entry)? {
                    return Ok(None);
                }
                let (position, run) = (entry.round_position(), entry.text("run").map(str::to_owned));
                (Value::Object(entry.members), position, run)
            }
            false => (document, None, None),
        };
        let mut record =
            CallRecord::from_json(document).map_err(|error: CallRecordError| error.to_string())?;
        if record.call.id.is_empty() {
            record.call.id = line_id(number);
        }
        if !self.context.is_empty() {
            let mut merged = self.context.clone();
            if let Value::Object(own) = record.call.context {
                merged.extend(own);
            }
            record.call.context = merged.into();
        }
        Ok(Some(CallLine { record, position, run }))
    }

    /// Whether an event is the end of a call that was not read before.
    fn is_call(&mut self, entry: &LogEntry) -> Result<bool, String> {
        let text = |name: &str| entry.text(name).unwrap_or_default();
        if entry.event != "call_completed" {
            return Ok(false);
        }
        if entry.members.contains_key("input_digest") {
            return Err("the log has digests in place of arguments; record it with `--log-content redacted`"
                .to_owned());
        }
        let call = (text("session").to_owned(), text("id").to_owned());
        if text("outcome") == "suspended" {
            return Ok(self.pending.insert(call));
        }
        Ok(!self.pending.remove(&call))
    }
}

/// Whether a line is an event of a decision log. Calls have no `event`.
fn is_event(members: &Map) -> bool {
    let is_text = |name: &str| members.get(name).is_some_and(Value::is_string);
    is_text("event") && is_text("time") && members.get("version").is_some_and(Value::is_number)
}

/// The id of a call without one.
pub(super) fn line_id(number: u64) -> String {
    format!("line_{number}")
}
