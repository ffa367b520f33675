//! The cases of `tests/cases` have the same outcomes in Node as in Rust, to the last byte of their canonical JSON.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use callgate::call::{CallRecord, RecordedResult};
use callgate::json::{self, Value, json};
use callgate::{Clock, Engine, Keys, ToolCall, ToolDescriptor, ToolError, ToolExecutor, ToolResponse};

use crate::installed_package::{application, project};

pub struct Noon;

impl Clock for Noon {
    fn now(&self) -> jiff::Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }
}

struct Case {
    name: String,
    rules: String,
    tools: Vec<ToolDescriptor>,
    layers: Vec<String>,
    rounds: Vec<Vec<CallRecord>>,
}

impl Case {
    /// Reads a case. Returns `None` if it has no outcomes to compare: its rules are rejected, or it has requests by other methods than
    /// calls of tools, which only the gateway makes.
    fn read(name: String, text: &str) -> Option<Self> {
        let case: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
        let member =
            |key: &str| case.get(key).and_then(serde_yaml::Value::as_str).unwrap_or_default().to_owned();
        let rules = member("rules");
        callgate::load_text(&rules).ok()?;
        let tools = member("tools");
        let mut calls = Vec::new();
        for (index, line) in member("calls").lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut record = CallRecord::parse(line).unwrap();
            if record.call.id.is_empty() {
                record.call.id = format!("line-{}", index + 1);
            }
            if record.call.is_method {
                return None;
            }
            calls.push(record);
        }
        let rounds = calls.chunk_by(|one, next| one.round.is_some() && one.round == next.round);
        Some(Self {
            name,
            rules,
            tools: if tools.is_empty() { Vec::new() } else { json::from_str(&tools).unwrap() },
            layers: ["prompt", "call"].map(member).into_iter().filter(|layer| !layer.is_empty()).collect(),
            rounds: rounds.map(<[CallRecord]>::to_vec).collect(),
        })
    }

    fn for_node(&self) -> Value {
        let call = |record: &CallRecord| {
            let recorded = record.recorded.as_ref().map(|recorded| match recorded {
                RecordedResult::Output(output) => json!({ "output": output.clone() }),
                RecordedResult::Error { message, kind } => {
                    json!({ "error": { "message": message.as_str(), "kind": kind.as_deref() } })
                }
            });
            json!({ "call": json::to_value(&record.call).unwrap(), "recorded": recorded })
        };
        let round = |round: &Vec<CallRecord>| {
            let calls: Vec<Value> = round.iter().map(call).collect();
            json!({ "task": task(round), "calls": calls })
        };
        let rounds: Vec<Value> = self.rounds.iter().map(round).collect();
        json!({
            "rules": self.rules.as_str(),
            "tools": json::to_value(&self.tools).unwrap(),
            "layers": self.layers.clone(),
            "rounds": rounds,
        })
    }

    fn in_rust(&self) -> Value {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let engine = Engine::builder(callgate::load_text(&self.rules).unwrap())
            .keys(Keys::parse(&"5a".repeat(32)).unwrap())
            .tools(self.tools.clone())
            .clock(Noon)
            .build();
        let mut session = engine.session();
        for layer in &self.layers {
            session = session.with_layer(callgate::load_layer(layer, &engine.rules()).unwrap());
        }
        let mut outcomes = Vec::new();
        for round in &self.rounds {
            if let Some(task) = round.iter().filter_map(CallRecord::task).next_back() {
                session.set_task(task);
            }
            let calls = round.iter().map(|record| record.call.clone()).collect();
            outcomes.extend(runtime.block_on(session.execute_round(calls, &Recording(round))));
        }
        json!({ "outcomes": json::to_value(&outcomes).unwrap(), "session": session.state().document().clone() })
    }
}

/// The task of a round, as it was recorded.
fn task(round: &[CallRecord]) -> Option<Value> {
    round.iter().filter_map(|record| record.task.clone()).next_back()
}

struct Recording<'a>(&'a [CallRecord]);

impl ToolExecutor for Recording<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let record = self.0.iter().find(|record| record.call.id == call.id);
        match record.and_then(|record| record.recorded.clone()) {
            Some(RecordedResult::Output(output)) => Ok(output.into()),
            Some(RecordedResult::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(Value::Null.into()),
        }
    }
}

/// What Node makes of these cases or histories, in the same order.
pub fn in_node(cases: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut node = Command::new("node")
        .arg("corpus.mjs")
        .current_dir(application())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input: String = cases.map(|case| format!("{case}\n")).collect();
    let mut stdin = node.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().map(|line| json::parse(line).unwrap()).collect()
}

/// The outcomes without what differs from run to run: times, and sealed tokens.
pub fn comparable(mut played: Value) -> String {
    for outcome in played["outcomes"].as_array_mut().unwrap() {
        outcome.as_object_mut().unwrap().remove("duration_us");
        if let Some(approval) = outcome.get_mut("approval").and_then(Value::as_object_mut) {
            approval.remove("approvalToken");
        }
    }
    json::canonical_text(&played)
}

#[test]
fn cases_have_the_same_outcomes_in_node_as_in_rust() {
    let mut cases = Vec::new();
    let mut paths: Vec<_> =
        fs::read_dir(project().join("tests/cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let all = paths.len();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        cases.extend(Case::read(name, &fs::read_to_string(&path).unwrap()));
    }
    assert!(cases.len() * 10 > all * 9, "only {} of {all} cases are compared", cases.len());

    let played = in_node(cases.iter().map(Case::for_node));
    assert_eq!(played.len(), cases.len());
    for (case, played) in cases.iter().zip(played) {
        assert_eq!(comparable(played), comparable(case.in_rust()), "{}", case.name);
    }
}
