//! What hosts rely on when they embed the engine.

use std::sync::{Arc, Mutex};

use callgate::call::Outcome;
use callgate::json::json;
use callgate::{Engine, Observer, OutcomeKind, ToolAnswer, ToolCall, ToolError, ToolExecutor, engine};

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        tokio::task::yield_now().await;
        Ok(call.input.clone().into())
    }
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<OutcomeKind>>>);

impl Observer for Seen {
    fn on_outcome(&self, outcome: &Outcome) {
        self.0.lock().unwrap().push(outcome.outcome);
    }
}

const RULES: &str = "policies: [ { id: no, match: forbidden, deny: {} } ]";

/// Servers put each agent run on a task of its own.
#[tokio::test]
async fn sessions_of_one_engine_run_on_tasks_of_their_own() {
    let seen = Seen::default();
    let engine = Engine::builder(engine::load_text(RULES).unwrap()).observer(seen.clone()).build();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut session = engine.session().named(format!("s{number}"));
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
fn rules_that_do_not_load_say_all_that_is_wrong() {
    let error = Engine::from_text("policies: [ { id: a, dney: {} }, { id: a, allow: {} } ]").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("did you mean `deny`?") && text.contains("the id `a` is taken"), "{text}");
    assert_eq!(error.built().diagnostics.len(), 2);
}

#[test]
fn outcomes_and_calls_are_read_as_they_are_written() {
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

/// Never answers.
struct Stuck;

impl ToolExecutor for Stuck {
    async fn execute(&self, _: &ToolCall) -> Result<ToolAnswer, ToolError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_counted_and_leaves_the_session_usable() {
    let rules = "policies: [ { id: once, match: { tool: pay, where: { path: $.session.calls.pay, gte: 1 } }, deny: {} } ]";
    let mut session = Engine::from_text(rules).unwrap().session();
    {
        let mut call = std::pin::pin!(session.execute(ToolCall::new("c1", "pay", json!({})), &Stuck));
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

/// An array in an array in an array …
fn nested(depth: usize) -> callgate::json::Value {
    (0..depth).fold(json!("ana@example.com"), |value, _| json!([value]))
}

#[tokio::test]
async fn what_is_nested_too_deeply_to_be_searched_is_withheld() {
    struct Deep;
    impl ToolExecutor for Deep {
        async fn execute(&self, _: &ToolCall) -> Result<ToolAnswer, ToolError> {
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
fn a_schema_beside_the_rules_is_part_of_them() {
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
    assert_ne!(seen[0].1, seen[1].1, "the revision is the digest of all that was compiled");
}
