//! A run from start to end: which hooks observe which events, in which order, and what rules read meanwhile.

use callgate::host::BoxFuture;
use callgate::json::json;
use callgate::lifecycle::{BeforeAction, Chunk, HookCall, HookError, ModelConfig, ToolHooks};
use callgate::message::History;

use super::{Listener, Log, ending, finished, push_call, session, user};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

#[test]
fn hooks_observe_a_run_in_order() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let (mut session, log) = session("policies: []");
    let mut history = user("look twice");
    clock.block_on(async {
        let base =
            session.begin(ModelConfig { messages: history.clone(), ..ModelConfig::default() }).unwrap();
        for turn in 0..2 {
            session.before_model(ModelConfig { messages: history.clone(), ..base.clone() }).await.unwrap();
            session.chunk(Chunk::text("t", "hm")).unwrap();
            session.chunk(finished(10)).unwrap();
            if turn == 0 {
                push_call(&mut history, "c1", "look", json!({}));
                session.run_round(&mut history, &tool).await.unwrap();
                let compacted = History::new(history.messages().to_vec());
                session.compacted(&history, &compacted);
                session.compacted(&history, &user("short"));
            }
        }
        session.completed(&history);
        assert!(session.end(&ending()).await.finish().await.is_empty());
        assert!(session.close().finish().await.is_empty());
    });
    let expected = [
        "init#0 session starts",
        "init#0 config",
        "init#0 start",
        "beforeModel#0 config",
        "beforeModel#0 before completion",
        "modelStream#0 chunk 0",
        "modelStream#0 usage 10",
        "modelStream#0 chunk 1",
        "beforeTools#0 1 requested",
        "beforeTools#0 before look",
        "beforeTools#0 after look executed",
        "afterTools#0 1 done",
        "afterTools#0 compacted 3 to 1",
        "beforeModel#1 config",
        "beforeModel#1 before completion",
        "modelStream#1 chunk 2",
        "modelStream#1 usage 10",
        "modelStream#1 chunk 3",
        "modelStream#1 after completion",
        "modelStream#1 finished stop after 2 with 20",
        "modelStream#1 session ends",
    ];
    assert_eq!(log.take(), expected.map(|line| format!("ear {line}")));
}

#[test]
fn every_run_has_its_own_id_and_the_session_starts_once() {
    let clock = noon();
    let (mut session, log) = session("policies: []");
    let mut names = Vec::new();
    for _ in 0..2 {
        session.begin(ModelConfig::default()).unwrap();
        names.push((session.run().request_id.clone(), session.run().stream_id.clone()));
        let _ = clock.block_on(session.end(&ending()));
    }
    assert!(names[0] != names[1] && names[0].0 != names[0].1, "{names:?}");
    let heard = log.take();
    assert_eq!(heard.iter().filter(|line| line.contains("session starts")).count(), 1);
    assert_eq!(heard.iter().filter(|line| line.contains("finished")).count(), 2);
}

#[test]
fn rules_can_read_the_position_of_the_run() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - id: late
    match: { tool: look, where: [ { path: $.session.iteration, gte: 1 }, { path: $.session.phase, eq: beforeTools } ] }
    deny: {}";
    let (mut session, _) = session(text);
    let mut history = user("look");
    clock.block_on(async {
        let base = session.begin(ModelConfig::default()).unwrap();
        for (id, kind) in [("c1", "executed"), ("c2", "denied")] {
            session.before_model(base.clone()).await.unwrap();
            push_call(&mut history, id, "look", json!({}));
            let round = session.run_round(&mut history, &tool).await.unwrap();
            assert_eq!(round.outcomes[0].outcome.name(), kind);
        }
    });
    let document = session.state().document();
    assert_eq!(document["conversationId"], callgate::json::Value::Null);
    assert!(document["requestId"].is_string() && document["streamId"].is_string());
}

