//! Middleware of a chat and of an agent loop, and approvals without a session: the documented behaviours that no other test covers.

use std::sync::{Arc, Mutex};

use callgate::json::{Value, json};
use callgate::lifecycle::{
    BeforeAction, Chunk, ChunkAction, HookCall, HookError, Middleware, ModelConfig, ModelConfigPatch,
    RunContext, RunEnd, RunStats, ToolCallEnd, ToolHooks, Usage,
};
use callgate::message::{History, Message, Part, PartContent, Role, approval_response};
use callgate::state::MemoryStore;
use callgate::{Session, ToolError};

use super::{Log, NONE, note};
use crate::fixtures::{Tool, call, keys, kind_and_code, noon, rules};

#[test]
fn after_hooks_observe_skipped_and_cached_calls() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let log = Log::default();
    let heard = Arc::clone(&log);
    let hook = ToolHooks::new("logger")
        .before(|call| match call.tool.as_str() {
            "known" => BeforeAction::Skip(json!("kept")),
            _ => BeforeAction::Continue,
        })
        .after(move |end| {
            note(&heard, format!("{} {} {}", end.outcome.tool, end.outcome.outcome, end.is_ok()))
        });
    let text = "policies: [ { id: c, match: look, cache: { ttl: 1h } }, { id: no, match: drop, deny: {} } ]";
    let mut session = rules(text).clock(clock.clone()).middleware(hook).build().session();
    for name in ["known", "look", "look", "drop"] {
        clock.block_on(session.execute(call(name, json!({})), &tool));
    }
    let expected = ["known answered true", "look executed true", "look cached true", "drop denied false"];
    assert_eq!((&log.lock().unwrap()[..], tool.count()), (&expected.map(str::to_owned)[..], 1));
}

/// The order of the hooks is that of their array, and reversed on the way back.
#[test]
fn all_hooks_of_a_kind_run_in_order() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let log = Log::default();
    let hook = |name: &'static str| {
        let (before, around, after) = (Arc::clone(&log), Arc::clone(&log), Arc::clone(&log));
        ToolHooks::new(name)
            .before(move |_| {
                note(&before, format!("before {name}"));
                BeforeAction::Continue
            })
            .around(move |_, mut next| {
                note(&around, format!("around {name}"));
                Box::pin(async move { next.call().await })
            })
            .after(move |_| note(&after, format!("after {name}")))
    };
    let engine = ["a", "b", "c"].into_iter().fold(rules(NONE), |engine, name| engine.middleware(hook(name)));
    let outcome = clock.block_on(engine.build().session().execute(call("look", json!({})), &tool));
    assert_eq!((outcome.output, tool.inputs()), (Some(json!(1)), vec![json!({})]));
    let points = [("before", "abc"), ("around", "abc"), ("after", "cba")];
    let expected =
        points.iter().flat_map(|(point, names)| names.chars().map(move |name| format!("{point} {name}")));
    assert_eq!(*log.lock().unwrap(), expected.collect::<Vec<_>>());
}

#[test]
fn cache_is_shared_by_all_engines_with_the_same_store() {
    let clock = noon();
    let text = "policies: [ { id: c, match: look, cache: { ttl: 1h } } ]";
    let storage = Arc::new(MemoryStore::default());
    let tool = Tool::counting(&clock);
    let kinds: Vec<_> = (0..2)
        .map(|_| {
            let mut session =
                rules(text).clock(clock.clone()).store(Arc::clone(&storage) as _).build().session();
            clock.block_on(session.execute(call("look", json!({})), &tool)).outcome.name()
        })
        .collect();
    assert_eq!(kinds, ["executed", "cached"]);
    // Without a common store each has its own.
    let mut session = rules(text).clock(clock.clone()).build().session();
    assert_eq!(clock.block_on(session.execute(call("look", json!({})), &tool)).outcome.name(), "executed");
}

