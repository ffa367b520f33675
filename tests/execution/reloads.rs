//! Rules that change while a call waits or is inside of a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::host::Clock;
use callgate::json::json;
use callgate::{Engine, OutcomeKind, ToolAnswer, ToolCall, ToolError, ToolExecutor, engine};

use super::{ends, engine_at, with_script};
use crate::workshop::{Tool, call, ended};

#[test]
fn i9_a_reload_changes_nothing_for_a_call_that_waits_or_is_inside_of_a_script() {
    struct Reloading<'e>(&'e Engine, AtomicUsize);
    impl ToolExecutor for Reloading<'_> {
        async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
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
    let outcome = clock.drive(engine.session().execute(call("search", json!({ "n": 1 })), &tool));
    assert_eq!((outcome.outcome, &outcome.revision), (OutcomeKind::Executed, &revision));
    assert!(outcome.output.unwrap().to_string().matches("[redacted]").count() == 2);
    let next = clock.drive(engine.session().execute(call("search", json!({ "n": 1 })), &tool));
    assert_eq!((ended(&next), tool.1.load(Ordering::SeqCst)), (("denied", "denied"), 2));

    // One that waits for a limit while the rules are exchanged.
    let waits = "policies: [ { id: p, match: search, rate_limit: { limit: 1, per: 1m, on_exceed: wait, max_wait: 2m } }, { id: hide, match: search, redact: { patterns: [S3CRET] } } ]";
    let (engine, clock) = engine_at(waits);
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!("S3CRET")))]);
    let mut session = engine.session();
    clock.drive(session.execute(call("search", json!({})), &tool));
    let exchange = async {
        clock.sleep(Duration::from_secs(1)).await;
        engine.replace(engine::load_text("policies: [ { id: no, match: search, deny: {} } ]").unwrap());
    };
    let (outcome, ()) =
        clock.drive(async { tokio::join!(session.execute(call("search", json!({})), &tool), exchange) });
    assert_eq!((outcome.outcome, outcome.output), (OutcomeKind::Executed, Some(json!("[redacted]"))));
    // What it took counts under the rules that came meanwhile, too.
    engine.replace(
        engine::load_text("policies: [ { id: p, match: search, rate_limit: { limit: 1, per: 1m } } ]")
            .unwrap(),
    );
    assert_eq!(ends(&clock, &mut session, &tool, &[call("search", json!({}))]), ["denied"]);
}
