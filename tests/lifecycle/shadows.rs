//! Shadow mode of run policies: their would-be effects are reported, and nothing changes.

use std::sync::{Arc, Mutex};

use callgate::call::{Outcome, PolicyTrace, RunShadowEffect};
use callgate::host::{Observer, StoreError, StoreFuture};
use callgate::json::json;
use callgate::lifecycle::{Chunk, ModelConfig, Usage};
use callgate::{Engine, Session};

use super::{finished, tool};
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, call, noon, rules};

#[derive(Clone, Default)]
struct ShadowLog(Arc<Mutex<Vec<String>>>);

impl Observer for ShadowLog {
    fn on_outcome(&self, _: &Outcome) {}
    fn on_run_shadow(&self, request_id: &str, shadow: &RunShadowEffect) {
        let RunShadowEffect { id, kind, verdict, reason, .. } = shadow;
        let said = reason.as_ref().map(|reason| format!(": {} {}", reason.code, reason.message));
        let line = format!("{request_id} {kind} {id} {verdict:?}{}", said.unwrap_or_default());
        self.0.lock().unwrap().push(line);
    }
}

impl ShadowLog {
    /// The reports, without the run ids, which are unique.
    fn reports(&self, session: &Session) -> Vec<String> {
        let prefix = format!("{} ", session.run().request_id);
        let told = std::mem::take(&mut *self.0.lock().unwrap());
        told.iter().map(|line| line.strip_prefix(&prefix).expect("a report of this run").to_owned()).collect()
    }
}

fn observed_engine(text: &str) -> (Engine, ShadowLog) {
    let watching = ShadowLog::default();
    (rules(text).clock(noon()).observer(watching.clone()).build(), watching)
}

const RULES: &str = "policies:
  - { id: style, mode: shadow, model: { system_prompts: { append: 'Be short.' }, temperature: { max: 0.5 }, tools: { hide: pay } } }
  - { id: cold, mode: shadow, model: { temperature: { max: 2 } } }
  - { id: few, mode: shadow, budget: { iterations: 1, message: 'enough for {{ context.principal }}' } }
  - { id: little, mode: shadow, budget: { tokens: 10, on_exceed: deny, per: principal } }
  - { id: long, mode: shadow, match: { where: [ { path: $.session.chunkIndex, gte: 2 } ] }, halt: { message: too long } }
  - { id: addresses, mode: shadow, stream: { redact: [email] } }
  - { id: calm, mode: shadow, stream: { replace: [ { pattern: never, with: ever } ] } }";

/// A run with three model calls; returns its output.
fn run(session: &mut Session) -> (Vec<ModelConfig>, Vec<Chunk>) {
    let clock = noon();
    clock.block_on(async {
        let config = ModelConfig {
            temperature: Some(1.0),
            tools: vec![tool("pay"), tool("look")],
            system_prompts: vec!["Help.".to_owned()],
            ..ModelConfig::default()
        };
        let mut configs = vec![session.begin(config.clone()).unwrap()];
        let mut passed = Vec::new();
        for _ in 0..3 {
            configs.push(session.before_model(config.clone()).await.unwrap());
            for delta in ["Write to ana@exam", "ple.com", ", please."] {
                passed.extend(session.chunk(Chunk::text("t", delta)).unwrap());
            }
            passed.extend(session.chunk(finished(20)).unwrap());
        }
        let _ = session.end(&super::ending()).await;
        (configs, passed)
    })
}

#[test]
fn run_shadows_change_nothing_and_are_reported_once() {
    let context = json!({ "principal": "ana" });
    let (engine, watching) = observed_engine(RULES);
    let mut session = engine.session().with_context(context.clone());
    let with = run(&mut session);
    let mut plain = observed_engine("policies: []").0.session().with_context(context);
    assert_eq!(with, run(&mut plain));
    let told = watching.reports(&session);
    let expected = [
        "model style Rewrite",
        "halt long Halt: halted too long",
        "stream addresses Rewrite",
        "budget few Halt: budget_exceeded enough for ana",
    ];
    assert_eq!(told, expected);
    let stats: Vec<&str> = session.stats().shadows.iter().map(|shadow| shadow.id.as_str()).collect();
    assert_eq!(stats, ["style", "long", "addresses", "few"]);
    // The next run reports again.
    let _ = run(&mut session);
    assert_eq!(watching.reports(&session), expected);
}

