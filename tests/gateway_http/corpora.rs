//! The cases of `tests/cases` through the gateway: a client sends their calls, and servers return their recorded results. The outcomes are
//! the same as in process, to the last byte, and the client receives what they say.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use callgate::call::{CallRecord, Outcome, OutcomeKind, RecordedResult};
use callgate::host::Observer;
use callgate::json::{self, Value, json};
use callgate::{Engine, EngineBuilder, ToolDescriptor, load_text};
use callgate_mcp::{Gateway, HttpSpec, ServerSpec, TaskSource, Transport};

use super::client::Client;
use super::harness::{Upstream, json_response, result};
use crate::cases::{self, Case, Noon};
use crate::fixtures;
use crate::recorded_calls::{play, result_forms};

/// The cases that no client of MCP can send, because they are about layers of a prompt and of a call, which only programs in Rust have.
const WITHOUT_GATEWAY: [&str; 1] = ["layers"];

/// The server of calls that name none.
const SERVER: &str = "server";

/// The outcomes that the engine reports.
#[derive(Clone, Default)]
struct Outcomes(Arc<Mutex<Vec<Outcome>>>);

impl Outcomes {
    fn take(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Outcomes {
    fn on_outcome(&self, outcome: &Outcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(outcome.clone());
    }
}

/// The case as clients and servers of MCP have it: each call is a round of its own at a server, and its tool returns a result of MCP.
fn for_mcp(mut case: Case) -> Case {
    for record in &mut case.records {
        record.round = None;
        // The gateway reads missing arguments as an empty object.
        if record.call.input.is_null() {
            record.call.input = json!({});
        }
        record.call.server.get_or_insert_with(|| SERVER.to_owned());
        record.recorded = Some(match record.recorded.take() {
            Some(RecordedResult::Error { message, .. }) => {
                RecordedResult::Error { message, kind: Some("tool_error".to_owned()) }
            }
            Some(RecordedResult::Output(output)) => RecordedResult::Output(result_of(&output)),
            None => RecordedResult::Output(result_of(&Value::Null)),
        });
    }
    case
}

/// The output as a result of MCP.
fn result_of(output: &Value) -> Value {
    let [.., result] = result_forms(output);
    result
}

/// An engine with the rules of a case. `None` if they have errors.
fn engine(case: &Case) -> Option<EngineBuilder> {
    Some(Engine::builder(load_text(&case.rules).ok()?).keys(fixtures::keys()).clock(Noon))
}

/// A server with the tools of a case that returns what `next` has.
async fn upstream(case: &Case, name: &str, next: &Arc<Mutex<Option<RecordedResult>>>) -> Upstream {
    let tools = case.tools.as_array().into_iter().flatten();
    let tools: Vec<Value> = tools
        .filter(|tool| tool["server"].as_str().is_none_or(|server| server == name))
        .map(|tool| {
            let mut tool = tool.clone();
            let members = tool.as_object_mut().unwrap();
            members.remove("server");
            if let Some(schema) = members.remove("input_schema") {
                members.insert("inputSchema", schema);
            }
            tool
        })
        .collect();
    let next = Arc::clone(next);
    Upstream::new(move |got| {
        let reply = match got.method() {
            "tools/list" => json!({ "tools": tools }),
            "tools/call" => match next.lock().unwrap().clone().expect("a recorded result") {
                RecordedResult::Output(output) => output,
                RecordedResult::Error { message, .. } => {
                    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
                }
            },
            _ => return None,
        };
        Some(json_response(&result(got, reply)))
    })
    .await
}

/// Sends the calls of a case, each with its context and task. Returns the outcomes and the results of `tools/call`.
async fn through_gateway(case: &Case, engine: EngineBuilder) -> Vec<(Outcome, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let outcomes = Outcomes::default();
    let store = callgate_sqlite::open_store(&format!("file:{}", folder.path().join("state.db").display()));
    let engine = engine.observer(outcomes.clone()).store(store.unwrap()).build();
    let next = Arc::default();
    let names: BTreeSet<&str> =
        case.records.iter().filter_map(|record| record.call.server.as_deref()).collect();
    let mut servers = Vec::new();
    for &name in &names {
        servers.push((name, upstream(case, name, &next).await));
    }
    let task = folder.path().join("task.json");
    std::fs::write(&task, "").unwrap();
    let connect = |record: &CallRecord| {
        let specs = servers.iter().map(|(name, upstream)| {
            let spec = HttpSpec { url: upstream.url.clone(), headers: Vec::new(), auth: None };
            ServerSpec::new(*name, Transport::Http(spec)).with_prefix(format!("{name}__"))
        });
        Gateway::new(engine.clone(), specs)
            .with_context(record.call.context.clone())
            .with_session(record.session.as_deref().unwrap_or("s"))
            .with_task(TaskSource::file(&task))
    };
    let mut ends = Vec::new();
    let connections = case
        .records
        .chunk_by(|one, next| one.call.context == next.call.context && one.session == next.session);
    for records in connections {
        let mut client = Client::new(connect(&records[0]), json!({})).await;
        for record in records {
            if let Some(told) = &record.task {
                std::fs::write(&task, told.to_string()).unwrap();
            }
            *next.lock().unwrap() = record.recorded.clone();
            let name = format!("{}__{}", record.call.server.as_deref().unwrap(), record.call.tool);
            let params = json!({ "name": name, "arguments": record.call.input });
            let answer = client.request(1, "tools/call", params).await;
            let mut reported = outcomes.take();
            assert_eq!(reported.len(), 1, "{}: {answer}", record.call.id);
            ends.push((reported.remove(0), answer["result"].clone()));
        }
    }
    ends
}

/// Asserts that what the client receives says what the outcome is.
fn assert_told(outcome: &Outcome, result: &Value, place: &str) {
    match outcome.outcome {
        OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => {
            let output = outcome.output.as_ref().unwrap();
            let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
            match output {
                Value::Object(members) if members.contains_key("content") => {
                    assert_eq!(result, output, "{place}")
                }
                Value::Object(_) => assert_eq!(&result["structuredContent"], output, "{place}"),
                _ => assert_eq!(result["content"][0]["text"], text, "{place}"),
            }
        }
        OutcomeKind::Failed => assert_eq!(result["isError"], true, "{place}"),
        _ => {
            let told = &result["_meta"]["dev.callgate/outcome"];
            let expected = (&json!(true), &json!(outcome.outcome), &json!(outcome.reason.code));
            assert_eq!((&result["isError"], &told["outcome"], &told["code"]), expected, "{place}");
        }
    }
}

#[test]
fn each_case_has_the_same_outcomes_at_the_gateway() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut without_gateway = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(fixtures::root().join("tests/cases")).unwrap() {
        let path = entry.unwrap().path();
        let mut case = for_mcp(Case::read(&path));
        if !case.layers.is_empty() {
            without_gateway.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            continue;
        }
        // Rules with errors have no engine.
        let (Some(own), Some(of_gateway)) = (engine(&case), engine(&case)) else { continue };
        let ends = runtime.block_on(through_gateway(&case, of_gateway));
        let tools: Vec<ToolDescriptor> = json::from_value(case.tools.clone()).unwrap();
        let mut session = own.tools(tools).build().session().with_name("s");
        for (record, (outcome, result)) in case.records.iter_mut().zip(&ends) {
            let place = format!("{} in {}", record.call.id, path.display());
            // The gateway names the calls.
            record.call.id.clone_from(&outcome.id);
            let own = play(&mut session, std::slice::from_ref(record));
            assert_eq!(cases::print(outcome), cases::print(&own[0]), "{place}");
            assert_told(outcome, result, &place);
        }
        compared += 1;
    }
    assert_eq!(without_gateway, WITHOUT_GATEWAY);
    assert!(compared > 50, "only {compared} cases");
}
