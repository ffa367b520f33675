//! Metrics of an engine: what each counts, and the bounds of their labels.

use callgate::json::{Value, json};
use callgate::{Engine, ManualClock, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};
use callgate_telemetry::Metrics;
use jiff::{SignedDuration, Timestamp};

use super::value;

/// Tools of which `broken` fails, and all others return their arguments.
struct Tools;

impl ToolExecutor for Tools {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match call.tool.as_str() {
            "broken" => Err(ToolError::new("broken")),
            _ => Ok(call.input.clone().into()),
        }
    }
}

const RULES: &str = r#"
policies:
  - { id: no-rm, match: rm, deny: { code: forbidden } }
  - { id: no-rmdir, match: rmdir, mode: shadow, deny: {} }
  - { id: two, match: limited, rate_limit: { limit: 2, per: 1h } }
  - { id: keep, match: cached, cache: { ttl: 1h } }
  - { id: ask, match: pay, approval: { expires: 1h } }
"#;

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// The metrics after these calls, each with its server and its tool.
fn metrics_after(metrics: &Metrics, calls: &[(Option<&str>, &str)]) -> String {
    let rules = load_text(RULES).unwrap();
    let engine = Engine::builder(rules).clock(ManualClock::new(start())).observer(metrics.clone()).build();
    run(&engine, calls);
    metrics.render(start())
}

fn run(engine: &Engine, calls: &[(Option<&str>, &str)]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut session = engine.session();
    for (number, (server, tool)) in calls.iter().enumerate() {
        let mut call = ToolCall::new(format!("c{number}"), *tool, json!({}));
        call.server = server.map(str::to_owned);
        call.context = json!({ "principal": "ann" });
        runtime.block_on(session.execute(call, &Tools));
    }
}

