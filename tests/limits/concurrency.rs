//! Limits with many concurrent callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::json::{Value, json};
use callgate::{OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};

use crate::fixtures::{call, kind_and_code, noon, rules};

/// Runs until the test releases it, and counts its concurrent calls.
#[derive(Clone, Default)]
struct BlockedTool {
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl ToolExecutor for BlockedTool {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(Value::Null.into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrency_is_never_exceeded_and_all_waiting_calls_complete() {
    let engine =
        rules("policies: [ { id: p, match: job, concurrency: { max: 3, on_exceed: wait, max_wait: 5m } } ]")
            .build();
    let busy = BlockedTool::default();
    let tasks: Vec<_> = (0..60)
        .map(|_| {
            let (engine, busy) = (engine.clone(), busy.clone());
            tokio::spawn(async move { engine.session().execute(call("job", json!({})), &busy).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().outcome, OutcomeKind::Executed);
    }
    assert_eq!(busy.most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn slot_is_released_however_the_call_ends() {
    struct Ending;
    impl ToolExecutor for Ending {
        async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
            match call.input["how"].as_str() {
                Some("fails") => Err(ToolError::new("no")),
                Some("panics") => panic!("a mistake in the tool"),
                Some("hangs") => std::future::pending().await,
                _ => Ok(Value::Null.into()),
            }
        }
    }
    let engine = rules("policies: [ { id: p, match: job, concurrency: { max: 1 } } ]").build();
    for (how, end) in [("fails", "failed"), ("panics", "failed"), ("works", "executed")] {
        let outcome = engine.session().execute(call("job", json!({ "how": how })), &Ending).await;
        assert_eq!(outcome.outcome.name(), end);
    }
    let mut session = engine.session();
    {
        let mut hanging = std::pin::pin!(session.execute(call("job", json!({ "how": "hangs" })), &Ending));
        tokio::select! {
            biased;
            _ = &mut hanging => panic!("it hangs"),
            () = tokio::task::yield_now() => {}
        }
        let meanwhile = engine.session().execute(call("job", json!({})), &Ending).await;
        assert_eq!(kind_and_code(&meanwhile), ("denied", "concurrency_limited"));
    }
    let after = engine.session().execute(call("job", json!({})), &Ending).await;
    assert_eq!(after.outcome, OutcomeKind::Executed);
}

/// Exactly as many of N concurrent callers of one key succeed as the limit allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_callers_get_exactly_the_limit() {
    for algorithm in ["gcra", "fixed_window", "sliding_window"] {
        let clock = noon();
        let text = format!(
            "policies:
              - {{ id: all, match: job, rate_limit: {{ limit: 50, per: 1h, algorithm: {algorithm} }} }}
              - {{ id: each, match: job, rate_limit: {{ limit: 7, per: 1h, key: $.input.key, algorithm: {algorithm} }} }}"
        );
        let engine = rules(&text).clock(clock).build();
        let tasks: Vec<_> = (0..400)
            .map(|number| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    let call = call("job", json!({ "key": number % 10 }));
                    engine.session().execute(call, &BlockedTool::default()).await.outcome
                        == OutcomeKind::Executed
                })
            })
            .collect();
        let mut executed = [0; 10];
        for (number, task) in tasks.into_iter().enumerate() {
            executed[number % 10] += usize::from(task.await.unwrap());
        }
        assert_eq!(executed.iter().sum::<usize>(), 50, "{algorithm}: {executed:?}");
        assert!(executed.iter().all(|count| *count <= 7), "{algorithm}: {executed:?}");
    }
}
