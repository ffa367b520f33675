//! Writes a generated test file: sessions with outcomes → YAML text.

use std::collections::BTreeSet;

use super::RecordingSource;
use super::recorded_run::{RecordedCallResult, RecordedRounds};
use crate::yaml_writer;
use callgate::call::{CallRecord, Outcome, OutcomeKind, RecordedResult, reason_code};
use callgate::json::{Map, Value};
use callgate::safe_text::{escape_controls, truncate};

/// The maximum length of a line, in characters.
const MAX_WIDTH: usize = 120;

/// The maximum length of a step on one line, in characters.
const MAX_STEP_WIDTH: usize = 80;

/// One session with the outcomes of its calls.
pub(super) struct GeneratedSession {
    pub(super) name: Option<String>,
    pub(super) rounds: RecordedRounds,
    /// One outcome for each call, in order.
    pub(super) results: Vec<RecordedCallResult>,
    /// The outcomes with the unredacted values; empty if nothing is redacted.
    pub(super) unredacted_results: Vec<RecordedCallResult>,
}

/// Writes the file.
pub(super) fn write_test_file(
    sessions: &[GeneratedSession],
    origin: &RecordingSource<'_>,
    redacted_by: &[String],
) -> String {
    let mut page = vec![
        format!("# Generated from the calls of {}: review it before you rely on it.", one_line(origin.calls)),
        "# The expectations are the current outcomes, which may be wrong. Give each case a name that describes what is"
            .to_owned(),
        "# expected, correct wrong expectations, and remove redundant cases.".to_owned(),
    ];
    if !redacted_by.is_empty() {
        let by: Vec<String> = redacted_by.iter().map(|id| one_line(id)).collect();
        page.push(format!(
            "# Values redacted by {} are not included: they appear in redacted form.",
            by.join(", ")
        ));
    }
    page.push("callgate: 1".to_owned());
    if let Some((file, _)) = origin.tools {
        page.extend(yaml_writer::entry("tools", &file.into(), usize::MAX));
    }
    let records = || sessions.iter().flat_map(|session| session.rounds.iter().flatten());
    let shared = common_context(records());
    if !shared.is_empty() {
        page.extend(yaml_writer::entry("context", &shared.clone().into(), MAX_WIDTH));
    }
    page.extend([String::new(), "cases:".to_owned()]);
    let mut names = BTreeSet::new();
    for (index, session) in sessions.iter().enumerate() {
        if index > 0 {
            page.push(String::new());
        }
        let name = unique_name(session, sessions.len(), &mut names);
        let lines = write_case(session, &name, &shared);
        page.extend(
            yaml_writer::list_item(lines).into_iter().map(|line| format!("  {line}").trim_end().to_owned()),
        );
    }
    page.push(String::new());
    page.join("\n")
}

/// The members of the context that all of these calls share.
fn common_context<'r>(records: impl Iterator<Item = &'r CallRecord>) -> Map {
    let mut records = records.map(|record| record.call.context.as_object());
    let mut shared = records.next().flatten().cloned().unwrap_or_default();
    for context in records {
        shared.retain(|key, value| {
            context.and_then(|context| context.get(key)).is_some_and(|other| value == other)
        });
    }
    shared
}

/// A case name that is not taken.
fn unique_name(session: &GeneratedSession, sessions: usize, used_names: &mut BTreeSet<String>) -> String {
    let name = match &session.name {
        Some(name) if name.trim().is_empty() => "session without a name".to_owned(),
        Some(name) => format!("session {name}"),
        None if sessions > 1 => "calls without a session".to_owned(),
        None => "recorded calls".to_owned(),
    };
    let mut free = name.clone();
    let mut number = 1;
    while !used_names.insert(free.clone()) {
        number += 1;
        free = format!("{name} ({number})");
    }
    free
}

fn write_case(session: &GeneratedSession, name: &str, above: &Map) -> Vec<String> {
    let mut lines = yaml_writer::entry("name", &name.into(), usize::MAX);
    let shared = common_context(session.rounds.iter().flatten());
    let own = without_members(&shared, above);
    if !own.is_empty() {
        lines.extend(yaml_writer::entry("context", &own.into(), MAX_WIDTH - 4));
    }
    let calls: Vec<GeneratedCall<'_>> = (1..)
        .zip(&session.results)
        .map(|(number, result)| GeneratedCall {
            result,
            unredacted_result: session.unredacted_results.get(number - 1),
            shared_context: &shared,
        })
        .collect();
    let records: Vec<&CallRecord> = session.rounds.iter().flatten().collect();
    if let ([record], [call]) = (records.as_slice(), calls.as_slice()) {
        lines.extend(call.comments());
        lines.extend(yaml_writer::entry("call", &call.members(record).into(), MAX_WIDTH - 4));
        lines.extend(yaml_writer::entry("expect", &call.expectation(record), MAX_WIDTH - 4));
        return lines;
    }
    let mut calls = calls.iter();
    lines.push("steps:".to_owned());
    for round in &session.rounds {
        let (indent, width) =
            if round.len() > 1 { ("      ", MAX_WIDTH - 12) } else { ("  ", MAX_WIDTH - 8) };
        if round.len() > 1 {
            lines.push("  - round:".to_owned());
        }
        for (record, call) in round.iter().zip(calls.by_ref()) {
            lines.extend(call.comments().into_iter().map(|line| format!("{indent}{line}")));
            let step = yaml_writer::list_item(write_step(call.step(record), width));
            lines.extend(step.into_iter().map(|line| format!("{indent}{line}")));
        }
    }
    lines
}

