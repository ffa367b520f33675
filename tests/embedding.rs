//! Guarantees for hosts that embed the engine.

use std::sync::{Arc, Mutex};

use callgate::call::Outcome;
use callgate::json::json;
use callgate::{Engine, Observer, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse, engine};

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        tokio::task::yield_now().await;
        Ok(call.input.clone().into())
    }
}

#[derive(Clone, Default)]
struct OutcomeLog(Arc<Mutex<Vec<OutcomeKind>>>);

impl Observer for OutcomeLog {
    fn on_outcome(&self, outcome: &Outcome) {
        self.0.lock().unwrap().push(outcome.outcome);
    }
}

const RULES: &str = "policies: [ { id: no, match: forbidden, deny: {} } ]";

/// Servers run each agent in its own task.
#[tokio::test]
async fn sessions_of_one_engine_run_in_separate_tasks() {
    let seen = OutcomeLog::default();
    let engine = Engine::builder(engine::load_text(RULES).unwrap()).observer(seen.clone()).build();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut session = engine.session().with_name(format!("s{number}"));
                let calls = ["allowed", "forbidden", "allowed"];
                let calls = calls.map(|tool| ToolCall::new("", tool, json!({ "number": number })));
                let outcomes = session.execute_round(calls.into(), &Echo).await;
                (number, outcomes, session.state().document()["calls"].clone())
            })
        })
        .collect();
    for task in tasks {
        let (number, outcomes, counted) = task.await.unwrap();
        let kinds: Vec<OutcomeKind> = outcomes.iter().map(|outcome| outcome.outcome).collect();
        assert_eq!(kinds, [OutcomeKind::Executed, OutcomeKind::Denied, OutcomeKind::Executed]);
        assert_eq!(outcomes[2].output, Some(json!({ "number": number })));
        assert_eq!(outcomes[1].session, Some(format!("s{number}")));
        assert_eq!(counted, json!({ "allowed": 2 }), "sessions share nothing");
    }
    assert_eq!(seen.0.lock().unwrap().len(), 150, "observers see every outcome");
}

#[test]
fn invalid_rules_report_all_errors() {
    let error = Engine::from_text("policies: [ { id: a, dney: {} }, { id: a, allow: {} } ]").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("did you mean `deny`?") && text.contains("duplicate id `a`"), "{text}");
    assert_eq!(error.build_result().diagnostics.len(), 2);
}

#[test]
fn outcomes_and_calls_round_trip_through_json() {
    let engine = Engine::from_text(RULES).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let call =
        ToolCall::new("c1", "forbidden", json!({ "n": 1.50, "big": 12345678901234567890123_u128 as f64 }));
    let read: ToolCall = callgate::json::from_str(&callgate::json::to_string(&call).unwrap()).unwrap();
    assert_eq!(read, call);
    let outcome = runtime.block_on(engine.session().execute(call, &Echo));
    let read: Outcome = callgate::json::from_str(&callgate::json::to_string(&outcome).unwrap()).unwrap();
    assert_eq!(read, outcome);
}

/// Never returns.
struct HangingTool;

impl ToolExecutor for HangingTool {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn cancelled_call_is_counted_and_leaves_the_session_usable() {
    let rules = "policies: [ { id: once, match: { tool: pay, where: { path: $.session.calls.pay, gte: 1 } }, deny: {} } ]";
    let mut session = Engine::from_text(rules).unwrap().session();
    {
        let mut call = std::pin::pin!(session.execute(ToolCall::new("c1", "pay", json!({})), &HangingTool));
        tokio::select! {
            biased;
            _ = &mut call => panic!("the tool never answers"),
            () = tokio::task::yield_now() => {}
        }
    }
    let again = session.execute(ToolCall::new("c2", "pay", json!({})), &Echo).await;
    assert_eq!(again.outcome, OutcomeKind::Denied, "the tool may have run");
    let other = session.execute(ToolCall::new("c3", "read", json!({})), &Echo).await;
    assert_eq!(other.outcome, OutcomeKind::Executed);
}

/// Deeply nested arrays.
fn nested(depth: usize) -> callgate::json::Value {
    (0..depth).fold(json!("ana@example.com"), |value, _| json!([value]))
}

#[tokio::test]
async fn value_nested_too_deeply_to_search_is_withheld() {
    struct Deep;
    impl ToolExecutor for Deep {
        async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
            Ok(nested(300).into())
        }
    }
    let rules = "policies: [ { id: hide, match: '*', redact: { detect: email } } ]";
    let mut session = Engine::from_text(rules).unwrap().session();
    let outcome = session.execute(ToolCall::new("c1", "t", json!({ "x": nested(300) })), &Deep).await;
    assert_eq!(outcome.outcome, OutcomeKind::Failed);
    assert_eq!(outcome.reason.code, "output_withheld");
    assert_eq!((outcome.output, outcome.input), (None, json!("[withheld]")));
}

#[test]
fn schema_file_is_part_of_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("rules.yaml", "policies: [ { id: fits, match: pay, validate: { schema: { file: pay.json } } } ]");
    let call = ToolCall::new("c1", "pay", json!({ "amount": 500 }));
    let mut seen = Vec::new();
    for maximum in [100, 1000] {
        write("pay.json", &json!({ "properties": { "amount": { "maximum": maximum } } }).to_string());
        let engine = Engine::from_paths(&[directory.path().into()]).unwrap();
        let effect = engine.decide(&call, &callgate::SessionState::default()).effect();
        seen.push((effect, engine.revision()));
    }
    assert_eq!((seen[0].0, seen[1].0), (callgate::Effect::Invalid, callgate::Effect::Run));
    assert_ne!(seen[0].1, seen[1].1, "the revision is the digest of everything compiled");
}

/// A revision tells rules apart, whatever is different in them, and not how they are written.
#[test]
fn revisions_differ_with_the_rules_and_not_with_their_formatting() {
    let revision = |text: &str| Engine::from_text(text).unwrap().revision();
    let base = "policies: [ { id: a, match: pay, deny: {} }, { id: b, match: read, mode: off, deny: {} } ]";
    let formatted = "# Payments\npolicies:\n  - match: pay\n    id: a\n    deny: {}\n  - id: b\n    mode: off\n    match: read\n    deny: {}\n";
    assert_eq!(revision(base), revision(formatted));
    let changed = [
        base.to_owned(),
        base.replace("id: a", "id: c"),
        base.replace("deny: {} }, ", "deny: {}, description: Why }, "),
        base.replace("off, deny: {} }", "off, deny: {}, description: Why }"),
        base.replace("mode: off", "mode: shadow"),
        base.replace("match: read", "match: list"),
        base.replace("policies: [ ", "policies: [ { id: z, match: x, deny: {} }, "),
        "policies: [ { id: b, match: read, mode: off, deny: {} }, { id: a, match: pay, deny: {} } ]"
            .to_owned(),
        format!("{{ defaults: {{ unmatched: deny }}, {base} }}"),
        format!("{{ groups: {{ readers: [read] }}, {base} }}"),
        format!("{{ reload: {{ widening: confirm }}, {base} }}"),
    ];
    let revisions: std::collections::BTreeSet<String> = changed.iter().map(|text| revision(text)).collect();
    assert_eq!(revisions.len(), changed.len());
}