/// Aborts the run at one of its points.
struct Stops(&'static str, Log);

impl Stops {
    fn at(&self, point: &str, run: &RunContext) {
        if self.0 == point {
            run.abort(format!("stopped at {point}"));
        }
    }
}

impl Middleware for Stops {
    fn id(&self) -> &str {
        "stops"
    }
    fn on_config(&self, run: &RunContext, _: &ModelConfig) -> Option<ModelConfigPatch> {
        self.at("config", run);
        None
    }
    fn on_start(&self, run: &RunContext) {
        self.at("start", run);
    }
    fn before_completion(&self, run: &RunContext, _: &History) {
        self.at("before completion", run);
    }
    fn on_chunk(&self, run: &RunContext, _: &Chunk) -> ChunkAction {
        self.at("chunk", run);
        ChunkAction::Pass
    }
    fn on_usage(&self, run: &RunContext, _: &Usage) {
        self.at("usage", run);
    }
    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> callgate::host::BoxFuture<'a, BeforeAction> {
        self.at("before", call.run);
        Box::pin(std::future::ready(BeforeAction::Continue))
    }
    fn has_around(&self) -> bool {
        true
    }
    fn around<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        mut next: callgate::lifecycle::Next<'a>,
    ) -> callgate::host::BoxFuture<'a, Result<Value, ToolError>> {
        self.at("around", call.run);
        Box::pin(async move { next.call().await })
    }
    fn after<'a>(&'a self, end: &'a ToolCallEnd<'a>) -> callgate::host::BoxFuture<'a, ()> {
        self.at("after", end.run);
        Box::pin(std::future::ready(()))
    }
    fn after_completion(&self, run: &RunContext, _: &History) {
        self.at("after completion", run);
    }
    fn on_end(&self, _: &RunContext, ending: &RunEnd, stats: &RunStats) -> Result<(), HookError> {
        assert!(stats.duration > std::time::Duration::ZERO);
        note(&self.1, format!("{ending:?}"));
        Ok(())
    }
}

/// A whole run with one call. Returns an early ending as an error.
async fn one_run(session: &mut Session, tool: &Tool) -> Result<(), RunEnd> {
    let base = session.begin(ModelConfig::default())?;
    session.before_model(base.clone()).await?;
    let usage = Some(Usage { prompt_tokens: 7, completion_tokens: 3, ..Usage::default() });
    session.chunk(Chunk::Finished { reason: Some("tool_calls".into()), usage })?;
    let mut history =
        History::new(vec![Message::new(Role::Assistant, vec![Part::call("c1", "look", json!({}))])]);
    session.run_round(&mut history, tool).await.unwrap();
    session.before_model(base).await?;
    session.completed(&history);
    Ok(())
}

#[test]
fn run_ends_gracefully_and_once_wherever_a_hook_aborts_it() {
    for (point, ran) in [
        ("config", 0),
        ("start", 0),
        ("before completion", 0),
        ("chunk", 0),
        ("usage", 0),
        ("before", 0),
        ("around", 0),
        ("after", 1),
        ("after completion", 1),
        ("nowhere", 1),
    ] {
        let clock = noon();
        let tool = Tool::counting(&clock);
        let log = Log::default();
        let mut session =
            rules(NONE).clock(clock.clone()).middleware(Stops(point, Arc::clone(&log))).build().session();
        clock.block_on(async {
            let came = one_run(&mut session, &tool).await;
            let ending = RunEnd::Finished { reason: Some("stop".into()), content: "done".into() };
            let _ = session.end(&came.err().unwrap_or(ending)).await;
        });
        drop(session);
        let told = log.lock().unwrap().clone();
        let [told] = &told[..] else { panic!("{point}: {told:?}") };
        let expected = match point {
            "nowhere" => "Finished { reason: Some(\"stop\"), content: \"done\" }".to_owned(),
            _ => format!("Aborted {{ reason: \"stopped at {point}\" }}"),
        };
        assert_eq!((told, tool.count()), (&expected, ran), "{point}");
    }
}

#[test]
fn usage_of_an_iteration_is_reported_with_all_its_numbers() {
    struct Counts(Arc<Mutex<Vec<Usage>>>);
    impl Middleware for Counts {
        fn id(&self) -> &str {
            "counts"
        }
        fn on_usage(&self, _: &RunContext, usage: &Usage) {
            self.0.lock().unwrap().push(*usage);
        }
    }
    let seen: Arc<Mutex<Vec<Usage>>> = Arc::default();
    let mut session = rules(NONE).middleware(Counts(Arc::clone(&seen))).build().session();
    let tool = Tool::counting(&noon());
    noon().block_on(one_run(&mut session, &tool)).unwrap();
    let usage = Usage { prompt_tokens: 7, completion_tokens: 3, ..Usage::default() };
    assert_eq!((seen.lock().unwrap().clone(), usage.tokens()), (vec![usage], 10));
    assert_eq!(session.stats().usage.tokens(), 10);
    // A turn without usage reports none.
    noon().block_on(async { session.before_model(ModelConfig::default()).await.unwrap() });
    session.chunk(Chunk::Finished { reason: None, usage: None }).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn temperature_can_rise_with_each_iteration() {
    struct Rises;
    impl Middleware for Rises {
        fn id(&self) -> &str {
            "dynamic-temperature"
        }
        fn on_config(&self, run: &RunContext, config: &ModelConfig) -> Option<ModelConfigPatch> {
            let temperature = Some((config.temperature.unwrap_or(0.7) + 0.25).min(1.0));
            (run.iteration > 0).then(|| ModelConfigPatch { temperature, ..ModelConfigPatch::default() })
        }
    }
    let mut session = rules(NONE).middleware(Rises).build().session();
    let temperatures: Vec<_> = noon().block_on(async {
        let mut config =
            session.begin(ModelConfig { temperature: Some(0.5), ..ModelConfig::default() }).unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            config = session.before_model(config).await.unwrap();
            seen.push(config.temperature.unwrap());
        }
        seen
    });
    assert_eq!(temperatures, [0.5, 0.75, 1.0, 1.0]);
}