/// A step, on one line if it is short.
fn write_step(members: Map, width: usize) -> Vec<String> {
    let members = Value::Object(members);
    let flow = yaml_writer::flow(&members);
    match members.as_object() {
        Some(members) if flow.chars().count() > MAX_STEP_WIDTH => {
            members.iter().flat_map(|(key, value)| yaml_writer::entry(key, value, width)).collect()
        }
        _ => vec![flow],
    }
}

/// One call, with the data for its step.
struct GeneratedCall<'a> {
    result: &'a RecordedCallResult,
    unredacted_result: Option<&'a RecordedCallResult>,
    /// The context that all calls of the case share.
    shared_context: &'a Map,
}

impl GeneratedCall<'_> {
    fn comments(&self) -> Vec<String> {
        let mut comments = Vec::new();
        let reason =
            |outcome: &Outcome| (outcome.outcome, outcome.reason.policy.clone(), outcome.reason.code.clone());
        if let Some(before) =
            self.unredacted_result.filter(|before| reason(&before.outcome) != reason(&self.result.outcome))
        {
            let Outcome { outcome, reason, .. } = &before.outcome;
            let by =
                reason.policy.as_ref().map_or_else(String::new, |policy| format!(" by {}", one_line(policy)));
            comments
                .push(format!("# With the unredacted values: {outcome}{by} ({}).", one_line(&reason.code)));
        }
        comments
    }

    /// The members of the call, with the tool's answer if the tool ran.
    fn members(&self, record: &CallRecord) -> Map {
        let call = &record.call;
        let mut members = Map::new();
        members.insert("tool", call.tool.as_str().into());
        if let Some(server) = &call.server {
            members.insert("server", server.as_str().into());
        }
        if !call.input.as_object().is_some_and(Map::is_empty) {
            members.insert("input", call.input.clone());
        }
        if let Some(task) = &record.task {
            members.insert("task", task.clone());
        }
        let own = call
            .context
            .as_object()
            .map(|context| without_members(context, self.shared_context))
            .unwrap_or_default();
        if !own.is_empty() {
            members.insert("context", own.into());
        }
        match record.recorded.as_ref().filter(|_| self.result.runs > 0) {
            Some(RecordedResult::Output(output)) => {
                members.insert("returns", output.clone());
            }
            Some(RecordedResult::Error { message, kind: None }) => {
                members.insert("fails", message.as_str().into());
            }
            Some(RecordedResult::Error { message, kind: Some(kind) }) => {
                let failure = [("message", message), ("kind", kind)];
                let failure = failure.map(|(key, text)| (key.to_owned(), text.as_str().into()));
                members.insert("fails", Value::Object(failure.into_iter().collect()));
            }
            None => {}
        }
        members
    }

    fn step(&self, record: &CallRecord) -> Map {
        let mut members = self.members(record);
        members.insert("expect", self.expectation(record));
        members
    }

    /// The outcome, or a mapping if there is more to expect.
    fn expectation(&self, record: &CallRecord) -> Value {
        let outcome = &self.result.outcome;
        let mut members = Map::new();
        members.insert("outcome", outcome.outcome.name().into());
        if let Some(policy) = &outcome.reason.policy {
            members.insert("policy", policy.as_str().into());
        }
        if !is_default_code(outcome) {
            members.insert("code", outcome.reason.code.as_str().into());
        }
        if outcome.input != record.call.input {
            members.insert("input", outcome.input.clone());
        }
        let recorded = match &record.recorded {
            Some(RecordedResult::Output(output)) => output,
            _ => &Value::Null,
        };
        if let Some(output) = outcome.output.as_ref().filter(|output| *output != recorded) {
            members.insert("output", output.clone());
        }
        match members.len() {
            1 => outcome.outcome.name().into(),
            _ => members.into(),
        }
    }
}

/// Whether the code follows from the outcome and its policy.
fn is_default_code(outcome: &Outcome) -> bool {
    let usual: &[&str] = match outcome.outcome {
        OutcomeKind::Executed => &[reason_code::ALLOWED, reason_code::UNMATCHED],
        OutcomeKind::Denied => &[reason_code::DENIED],
        OutcomeKind::Halted => &[reason_code::HALTED],
        OutcomeKind::Suspended => &[reason_code::APPROVAL_REQUIRED],
        OutcomeKind::Answered => &[reason_code::ANSWERED],
        OutcomeKind::Cached => &[reason_code::CACHED],
        OutcomeKind::Recovered => &[reason_code::RECOVERED],
        OutcomeKind::Failed => &[reason_code::TOOL_ERROR],
        _ => &[],
    };
    usual.contains(&outcome.reason.code.as_str())
}

fn without_members(context: &Map, above: &Map) -> Map {
    let new = context.iter().filter(|(key, value)| !above.get(key).is_some_and(|other| other == *value));
    new.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// An untrusted string, for a comment.
fn one_line(text: &str) -> String {
    truncate(&escape_controls(text))
}
