//! Explanations of decisions: each file under `tests/explaining/` contains rules and the calls of a session; its snapshot explains the
//! last call.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use callgate::call::{CallRecord, RecordedResult};
use callgate::diagnostic::SourceMap;
use callgate::explain::{Explanation, MatchResult, WhyNotReason, render};
use callgate::host::ManualClock;
use callgate::json::{Value, json};
use callgate::{
    Engine, Outcome, SessionState, ToolCall, ToolError, ToolExecutor, ToolResponse, engine, policy,
};

use crate::fixtures::keys;
use crate::recorded_calls::project;

/// A tool that returns the recorded result.
struct Recording(Option<RecordedResult>);

impl ToolExecutor for Recording {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.0.clone() {
            Some(RecordedResult::Output(output)) => Ok(output.into()),
            Some(RecordedResult::Error { message, kind }) => Err(ToolError { message, kind }),
            None => Ok(ToolResponse { dry: true, ..Value::Null.into() }),
        }
    }
}

/// A case of the corpus, explained.
struct Explained {
    outcome: Outcome,
    explanation: Explanation,
    sources: SourceMap,
}

fn explain(rules: &str, session: &[Value]) -> Explained {
    let mut built = policy::build_texts([("rules.yaml", rules)]);
    let chains = built.policies.take().unwrap_or_else(|| {
        panic!("{}", callgate::diagnostic::render::text(&built.diagnostics, &built.sources, false))
    });
    let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
    let engine = Engine::builder(Arc::new(chains)).clock(clock.clone()).build();
    let mut running = engine.session();
    let mut explained = None;
    for (number, call) in (1..).zip(session) {
        let mut record = CallRecord::parse(&call.to_string()).unwrap();
        record.call.id = format!("c{number}");
        if let Some(task) = record.task() {
            running.set_task(task);
        }
        let tools = Recording(record.recorded);
        explained = Some(clock.block_on(running.explain(record.call, &tools, &built.sources)));
    }
    let (outcome, explanation) = explained.unwrap();
    Explained { outcome, explanation: explanation.unwrap(), sources: built.sources }
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/explaining");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let text = std::fs::read_to_string(project("schemas/explanation.schema.json")).unwrap();
    let schema = serde_json::from_str(&text).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    jsonschema::draft202012::new(&schema).unwrap()
});

fn schema_errors(document: &str) -> Vec<String> {
    let document = serde_json::from_str(document).unwrap();
    SCHEMA.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn each_explanation_matches_its_snapshot() {
    let found = RefCell::new(Vec::new());
    settings().bind(|| {
        insta::glob!("explaining/*.yaml", |path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let file: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let session = file["session"].as_array().unwrap();
            let Explained { outcome, explanation, sources } =
                explain(file["rules"].as_str().unwrap(), session);
            let mut report = render::text(&explanation, Some(&sources), false, false);
            for policy in file["why_not"].as_array().unwrap() {
                let why_not = explanation.why_not(policy.as_str().unwrap()).unwrap();
                report.push_str(&format!("\n--why-not {}\n", policy.as_str().unwrap()));
                report.push_str(&render::why_not(&why_not, Some(&sources), false));
                found.borrow_mut().extend(schema_errors(&render::json(&why_not).unwrap()));
            }
            insta::assert_snapshot!(name, report);
            let document = render::json(&explanation).unwrap();
            found
                .borrow_mut()
                .extend(schema_errors(&document).into_iter().map(|error| format!("{name}: {error}")));
            if file.get("json").is_some() {
                insta::assert_snapshot!(format!("{name}.json"), document);
            }
            if json!([explanation.outcome, explanation.reason]) != json!([outcome.outcome, outcome.reason]) {
                found.borrow_mut().push(format!("{name}: the explanation and the outcome differ"));
            }
        });
    });
    assert_eq!(found.take(), Vec::<String>::new());
}

#[test]
fn schema_rejects_invalid_explanations() {
    let Explained { explanation, .. } =
        explain("policies: [{ id: a, match: t, deny: {} }]", &[json!({ "tool": "t", "input": {} })]);
    let whole = callgate::json::to_value(&explanation).unwrap();
    assert_eq!(schema_errors(&whole.to_string()), Vec::<String>::new());
    for (member, value) in
        [("version", json!(2)), ("decision", json!("maybe")), ("steps", json!([{}])), ("new", json!(1))]
    {
        let mut broken = whole.clone();
        broken[member] = value;
        assert!(!schema_errors(&broken.to_string()).is_empty(), "{member}");
    }
}

#[test]
fn explains_a_decision_without_executing_the_call() {
    let rules = "policies:\n  - { id: large, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} }\n  \
                 - { id: few, match: pay, rate_limit: { limit: 1, per: 1h } }";
    let built = policy::build_texts([("rules.yaml", rules)]);
    let engine = Engine::from_text(rules).unwrap();
    let state = SessionState::default();
    let explain = |amount: i64| {
        let call = ToolCall::new("c1", "pay", json!({ "amount": amount }));
        engine.explain(&call, &state, &built.sources).unwrap()
    };
    // Explaining does not acquire from the limit, however often it runs.
    for _ in 0..3 {
        let explanation = explain(50);
        assert_eq!((explanation.decision, explanation.outcome), ("run", None));
        assert!(
            explanation
                .steps_of("few")
                .all(|step| step.limit.is_none() && step.heard == MatchResult::Matched)
        );
    }
    let explanation = explain(250);
    assert_eq!(explanation.why, "`large` denies: `$.input.amount` is 250: `gt: 100`");
    assert_eq!(explanation.why_not("large").unwrap().because, WhyNotReason::ItDecided);
    assert_eq!(explanation.at.as_ref().unwrap().line, 2);
    assert!(explanation.why_not("lage").is_none());
}

#[test]
fn steps_name_their_layer() {
    let engine = Engine::from_text("policies: [{ id: bundle, match: pay, allow: {} }]").unwrap();
    let prompt = engine::load_text("policies: [{ id: prompt, match: pay, deny: {} }]").unwrap();
    let mut session = engine.session().with_layer(prompt);
    let clock = ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap());
    let call = ToolCall::new("c1", "pay", json!({}));
    let (_, explanation) = clock.block_on(session.explain(call, &Recording(None), &SourceMap::default()));
    let explanation = explanation.unwrap();
    let layers: Vec<_> = explanation.steps.iter().map(|step| (step.policy.as_str(), step.layer)).collect();
    assert_eq!(layers, [("bundle", 0), ("prompt", 1)]);
    assert!(explanation.why_not("prompt").unwrap().words.ends_with("(it is one of the prompt's policies)"));
    assert_eq!(explanation.why_not("bundle").unwrap().because, WhyNotReason::Stricter);
}

#[test]
fn limit_is_explained_without_remaining_count_if_store_has_none() {
    let directory = tempfile::tempdir().unwrap();
    let store = callgate_sqlite::SqliteStore::open(&directory.path().join("state.db")).unwrap();
    let chains =
        engine::load_text("policies: [{ id: few, match: pay, rate_limit: { limit: 2, per: 1h } }]").unwrap();
    let engine = Engine::builder(chains).keys(keys()).store(Arc::new(store)).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let call = ToolCall::new("c1", "pay", json!({}));
    let mut session = engine.session();
    let (_, explanation) = runtime.block_on(session.explain(call, &Recording(None), &SourceMap::default()));
    let explanation = explanation.unwrap();
    let step = explanation.steps_of("few").next().unwrap();
    assert_eq!(step.words, "acquires 1 of `2 per 1h`");
    assert!(step.limit.as_ref().unwrap().left.is_none());
}
