//! The run of a concurrent session around its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::json::json;
use callgate::lifecycle::{Chunk, Middleware, ModelConfig, RunContext, RunEnd};
use callgate::message::History;
use callgate::session::ConcurrentSession;
use callgate::{Outcome, Session};

use super::{abort_reason, ending, finished, session, tool};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

/// Makes one call, whose tool counts its calls.
async fn execute(session: &ConcurrentSession, counter: &Tool, tool: &str) -> Outcome {
    session.execute(call(tool, json!({})), counter).await
}

fn next(session: &ConcurrentSession) -> Result<(), RunEnd> {
    noon().block_on(session.before_model(ModelConfig::default())).map(|_| ())
}

#[test]
fn steps_of_the_run_are_around_the_calls_and_hooks_see_one_end() {
    let (session, log) = session("policies: [ { id: p, stream: { redact: email } } ]");
    let session = session.concurrent();
    noon().block_on(async {
        session.begin(ModelConfig::default()).await.unwrap();
        session.before_model(ModelConfig::default()).await.unwrap();
        assert_eq!(session.chunk(Chunk::text("a", "to ana@exa")).unwrap(), []);
        assert_eq!(session.chunk(Chunk::text("a", "mple.com")).unwrap(), []);
        assert_eq!(session.rest_of_stream().unwrap(), [Chunk::text("a", "to [email]")]);
        session.chunk(finished(5)).unwrap();
        execute(&session, &Tool::counting(&noon()), "look").await;
        session.before_model(ModelConfig::default()).await.unwrap();
        assert_eq!(session.end(&ending()).await, Vec::<String>::new());
        session.end(&ending()).await;
    });
    drop(session);
    let wanted = "ear init#0 session starts; ear init#0 config; ear init#0 start; ear beforeModel#0 config; \
                  ear beforeModel#0 before completion; ear modelStream#0 chunk 0; \
                  ear modelStream#0 usage 5; ear modelStream#0 chunk 1; ear modelStream#0 before look; \
                  ear modelStream#0 after look executed; ear beforeModel#1 config; \
                  ear beforeModel#1 before completion; ear modelStream#1 finished stop after 2 with 5";
    assert_eq!(log.take().join("; "), wanted);
}

#[test]
fn run_that_a_budget_ends_halts_its_calls_and_the_next_run_begins_anew() {
    let (session, _) = session("policies: [ { id: p, budget: { iterations: 2 } } ]");
    let (session, counter) = (session.concurrent(), Tool::counting(&noon()));
    for _ in 0..2 {
        noon().block_on(session.begin(ModelConfig::default())).unwrap();
        next(&session).unwrap();
        let outcome = noon().block_on(execute(&session, &counter, "look"));
        assert_eq!(outcome.outcome.name(), "executed");
        next(&session).unwrap();
        abort_reason(next(&session));
        let outcome = noon().block_on(execute(&session, &counter, "look"));
        assert_eq!(outcome.outcome.name(), "halted");
        noon().block_on(session.end(&ending()));
    }
    assert_eq!(counter.count(), 2);
}

#[test]
fn call_of_a_tool_that_the_model_was_not_offered_is_denied() {
    let (session, _) = session("policies: [ { id: p, model: { tools: { hide: pay } } } ]");
    let session = session.concurrent();
    let config = ModelConfig { tools: vec![tool("look"), tool("pay")], ..ModelConfig::default() };
    noon().block_on(async {
        let config = session.begin(config).await.unwrap();
        let offered = session.before_model(config).await.unwrap().tools;
        assert_eq!(offered.len(), 1);
        let counter = Tool::counting(&noon());
        assert_eq!(kind_and_code(&execute(&session, &counter, "pay").await), ("denied", "not_offered"));
        assert_eq!(execute(&session, &counter, "look").await.outcome.name(), "executed");
    });
}

