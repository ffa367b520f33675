//! Puts calls files through an engine, session by session, playing what their tools once answered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callgate::call::{CallRecord, Outcome, Recorded};
use callgate::json::Value;
use callgate::{Engine, Session, ToolAnswer, ToolCall, ToolError, ToolExecutor, engine};

use crate::workshop;

/// Plays what the file says that the tool once answered.
struct Recording<'a>(&'a [CallRecord]);

impl ToolExecutor for Recording<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        let record = self.0.iter().find(|record| record.call.id == call.id);
        match record.and_then(|record| record.recorded.clone()) {
            Some(Recorded::Output(output)) => Ok(output.into()),
            Some(Recorded::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(ToolAnswer { output: Value::Null, dry: true, interim: false }),
        }
    }
}

/// A path below the project's root.
pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// An engine over the bundle in a folder of the project.
pub fn engine(bundle: &str) -> Engine {
    let chains = engine::load(&[project(bundle)]).unwrap_or_else(|error| panic!("{error}"));
    Engine::builder(chains).keys(workshop::keys()).build()
}

/// The calls of a file; a call without an id is named by its line.
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

/// The calls of each session, in their order.
pub fn sessions(records: Vec<CallRecord>) -> BTreeMap<String, Vec<CallRecord>> {
    let mut sessions: BTreeMap<String, Vec<CallRecord>> = BTreeMap::new();
    for record in records {
        sessions.entry(record.session.clone().unwrap_or_default()).or_default().push(record);
    }
    sessions
}

/// The outcomes of one session's calls. Neighbours of one round are decided together.
pub fn play(session: &mut Session, records: &[CallRecord]) -> Vec<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    records
        .chunk_by(|one, next| one.round.is_some() && one.round == next.round)
        .flat_map(|round| {
            let calls = round.iter().map(|record| record.call.clone()).collect();
            runtime.block_on(session.execute_round(calls, &Recording(records)))
        })
        .collect()
}