/// Retries and post-processing for every tool, by one middleware and without a change of any tool.
#[test]
fn middleware_retries_and_formats_results_for_every_tool() {
    let clock = noon();
    let fails = || (std::time::Duration::ZERO, Err(ToolError::new("busy")));
    let tool = Tool::scripted(&clock, [fails(), (std::time::Duration::ZERO, Ok(json!(" ok ")))]);
    let retry = ToolHooks::new("retry").around(|_, mut next| {
        Box::pin(async move {
            let output = match next.call().await {
                Err(_) => next.call().await?,
                given => given?,
            };
            Ok(json!(output.as_str().map(str::trim)))
        })
    });
    let outcome = clock
        .block_on(rules(NONE).middleware(retry).build().session().execute(call("look", json!({})), &tool));
    assert_eq!((outcome.output, outcome.attempts, tool.count()), (Some(json!("ok")), Some(2), 2));
}

/// Consecutive approvals in one conversation: one approved, one denied, and one with two tools of which one is approved.
#[test]
fn approval_cycles_follow_each_other_and_completed_ones_stay_completed() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let session = || {
        let text = "policies: [ { id: ask, match: refund, approval: { present: first } } ]";
        rules(text).keys(keys()).clock(clock.clone()).build().session().with_name("talk")
    };
    let mut history = History::new(vec![Message::new(Role::User, vec![Part::text("refund all of them")])]);
    let mut kinds = Vec::new();
    for (ids, approved) in [(&["a"][..], true), (&["b"], false), (&["c", "d"], true), (&["e"], true)] {
        let parts = ids.iter().map(|id| Part::call(*id, "refund", json!({ "order": id }))).collect();
        history.push(Message::new(Role::Assistant, parts));
        let round = clock.block_on(session().run_round(&mut history, &tool)).unwrap();
        kinds.extend(round.outcomes.iter().map(|outcome| format!("{} {}", outcome.id, outcome.outcome)));
        let [request] = &history.find_approval_requests()[..] else { panic!("one card at a time") };
        let id = request.approval_id.clone();
        history.append_approval_response(approval_response(id, approved)).unwrap();
        // Even if the click is handled repeatedly.
        for _ in 0..2 {
            let round = clock.block_on(session().resume(&mut history, &tool)).unwrap();
            kinds.extend(round.outcomes.iter().map(|outcome| format!("{} {}", outcome.id, outcome.outcome)));
        }
        assert!(history.calls_without_result().is_empty());
        history.push(Message::new(Role::Assistant, vec![Part::text("")]));
    }
    assert_eq!(
        kinds,
        [
            "a suspended",
            "a executed",
            "b suspended",
            "b denied",
            "c suspended",
            "d denied",
            "c executed",
            "e suspended",
            "e executed"
        ]
    );
    assert_eq!(tool.calls().iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "c", "e"]);
    // Every result names its tool, including those of denied calls.
    let results =
        history.messages().iter().flat_map(Message::parts).filter_map(|part| match part.content() {
            PartContent::Result(result) => Some(result.name.clone()),
            _ => None,
        });
    assert_eq!(results.collect::<Vec<_>>(), ["refund"; 5]);
}

/// The model reads the actual outcomes of both calls of a round, including decisions by hooks and rules.
#[test]
fn blocked_call_tells_the_model_why_and_leaves_its_siblings_alone() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let guard = ToolHooks::new("guard").before(|call| match call.tool.as_str() {
        "drop" => BeforeAction::Block("Dangerous operation blocked".into()),
        _ => BeforeAction::Continue,
    });
    let mut history = History::new(vec![Message::new(
        Role::Assistant,
        vec![Part::call("c1", "drop", json!({})), Part::call("c2", "look", json!({}))],
    )]);
    let mut session = rules(NONE).middleware(guard).build().session();
    let round = clock.block_on(session.run_round(&mut history, &tool)).unwrap();
    assert_eq!(
        (kind_and_code(&round.outcomes[0]), kind_and_code(&round.outcomes[1]).0),
        (("denied", "blocked"), "executed")
    );
    let told = history.occurrences()[0].result.unwrap().output.text();
    assert!(told.contains("Dangerous operation blocked"), "{told}");
}
