//! Reloads while a call waits or runs inside a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::host::Clock;
use callgate::json::json;
use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse, engine};

use super::{engine_at, outcome_kinds, with_script};
use crate::fixtures::{Tool, call, kind_and_code};

#[test]
fn i9_reload_does_not_affect_waiting_or_scripted_calls() {
    struct Reloading<'e>(&'e Engine, AtomicUsize);
    impl ToolExecutor for Reloading<'_> {
        async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
            self.0.replace(engine::load_text("policies: [ { id: no, match: search, deny: {} } ]").unwrap());
            self.1.fetch_add(1, Ordering::SeqCst);
            Ok(json!({ "secret": "S3CRET", "of": call.input }).into())
        }
    }
    let (engine, clock) = with_script(
        "let a = next(input); input.n += 1; let b = next(input); [a, b]",
        "  - { id: hide, match: search, redact: { patterns: [S3CRET] } }
  - { id: most, match: { where: { path: $.input.n, gt: 2 } }, deny: { code: most } }
  - { id: slow, match: search, rate_limit: { limit: 2, per: 1m, burst: 1, key: $.input.n, on_exceed: wait, max_wait: 1h } }",
    );
    let revision = engine.revision();
    let tool = Reloading(&engine, AtomicUsize::new(0));
    let outcome = clock.block_on(engine.session().execute(call("search", json!({ "n": 1 })), &tool));
    assert_eq!((outcome.outcome, &outcome.revision), (OutcomeKind::Executed, &revision));
    assert!(outcome.output.unwrap().to_string().matches("[redacted]").count() == 2);
    let next = clock.block_on(engine.session().execute(call("search", json!({ "n": 1 })), &tool));
    assert_eq!((kind_and_code(&next), tool.1.load(Ordering::SeqCst)), (("denied", "denied"), 2));

    // A call waits for a limit during the reload.
    let waits = "policies: [ { id: p, match: search, rate_limit: { limit: 1, per: 1m, on_exceed: wait, max_wait: 2m } }, { id: hide, match: search, redact: { patterns: [S3CRET] } } ]";
    let (engine, clock) = engine_at(waits);
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!("S3CRET")))]);
    let mut session = engine.session();
    clock.block_on(session.execute(call("search", json!({})), &tool));
    let exchange = async {
        clock.sleep(Duration::from_secs(1)).await;
        engine.replace(engine::load_text("policies: [ { id: no, match: search, deny: {} } ]").unwrap());
    };
    let (outcome, ()) =
        clock.block_on(async { tokio::join!(session.execute(call("search", json!({})), &tool), exchange) });
    assert_eq!((outcome.outcome, outcome.output), (OutcomeKind::Executed, Some(json!("[redacted]"))));
    // Its usage also counts under the new rules.
    engine.replace(
        engine::load_text("policies: [ { id: p, match: search, rate_limit: { limit: 1, per: 1m } } ]")
            .unwrap(),
    );
    assert_eq!(outcome_kinds(&clock, &mut session, &tool, &[call("search", json!({}))]), ["denied"]);
}