#[test]
fn whole_round_can_be_refused_before_any_of_its_calls_runs() {
    struct AtMostOne;
    impl callgate::lifecycle::Middleware for AtMostOne {
        fn id(&self) -> &str {
            "at-most-one"
        }
        fn after_tool_request(
            &self,
            _: &callgate::lifecycle::RunContext,
            calls: &[callgate::ToolCall],
        ) -> Option<String> {
            (calls.len() > 1).then(|| "one at a time".to_owned())
        }
    }
    let clock = noon();
    let tool = Tool::counting(&clock);
    let mut session = rules("policies: []").middleware(AtMostOne).build().session();
    let outcomes = clock.block_on(session.execute_round(vec![call("look", json!({}))], &tool));
    assert_eq!(kind_and_code(&outcomes[0]).0, "executed");
    let two = vec![call("look", json!({})), call("look", json!({}))];
    let outcomes = clock.block_on(session.execute_round(two, &tool));
    assert!(outcomes.iter().all(|outcome| kind_and_code(outcome) == ("halted", "session_halted")));
    assert!(outcomes[0].reason.message.contains("one at a time"));
    assert_eq!(tool.count(), 1);
}

#[test]
fn panicking_hook_outside_of_calls_changes_nothing() {
    struct PanickingHook;
    impl callgate::lifecycle::Middleware for PanickingHook {
        fn id(&self) -> &str {
            "clumsy"
        }
        fn on_session_start(&self, _: &callgate::lifecycle::RunContext) {
            panic!("clumsy")
        }
        fn on_config(
            &self,
            _: &callgate::lifecycle::RunContext,
            _: &ModelConfig,
        ) -> Option<callgate::lifecycle::ModelConfigPatch> {
            panic!("clumsy")
        }
        fn on_chunk(
            &self,
            _: &callgate::lifecycle::RunContext,
            _: &Chunk,
        ) -> callgate::lifecycle::ChunkAction {
            panic!("clumsy")
        }
        fn should_continue(&self, _: &callgate::lifecycle::RunContext, _: &History) -> bool {
            panic!("clumsy")
        }
        fn on_end(
            &self,
            _: &callgate::lifecycle::RunContext,
            _: &callgate::lifecycle::RunEnd,
            _: &callgate::lifecycle::RunStats,
        ) -> Result<(), HookError> {
            panic!("clumsy")
        }
    }
    let clock = noon();
    let log = Log::default();
    let engine = rules("policies: []").middleware(PanickingHook);
    let engine = engine.middleware(Listener { name: "ear", log: log.clone() }).build();
    let mut session = engine.session();
    clock.block_on(async {
        let base = session.begin(ModelConfig { temperature: Some(0.5), ..ModelConfig::default() }).unwrap();
        assert_eq!(base.temperature, Some(0.5));
        session.before_model(base.clone()).await.unwrap();
        assert_eq!(session.chunk(Chunk::text("t", "hm")).unwrap(), [Chunk::text("t", "hm")]);
        session.before_model(base).await.unwrap();
        let _ = session.end(&ending()).await;
    });
    assert!(log.take().last().unwrap().contains("finished stop"));
}

#[test]
fn hook_can_stop_further_model_calls() {
    struct Once;
    impl callgate::lifecycle::Middleware for Once {
        fn id(&self) -> &str {
            "once"
        }
        fn should_continue(&self, _: &callgate::lifecycle::RunContext, _: &History) -> bool {
            false
        }
    }
    let clock = noon();
    let mut session = rules("policies: []").middleware(Once).build().session();
    let base = session.begin(ModelConfig::default()).unwrap();
    clock.block_on(session.before_model(base.clone())).unwrap();
    let ended = clock.block_on(session.before_model(base)).unwrap_err();
    assert!(matches!(ended, callgate::lifecycle::RunEnd::Finished { .. }), "{ended:?}");
}

#[test]
fn hooks_run_in_order_of_engine_prompt_and_call() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let push = |name: &'static str| {
        ToolHooks::new(name).before(move |call| {
            let mut names = call.input["names"].as_array().cloned().unwrap_or_default();
            names.push(name.into());
            BeforeAction::Edit(json!({ "names": names }))
        })
    };
    let engine = rules("policies: []").middleware(push("engine")).build();
    let mut session = engine.session().with_middleware(push("prompt")).with_middleware(push("call"));
    clock.block_on(session.execute(call("look", json!({})), &tool));
    assert_eq!(tool.inputs(), [json!({ "names": ["engine", "prompt", "call"] })]);
}