#[test]
fn step_of_the_run_waits_for_the_call_before_it_which_may_end_the_run() {
    let (session, _) = session("policies: [ { id: p, budget: { calls: 1, on_exceed: finish } } ]");
    let session = session.concurrent();
    let clock = noon();
    let slow = Tool::scripted(&clock, [(Duration::from_secs(5), Ok(json!(1)))]);
    clock.block_on(async {
        session.begin(ModelConfig::default()).await.unwrap();
        let (_, reserved) = tokio::join!(execute(&session, &slow, "slow"), async {
            session.reserve_model_call(&History::default()).await
        });
        assert!(matches!(reserved, Err(RunEnd::Finished { .. })));
    });
}

/// A session that has begun, with a budget of two model calls for the conversation.
fn two_model_calls() -> Session {
    let (session, _) = session("policies: [ { id: p, budget: { iterations: 2, per: conversation } } ]");
    session.with_name("talk")
}

#[test]
fn reserved_model_call_counts_once_and_one_that_does_not_follow_not_at_all() {
    let mut session = two_model_calls();
    let nothing = History::default();
    noon().block_on(async {
        session.begin(ModelConfig::default()).unwrap();
        session.reserve_model_call(&nothing).await.unwrap();
        session.reserve_model_call(&nothing).await.unwrap();
        session.before_model(ModelConfig::default()).await.unwrap();
        session.reserve_model_call(&nothing).await.unwrap();
        session.end(&ending()).await.finish().await;
        assert_eq!(session.stats().iterations, 1);
        // The second one is left for the next run.
        session.begin(ModelConfig::default()).unwrap();
        session.before_model(ModelConfig::default()).await.unwrap();
        abort_reason(session.reserve_model_call(&nothing).await);
    });
}

#[test]
fn run_that_begins_after_a_forgotten_past_knows_its_own_use() {
    let policies = "policies:
  - { id: few, budget: { iterations: 2 } }
  - { id: once, match: look, rate_limit: { limit: 1, per: run } }
  - { id: stop, match: { tool: send, where: { path: '$.session.labels[*]', eq: seen } }, deny: {} }";
    let counter = Tool::counting(&noon());
    let forgotten = || session(policies).0.with_unknown_past().concurrent();
    noon().block_on(async {
        let session = forgotten();
        // Without a begin, it may be the rest of a run.
        assert_eq!(execute(&session, &counter, "look").await.outcome.name(), "denied");
        abort_reason(session.before_model(ModelConfig::default()).await);
        let session = forgotten();
        session.begin(ModelConfig::default()).await.unwrap();
        session.before_model(ModelConfig::default()).await.unwrap();
        assert_eq!(execute(&session, &counter, "look").await.outcome.name(), "executed");
        assert_eq!(execute(&session, &counter, "look").await.outcome.name(), "denied");
        assert_eq!(execute(&session, &counter, "send").await.outcome.name(), "denied");
        session.before_model(ModelConfig::default()).await.unwrap();
        abort_reason(session.before_model(ModelConfig::default()).await);
    });
    assert_eq!(counter.count(), 1);
}

/// Counts how often it is asked whether the run continues.
struct Asked(Arc<AtomicUsize>);

impl Middleware for Asked {
    fn id(&self) -> &str {
        "asked"
    }
    fn should_continue(&self, _: &RunContext, _: &History) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) == 0
    }
}

#[test]
fn hooks_are_asked_once_for_a_reserved_model_call() {
    let asked = Arc::default();
    let mut session = rules("policies: []").middleware(Asked(Arc::clone(&asked))).build().session();
    let nothing = History::default();
    noon().block_on(async {
        session.begin(ModelConfig::default()).unwrap();
        session.before_model(ModelConfig::default()).await.unwrap();
        session.reserve_model_call(&nothing).await.unwrap();
        session.before_model(ModelConfig::default()).await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert!(session.reserve_model_call(&nothing).await.is_err());
    });
}

#[test]
fn policy_that_halts_after_the_reservation_ends_the_run_before_the_model_call() {
    let mut session = two_model_calls();
    noon().block_on(async {
        session.begin(ModelConfig::default()).unwrap();
        session.reserve_model_call(&History::default()).await.unwrap();
        session.run().abort("enough");
        assert_eq!(abort_reason(session.before_model(ModelConfig::default()).await), "enough");
    });
}
