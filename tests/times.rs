//! The time of decisions: when it is read, and what a failing clock means.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callgate::json::json;
use callgate::{Clock, Engine, load_text};
use jiff::{SignedDuration, Timestamp};

use crate::fixtures::{Tool, call, kind_and_code, noon, run};

/// A clock that is a second later each time, or fails.
#[derive(Clone)]
struct StrangeClock {
    reads: Arc<AtomicU32>,
    fails: bool,
}

impl Clock for StrangeClock {
    fn now(&self) -> Timestamp {
        assert!(!self.fails, "the clock fails");
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        noon().now() + SignedDuration::from_secs(reads.into())
    }
}

fn reason(rules: &str, fails: bool) -> (String, String) {
    let clock = StrangeClock { reads: Arc::default(), fails };
    let engine = Engine::builder(load_text(rules).unwrap()).clock(clock).build();
    let decided =
        engine.decide(&call("pay", json!({ "at": "2026-01-01T11:00:00Z" })), &Default::default()).reason();
    (decided.code, decided.message)
}

#[test]
fn all_policies_of_a_decision_see_the_same_time() {
    let rules = r#"
let: { seen: now, is_later: { path: $.now, ne: { expr: to_text(seen) } } }
policies:
  - { id: a, match: { tool: pay, where: now != seen || now < seen || is_later }, deny: { message: "two times" } }
  - { id: b, match: { tool: pay, where: now == seen }, deny: { message: "{{ now }} {{ $.now }} {{ seen }}" } }
"#;
    let (code, message) = reason(rules, false);
    assert_eq!(code, "denied");
    let times: Vec<&str> = message.split(' ').collect();
    assert!(times.len() == 3 && times.iter().all(|time| *time == times[0]), "{message}");
}

#[test]
fn failing_clock_makes_conditions_undecided() {
    for condition in [
        "{ path: $.input.at, within: 1s }",
        "{ path: $.input.at, older_than: 10000d }",
        "{ path: $.now, during: { days: [], zone: UTC } }",
        "now < time(input.at)",
        "{ expr: now - time(input.at), gt: { expr: duration(\"10000d\") } }",
        "{ path: $.now, exists: false }",
        "session.facts.x == now",
    ] {
        let condition = condition.replace("days: [], ", "days: [mon], ");
        let rules = format!("policies: [{{ id: p, match: {{ tool: pay, where: '{}' }}, deny: {{}} }}]", "x");
        let rules = rules.replace(
            "'x'",
            &if condition.starts_with('{') { condition.clone() } else { format!("'{condition}'") },
        );
        assert_eq!(reason(&rules, true).0, "undecided", "{condition}");
    }
}

#[test]
fn time_is_read_anew_for_the_end_of_a_call() {
    let rules = "
policies:
  - { id: began, match: pay, fact: { name: ended, value: now } }
";
    let clock = noon();
    let engine = Engine::builder(load_text(rules).unwrap()).clock(clock.clone()).build();
    let tool = Tool::scripted(&clock, [(Duration::from_secs(90), Ok(json!(1)))]);
    let mut session = engine.session();
    let outcomes = run(&clock, &mut session, &tool, &[call("pay", json!({}))]);
    assert_eq!(kind_and_code(&outcomes[0]).0, "executed");
    assert_eq!(session.state().document()["facts"]["ended"], "2026-01-01T12:01:30Z");
}