/// A hook that records, at each of its points, the context of its run.
struct ContextRecorder(Log);

impl ContextRecorder {
    fn record(&self, point: &str, run: &callgate::lifecycle::RunContext) {
        let conversation = run.conversation_id.clone().unwrap_or_default();
        self.0.record(format!(
            "{point} {conversation} {} {}",
            run.context["tenant"],
            !run.request_id.is_empty()
        ));
    }
}

impl callgate::lifecycle::Middleware for ContextRecorder {
    fn id(&self) -> &str {
        "asks"
    }
    fn has_around(&self) -> bool {
        true
    }
    fn on_session_start(&self, run: &callgate::lifecycle::RunContext) {
        self.record("session", run);
    }
    fn on_config(
        &self,
        run: &callgate::lifecycle::RunContext,
        _: &ModelConfig,
    ) -> Option<callgate::lifecycle::ModelConfigPatch> {
        self.record("config", run);
        None
    }
    fn on_start(&self, run: &callgate::lifecycle::RunContext) {
        self.record("start", run);
    }
    fn on_chunk(&self, run: &callgate::lifecycle::RunContext, _: &Chunk) -> callgate::lifecycle::ChunkAction {
        self.record("chunk", run);
        callgate::lifecycle::ChunkAction::Pass
    }
    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        self.record("before", call.run);
        assert_eq!(call.context, call.run.context);
        Box::pin(std::future::ready(BeforeAction::Continue))
    }
    fn around<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        mut next: callgate::lifecycle::Next<'a>,
    ) -> BoxFuture<'a, Result<callgate::json::Value, callgate::ToolError>> {
        self.record("around", call.run);
        Box::pin(async move { next.call().await })
    }
    fn on_error<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        _: &'a callgate::ToolError,
    ) -> BoxFuture<'a, callgate::lifecycle::ErrorAction> {
        self.record("error", call.run);
        Box::pin(std::future::ready(callgate::lifecycle::ErrorAction::Keep))
    }
    fn after<'a>(&'a self, end: &'a callgate::lifecycle::ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        self.record("after", end.run);
        Box::pin(std::future::ready(()))
    }
    fn on_end(
        &self,
        run: &callgate::lifecycle::RunContext,
        _: &callgate::lifecycle::RunEnd,
        _: &callgate::lifecycle::RunStats,
    ) -> Result<(), HookError> {
        self.record("end", run);
        Ok(())
    }
}

#[test]
fn every_hook_gets_the_context_and_the_conversation_of_its_run() {
    let clock = noon();
    let log = Log::default();
    let tool = Tool::scripted(&clock, [(std::time::Duration::ZERO, Err(callgate::ToolError::new("boom")))]);
    let engine = rules("policies: []").middleware(ContextRecorder(log.clone())).build();
    let session = || engine.session().with_name("talk").with_context(json!({ "tenant": "acme" }));
    let mut run = session();
    clock.block_on(async {
        let base = run.begin(ModelConfig::default()).unwrap();
        run.before_model(base).await.unwrap();
        run.chunk(Chunk::text("t", "hm")).unwrap();
        let mut history = user("look");
        push_call(&mut history, "c1", "look", json!({}));
        run.run_round(&mut history, &tool).await.unwrap();
        let _ = run.end(&ending()).await;
    });
    let points =
        ["session", "config", "start", "config", "chunk", "before", "around", "error", "after", "end"];
    assert_eq!(log.take(), points.map(|point| format!("{point} talk \"acme\" true")));
    // A host that drives only calls, in each possible way.
    let points = ["before", "around", "error", "after"].map(|point| format!("{point} talk \"acme\" true"));
    let look = || callgate::ToolCall::new("c1", "look", json!({})).with_context(json!({ "tenant": "acme" }));
    clock.block_on(session().execute(look(), &tool));
    assert_eq!(log.take(), points);
    clock.block_on(session().concurrent().execute(look(), &tool));
    assert_eq!(log.take(), points);
    clock.block_on(session().into_sdk_session(tool).call("c1", "look", json!({})));
    assert_eq!(log.take(), points);
}