#[test]
fn calls_are_counted_by_tool_outcome_and_policy() {
    let metrics = Metrics::new();
    metrics.add_tools("files", ["rm", "rmdir", "read"]);
    let calls = ["rm", "rm", "rmdir", "read"].map(|tool| (Some("files"), tool));
    let text = metrics_after(&metrics, &calls);
    for (series, expected) in [
        (r#"callgate_calls_total{server="files",tool="rm",outcome="denied"}"#, 2.0),
        (r#"callgate_calls_total{server="files",tool="read",outcome="executed"}"#, 1.0),
        (r#"callgate_calls_by_reason_total{policy="no-rm",code="forbidden",outcome="denied"}"#, 2.0),
        (r#"callgate_policy_verdicts_total{policy="no-rm",verdict="deny",mode="enforce"}"#, 2.0),
        (r#"callgate_policy_verdicts_total{policy="no-rmdir",verdict="deny",mode="shadow"}"#, 1.0),
        ("callgate_decision_duration_seconds_count", 4.0),
        (r#"callgate_call_duration_seconds_count{server="files",tool="read"}"#, 1.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
    let denied = r#"callgate_call_duration_seconds_count{server="files",tool="rm"}"#;
    assert_eq!(value(&text, denied), None, "a denied call has not reached its tool");
    assert!(!text.contains("ann"), "a principal is in the metrics:\n{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn limits_caches_and_failures_are_counted() {
    let tools = ["limited", "limited", "limited", "cached", "cached", "broken"];
    let text = metrics_after(&Metrics::new(), &tools.map(|tool| (None, tool)));
    for (series, expected) in [
        (r#"callgate_limit_refusals_total{policy="two",mode="enforce"}"#, 1.0),
        (r#"callgate_cache_hits_total{policy="keep"}"#, 1.0),
        (r#"callgate_calls_total{server="",tool="other",outcome="failed"}"#, 1.0),
        (r#"callgate_calls_total{server="",tool="cached",outcome="cached"}"#, 1.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}\n{text}");
    }
}

#[test]
fn pending_approvals_age_and_expire() {
    let metrics = Metrics::new();
    metrics_after(&metrics, &[(None, "pay")]);
    let series = |text: &str| {
        ["callgate_approvals_pending", "callgate_approvals_oldest_pending_age_seconds"]
            .map(|series| value(text, series).unwrap())
    };
    let after = |minutes| metrics.render(start() + SignedDuration::from_mins(minutes));
    assert_eq!(series(&after(10)), [1.0, 600.0]);
    assert_eq!(series(&after(60)), [0.0, 0.0]);
    assert_eq!(value(&after(60), "callgate_approvals_requested_total"), Some(1.0));
}

#[test]
fn the_state_of_the_rules_is_that_of_the_last_reload() {
    let metrics = Metrics::new();
    let engine =
        Engine::builder(load_text("policies: []").unwrap()).observer(metrics.for_bundle("gateway")).build();
    let before = engine.revision();
    engine.replace(load_text(RULES).unwrap());
    let text = metrics.render(start());
    let info = |revision: &str| {
        value(&text, &format!(r#"callgate_rules_info{{bundle="gateway",revision="{revision}"}}"#))
    };
    assert_eq!((info(&before), info(&engine.revision())), (None, Some(1.0)), "{text}");
    let applied = r#"callgate_rules_reloads_total{bundle="gateway",result="applied"}"#;
    assert_eq!(value(&text, applied), Some(1.0), "{text}");
    assert_eq!(value(&text, r#"callgate_rules_reload_accepted{bundle="gateway"}"#), Some(1.0), "{text}");
}

#[test]
fn invented_tools_share_one_label_and_leave_room_for_real_ones() {
    let metrics = Metrics::new();
    metrics.add_tools("files", ["rm"]);
    // Denied, or unknown to the server: a model can name anything.
    let invented: Vec<String> = (0..2_000).map(|number| format!("rm{number}")).collect();
    let deny_all = load_text("policies: [ { id: no-rm, match: 'rm*', deny: {} } ]").unwrap();
    let engine = Engine::builder(deny_all).observer(metrics.clone()).build();
    let calls: Vec<_> = invented.iter().map(|tool| (Some("files"), tool.as_str())).collect();
    run(&engine, &calls);
    run(&engine, &[(Some("files"), "rm"), (Some("files"), "read")]);
    let text = metrics.render(start());
    let count = |tool: &str, outcome: &str| {
        let labels = format!(r#"{{server="files",tool="{tool}",outcome="{outcome}"}}"#);
        value(&text, &format!("callgate_calls_total{labels}"))
    };
    assert_eq!(count("other", "denied"), Some(2_000.0));
    assert_eq!(count("rm", "denied"), Some(1.0));
    // It returned a result, so it exists.
    assert_eq!(count("read", "executed"), Some(1.0));
    assert_eq!(text.matches("\ncallgate_calls_total{").count(), 3, "{text}");
}

#[test]
fn a_server_that_executes_every_name_fills_only_its_share() {
    let metrics = Metrics::new();
    let engine = Engine::builder(load_text("policies: []").unwrap()).observer(metrics.clone()).build();
    let invented: Vec<String> = (0..1_000).map(|number| format!("tool{number}")).collect();
    let calls: Vec<_> = invented.iter().map(|tool| (Some("files"), tool.as_str())).collect();
    run(&engine, &calls);
    let text = metrics.render(start());
    assert_eq!(text.matches("\ncallgate_calls_total{").count(), 201);
    assert_eq!(
        value(&text, r#"callgate_calls_total{server="files",tool="other",outcome="executed"}"#),
        Some(800.0)
    );
}

#[test]
fn a_tool_name_cannot_forge_a_series() {
    let metrics = Metrics::new();
    let name = "x\",outcome=\"executed\"} 7\ncallgate_calls_total{tool=\"forged\\";
    metrics.add_tools("files", [name]);
    let text = metrics_after(&metrics, &[(Some("files"), name)]);
    assert!(!text.lines().any(|line| line.starts_with("callgate_calls_total{tool=")), "{text}");
    let escaped = name.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
    let series = format!(r#"callgate_calls_total{{server="files",tool="{escaped}",outcome="executed"}}"#);
    assert_eq!(value(&text, &series), Some(1.0), "{text}");
}

#[test]
fn arguments_and_results_are_not_in_metrics() {
    let metrics = Metrics::new();
    let rules =
        load_text("policies: [ { id: ask, match: '*', approval: { message: '{{ input.secret }}' } } ]")
            .unwrap();
    let engine = Engine::builder(rules).observer(metrics.clone()).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let input: Value = json!({ "secret": "hunter2" });
    runtime.block_on(engine.session().execute(ToolCall::new("c1", "pay", input), &Tools));
    assert!(!metrics.render(start()).contains("hunter2"));
}
