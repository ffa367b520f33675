//! The cases of `tests/cases` and the histories of `tests/dialects` through the decision server: the same outcomes as in process, to the
//! last byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use callgate::call::{CallRecord, RecordedResult};
use callgate::host::StateStore;
use callgate::json::{self, Value, json};
use callgate::{Engine, EngineBuilder, ToolDescriptor, load_text};
use callgate_server::{ActivityLog, DecisionServer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use crate::cases::{self, Case, Noon};
use crate::history_corpus::{self, printed_outcomes};
use crate::recorded_calls::play;
use crate::{dialects, fixtures};

/// The cases that no host can send, because they are about layers of a prompt and of a call, which only programs in Rust have.
const WITHOUT_SERVER: [&str; 1] = ["layers"];

fn store(folder: &Path) -> Arc<dyn StateStore> {
    callgate_sqlite::open_store(&format!("file:{}", folder.join("state.db").display())).unwrap()
}

/// A server over lines of JSON, with its host.
struct Host {
    requests: WriteHalf<DuplexStream>,
    replies: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Host {
    fn start(engine: EngineBuilder, folder: &Path) -> Self {
        let store = store(folder);
        let activity = ActivityLog::default();
        let engine = activity.observe(engine.store(Arc::clone(&store))).build();
        let server = DecisionServer::new(engine, store, activity);
        let (host, child) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(child);
        let serving = tokio::spawn(server.serve_lines(BufReader::new(input), output));
        let (replies, requests) = tokio::io::split(host);
        Self { requests, replies: BufReader::new(replies).lines(), serving }
    }

    async fn send(&mut self, path: &str, body: Value) -> Value {
        let line = json!({ "id": 1, "method": "POST", "path": path, "body": body });
        self.requests.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let reply = json::parse(&self.replies.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(reply["status"], 200, "{reply}");
        reply["body"].clone()
    }

    /// Sends calls or a history, and executes what the server says until all calls have their outcomes.
    async fn run(&mut self, path: &str, body: Value, result: impl Fn(&str) -> RecordedResult) -> Value {
        let mut status = self.send(path, body).await;
        while status["status"] == "execute" {
            let executions = status["executions"].as_array().unwrap().clone();
            for execution in executions {
                let report = match result(execution["call"].as_str().unwrap()) {
                    RecordedResult::Output(output) => json!({ "output": output }),
                    RecordedResult::Error { message, kind } => {
                        json!({ "error": { "message": message, "kind": kind } })
                    }
                };
                status =
                    self.send(&format!("/v1/executions/{}", execution["id"].as_str().unwrap()), report).await;
            }
        }
        assert_eq!(status["status"], "completed", "{status}");
        status
    }

    async fn stop(self) {
        drop((self.requests, self.replies));
        self.serving.await.unwrap().unwrap();
    }
}

/// The case for a host: each call has an id of its own, for equal calls of one id are one call; and each has a result.
fn for_hosts(mut case: Case) -> Case {
    let mut counts = BTreeMap::new();
    for record in &mut case.records {
        let count: &mut u32 = counts.entry(record.call.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            record.call.id = format!("{} {count}", record.call.id);
        }
        record.recorded.get_or_insert(RecordedResult::Output(Value::Null));
    }
    case
}

fn engine(case: &Case) -> Option<EngineBuilder> {
    let tools: Vec<ToolDescriptor> = json::from_value(case.tools.clone()).unwrap();
    let rules = load_text(&case.rules).ok()?;
    Some(Engine::builder(rules).keys(fixtures::keys()).tools(tools).clock(Noon))
}

async fn through_server(case: &Case, engine: EngineBuilder) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start(engine, folder.path());
    let mut outcomes = String::new();
    for round in case.rounds() {
        let calls = round.iter().map(|record| {
            let call = &record.call;
            json!({ "id": call.id, "tool": call.tool, "server": call.server, "input": call.input })
        });
        let mut body = json!({ "session": "s", "calls": calls.collect::<Vec<_>>() });
        let members = body.as_object_mut().unwrap();
        let task = round.iter().filter_map(CallRecord::task).next_back();
        if let Some(task) = task.as_ref().and_then(|task| task.document()) {
            members.insert("task", task["turns"].clone());
        }
        if !round[0].call.context.is_null() {
            members.insert("context", round[0].call.context.clone());
        }
        let result = |id: &str| {
            let record = case.records.iter().find(|record| record.call.id == id).unwrap();
            record.recorded.clone().unwrap()
        };
        outcomes += &printed_outcomes(&host.run("/v1/calls", body, result).await["outcomes"]);
    }
    host.stop().await;
    outcomes
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn each_case_has_the_same_outcomes_at_the_server() {
    let runtime = runtime();
    let mut without_server = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(fixtures::root().join("tests/cases")).unwrap() {
        let path = entry.unwrap().path();
        let case = for_hosts(Case::read(&path));
        if !case.layers.is_empty() {
            without_server.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            continue;
        }
        // Rules with errors have no engine.
        let (Some(own), Some(of_server)) = (engine(&case), engine(&case)) else { continue };
        let expected: String =
            play(&mut own.build().session(), &case.records).iter().map(cases::print).collect();
        assert_eq!(runtime.block_on(through_server(&case, of_server)), expected, "{}", path.display());
        compared += 1;
    }
    assert_eq!(without_server, WITHOUT_SERVER);
    assert!(compared > 50, "only {compared} cases");
}

#[test]
fn each_history_becomes_the_same_at_the_server() {
    let runtime = runtime();
    for rules in history_corpus::RULES {
        for (dialect, name, document) in dialects::corpus() {
            let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
            let (own, of_server) = runtime.block_on(async {
                let own = history_corpus::engine(rules).store(store(folders[0].path())).build();
                let mut session = own.session().with_name("s").with_call_recording();
                let own = history_corpus::run(&mut session, dialect, &document).await;
                let mut host = Host::start(history_corpus::engine(rules), folders[1].path());
                let body = json!({ "session": "s", "messages": document });
                let result = |_: &str| RecordedResult::Output(history_corpus::output());
                let status = host.run(&format!("/v1/histories/{}/round", dialect.name()), body, result).await;
                host.stop().await;
                (own, history_corpus::printed(&status["outcomes"], &status["messages"]))
            });
            assert_eq!(of_server, own, "{dialect} {name} under {rules}");
        }
    }
}