#[test]
fn shadow_budget_counts_and_its_refusal_is_in_the_outcomes() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: two, mode: shadow, budget: { calls: 2, on_exceed: deny } }
  - { id: three, mode: shadow, budget: { calls: 3, per: principal } }
  - { id: four, budget: { calls: 4 } }";
    let (engine, _) = observed_engine(text);
    let mut session = engine.session().with_context(json!({ "principal": "ana" }));
    let said: Vec<String> = (0..5)
        .map(|_| {
            let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
            let traces = outcome.policies.iter().map(|PolicyTrace { id, verdict, shadow, .. }| {
                format!(" {}{id} {verdict:?}", if *shadow { "shadow " } else { "" })
            });
            format!("{}{}", outcome.outcome, traces.collect::<String>())
        })
        .collect();
    let expected = [
        "executed",
        "executed",
        "executed shadow two Deny",
        "executed shadow two Deny shadow three Halt",
        "halted shadow two Deny shadow three Halt four Halt",
    ];
    assert_eq!(said, expected);
    assert_eq!(tool.count(), 4);
}

#[test]
fn shadow_budget_spans_all_runs_if_so_configured() {
    let (engine, watching) =
        observed_engine("policies: [ { id: little, mode: shadow, budget: { tokens: 10, per: principal } } ]");
    let turn = |session: &mut Session| {
        noon().block_on(async {
            session.begin(ModelConfig::default()).unwrap();
            session.before_model(ModelConfig::default()).await.unwrap();
            session.report_usage(Usage { prompt_tokens: 10, ..Usage::default() });
            let _ = session.end(&super::ending()).await;
        });
    };
    let session = || engine.session().with_context(json!({ "principal": "ana" }));
    let (mut first, mut second) = (session(), session());
    turn(&mut first);
    assert_eq!(watching.reports(&first), [""; 0]);
    turn(&mut second);
    let told = ["budget little Halt: budget_exceeded the budget `little` is used up: no tokens are left"];
    assert_eq!(watching.reports(&second), told);
}

/// A store that is unavailable.
struct UnavailableStore;

impl Alteration for UnavailableStore {
    fn answer<'a, T: Send + 'a>(&'a self, _: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(std::future::ready(Err(StoreError::Unavailable("no answer".to_owned()))))
    }
}

#[test]
fn shadow_budget_with_unknown_usage_stops_nothing() {
    let watching = ShadowLog::default();
    let text = "policies: [ { id: all, mode: shadow, budget: { iterations: 5, per: conversation } } ]";
    let engine = rules(text).clock(noon()).observer(watching.clone());
    let mut session = engine.store(Arc::new(Altered::by(UnavailableStore))).build().session();
    let base = session.begin(ModelConfig::default()).unwrap();
    noon().block_on(session.before_model(base)).unwrap();
    let told = ["budget all Halt: store_unavailable the use of the budget `all` is unknown: no answer"];
    assert_eq!(watching.reports(&session), told);
}

#[test]
fn shadow_policies_see_the_rest_of_a_stream_that_was_cut_off() {
    let text = "policies: [ { id: lines, mode: shadow, stream: { drop: { patterns: ana, unit: line } } } ]";
    let (engine, watching) = observed_engine(text);
    let mut session = engine.session();
    session.begin(ModelConfig::default()).unwrap();
    let passed = session.chunk(Chunk::text("t", "ana@example.com")).unwrap();
    assert_eq!((passed.len(), watching.reports(&session)), (1, vec![]));
    assert_eq!(session.rest_of_stream().unwrap(), []);
    assert_eq!(watching.reports(&session), ["stream lines Rewrite"]);
}
