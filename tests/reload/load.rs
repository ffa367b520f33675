//! I9 under load: during continuous reloads, every call is decided under exactly one revision.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use callgate::json::json;
use callgate::reload::{ReloadResult, Reloader};
use callgate::{Engine, Outcome, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};

use super::TestDir;

/// A bundle of two files whose policies all write their version into the outcome.
fn bundle(version: &str) -> [(String, String); 2] {
    let before = format!(
        "policies:
  - {{ id: before, match: '*', transform: {{ input: [ {{ path: $.input.before, set: {version} }} ] }} }}
  - {{ id: refuse, match: refused, deny: {{ message: '{version} {{{{ input.before }}}}' }} }}
  - {{ id: answer, match: answered, respond: {{ output: {{ answer: {version} }} }} }}
"
    );
    let after = format!(
        "policies:
  - {{ id: after, match: '*', transform: {{ output: [ {{ path: $.output.after, set: {version} }} ] }} }}
  - {{ id: record, match: {{ where: [ {{ path: $.input.before, eq: {version} }} ] }}, audit: {{}} }}
"
    );
    [("before.yaml".to_owned(), before), ("after.yaml".to_owned(), after)]
}

const RELOADS: usize = 150;
const WORKERS: usize = 3;

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        // Allow a reload between gate and settle.
        tokio::task::yield_now().await;
        thread::yield_now();
        Ok(json!({ "ran": call.input["before"] }).into())
    }
}

/// The version of an outcome, which must be the same everywhere in it.
fn version(outcome: &Outcome, versions: &HashMap<String, String>) -> String {
    let version = versions.get(&outcome.revision).unwrap_or_else(|| panic!("unknown revision: {outcome:?}"));
    assert_eq!(outcome.input["before"], json!(version), "{outcome:?}");
    assert_eq!(outcome.audit.len(), 1, "{outcome:?}");
    match outcome.outcome {
        OutcomeKind::Denied => assert_eq!(outcome.reason.message, format!("{version} {version}")),
        OutcomeKind::Answered => {
            assert_eq!(outcome.output, Some(json!({ "answer": version, "after": version })));
        }
        OutcomeKind::Executed => {
            assert_eq!(outcome.output, Some(json!({ "ran": version, "after": version })));
        }
        other => panic!("{other:?}"),
    }
    version.clone()
}

/// Executes calls and rounds until the reloads are over. Increments `saw_all` once it has seen each version.
fn work(engine: &Engine, versions: &HashMap<String, String>, over: &AtomicBool, saw_all: &AtomicUsize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut session = engine.session();
    let mut seen = HashSet::new();
    for number in 0.. {
        let call = |tool: &str| ToolCall::new(format!("{tool}-{number}"), tool, json!({}));
        let round = vec![call("executed"), call("refused"), call("answered"), call("executed")];
        let ids: Vec<String> = round.iter().map(|call| call.id.clone()).collect();
        let mut outcomes = runtime.block_on(session.execute_round(round, &Echo));
        assert_eq!(
            outcomes.iter().map(|outcome| &outcome.id).collect::<Vec<_>>(),
            ids.iter().collect::<Vec<_>>()
        );
        assert!(
            outcomes.iter().all(|outcome| outcome.revision == outcomes[0].revision),
            "a round has one revision"
        );
        outcomes.push(runtime.block_on(session.execute(call("executed"), &Echo)));
        for outcome in &outcomes {
            if seen.insert(version(outcome, versions)) && seen.len() == versions.len() {
                saw_all.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Sessions keep their calls, so long ones get slow.
        if number % 100 == 0 {
            session = engine.session();
        }
        if over.load(Ordering::Acquire) {
            return;
        }
    }
}

#[test]
fn i9_continuous_reloads_lose_no_call_and_mix_no_revisions() {
    let dir = TestDir::new(&[]);
    let mut versions = HashMap::new();
    for version in ["A", "B"] {
        for (file, text) in bundle(version) {
            dir.write(&format!("{version}/{file}"), &text);
        }
        versions.insert(dir.engine(&[version]).revision(), version.to_owned());
    }
    dir.link("current", "A");
    let engine = dir.engine(&["current"]);
    let mut reloader = Reloader::new(engine.clone(), dir.paths(&["current"]));
    let (over, saw_all) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(&engine, &versions, &over, &saw_all));
        }
        let enough = |reloads| reloads >= RELOADS && saw_all.load(Ordering::Relaxed) == WORKERS;
        let reloads = (0..100 * RELOADS).take_while(|reloads| !enough(*reloads));
        for number in reloads {
            dir.link("current", if number % 2 == 0 { "B" } else { "A" });
            assert_eq!(reloader.reload(), ReloadResult::Applied);
        }
        over.store(true, Ordering::Release);
    });
    assert_eq!(saw_all.into_inner(), WORKERS, "each worker saw each version");
}
