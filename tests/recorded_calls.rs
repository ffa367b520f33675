//! Runs recorded calls through an engine, session by session, with the recorded results of their tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use callgate::call::{CallRecord, Outcome, RecordedResult};
use callgate::json::{Value, json};
use callgate::{Engine, Session, ToolCall, ToolError, ToolExecutor, ToolResponse, engine};

use crate::fixtures;

/// Returns the recorded result of each call.
struct Recording<'a>(&'a [CallRecord]);

impl ToolExecutor for Recording<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let record = self.0.iter().find(|record| record.call.id == call.id);
        match record.and_then(|record| record.recorded.clone()) {
            Some(RecordedResult::Output(output)) => Ok(output.into()),
            Some(RecordedResult::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(ToolResponse { dry: true, ..Value::Null.into() }),
        }
    }
}

/// The absolute path of a file in the project.
pub fn project(path: &str) -> PathBuf {
    fixtures::root().join(path)
}

/// An engine with the bundle in a directory of the project.
pub fn engine(bundle: &str) -> Engine {
    let chains = engine::load(&[project(bundle)]).unwrap_or_else(|error| panic!("{error}"));
    Engine::builder(chains).keys(fixtures::keys()).build()
}

/// Parses a file of calls. A call without an id gets one from its line number.
pub fn records(text: &str) -> Vec<CallRecord> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let record = |(number, line)| {
        let mut record =
            CallRecord::parse(line).unwrap_or_else(|error| panic!("line {number}: {error}: {line}"));
        if record.call.id.is_empty() {
            record.call.id = format!("line-{number}");
        }
        record
    };
    lines.map(record).collect()
}

/// Groups calls by session, in order.
pub fn sessions(records: Vec<CallRecord>) -> BTreeMap<String, Vec<CallRecord>> {
    let mut sessions: BTreeMap<String, Vec<CallRecord>> = BTreeMap::new();
    for record in records {
        sessions.entry(record.session.clone().unwrap_or_default()).or_default().push(record);
    }
    sessions
}

/// Groups the calls of a session by round, in order.
pub fn rounds(records: &[CallRecord]) -> impl Iterator<Item = &[CallRecord]> {
    records.chunk_by(|one, next| one.round.is_some() && one.round == next.round)
}

/// Executes one session's calls. Adjacent calls of the same round are executed as a round.
pub fn play(session: &mut Session, records: &[CallRecord]) -> Vec<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    rounds(records)
        .flat_map(|round| {
            if let Some(task) = round.iter().filter_map(CallRecord::task).next_back() {
                session.set_task(task);
            }
            let calls = round.iter().map(|record| record.call.clone()).collect();
            runtime.block_on(session.execute_round(calls, &Recording(records)))
        })
        .collect()
}

/// The forms in which servers return the same result.
pub fn result_forms(output: &Value) -> [Value; 3] {
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    let part = json!({"type": "text", "text": text.clone()});
    let structured = match output.is_object() {
        true => json!({"content": [{"type": "text", "text": "done"}], "structuredContent": output}),
        false => json!({"content": [part.clone()], "isError": false}),
    };
    [text.into(), json!({"content": [part]}), structured]
}

/// What is decided of each call: outcome, reason, and the policies that take part.
pub fn decisions(outcomes: &[Outcome]) -> Vec<Value> {
    let decision = |outcome: &Outcome| {
        let policies: Vec<_> =
            outcome.policies.iter().map(|policy| (&policy.id, policy.verdict, policy.undecided)).collect();
        json!([outcome.id, outcome.outcome, outcome.reason, policies])
    };
    outcomes.iter().map(decision).collect()
}

/// The calls with their results in each form.
pub fn in_result_forms(calls: &[CallRecord]) -> [Vec<CallRecord>; 3] {
    [0, 1, 2].map(|form: usize| {
        let mut changed = calls.to_vec();
        for call in &mut changed {
            if let Some(RecordedResult::Output(output)) = &mut call.recorded {
                *output = result_forms(output)[form].clone();
            }
        }
        changed
    })
}
