//! Streams of a model on their way through policies and hooks.

use callgate::lifecycle::{Chunk, ChunkAction, Middleware, ModelConfig, RunContext, RunEnd};

use super::{Listener, Log, abort_reason, finished, session};
use crate::fixtures::{noon, rules};

/// Transforms each chunk of text.
struct OnText<F>(F);

impl<F: Fn(&RunContext, &str) -> ChunkAction + Send + Sync> Middleware for OnText<F> {
    fn id(&self) -> &str {
        "text"
    }
    fn on_chunk(&self, run: &RunContext, chunk: &Chunk) -> ChunkAction {
        match chunk {
            Chunk::Text { delta, .. } => (self.0)(run, delta),
            _ => ChunkAction::Pass,
        }
    }
}

fn text(delta: &str) -> Chunk {
    Chunk::text("t", delta)
}

#[test]
fn chunk_passes_is_replaced_expanded_or_dropped_before_later_hooks() {
    let log = Log::default();
    let edit = OnText(|_: &RunContext, delta: &str| match delta {
        "pass" => ChunkAction::Pass,
        "drop" => ChunkAction::discard(),
        "twice" => ChunkAction::Replace(vec![text("one"), text("two")]),
        other => ChunkAction::Replace(vec![text(&other.to_uppercase())]),
    });
    let engine =
        rules("policies: []").middleware(edit).middleware(Listener { name: "ear", log: log.clone() });
    let mut session = engine.build().session();
    session.begin(ModelConfig::default()).unwrap();
    log.take();
    for (chunk, passed) in
        [("pass", vec!["pass"]), ("drop", vec![]), ("twice", vec!["one", "two"]), ("other", vec!["OTHER"])]
    {
        let passed: Vec<Chunk> = passed.into_iter().map(text).collect();
        assert_eq!(session.chunk(text(chunk)).unwrap(), passed);
        assert_eq!(log.take().len(), passed.len(), "{chunk}");
    }
    assert_eq!(session.run().chunk_index, 4);
}

#[test]
fn rules_file_ends_a_run_after_a_thousand_chunks() {
    let (mut session, log) = session(include_str!("../../policies/runs/too_many_chunks.yaml"));
    session.begin(ModelConfig::default()).unwrap();
    for _ in 0..1000 {
        session.chunk(text("x")).unwrap();
    }
    assert_eq!(abort_reason(session.chunk(text("x"))), "the model streamed more than 1000 chunks");
    assert_eq!(abort_reason(session.chunk(text("x"))), "the model streamed more than 1000 chunks");
    let ending = RunEnd::Aborted { reason: "the model streamed more than 1000 chunks".into() };
    let _ = noon().block_on(session.end(&ending));
    assert!(log.take().last().unwrap().contains("aborted the model streamed more than 1000 chunks"));
}

#[test]
fn hook_ends_a_run_after_too_many_chunks() {
    let few = OnText(|run: &RunContext, _: &str| {
        if run.chunk_index >= 3 {
            run.abort("too many chunks");
        }
        ChunkAction::Pass
    });
    let mut session = rules("policies: []").middleware(few).build().session();
    session.begin(ModelConfig::default()).unwrap();
    (0..3).for_each(|_| assert_eq!(session.chunk(text("x")).unwrap().len(), 1));
    assert_eq!(abort_reason(session.chunk(text("x"))), "too many chunks");
}

const EMAIL: &str = "policies: [ { id: hide, stream: { redact: [email] } } ]";

#[test]
fn policies_filter_the_stream_before_hooks_and_lose_nothing_at_the_end() {
    let seen = Log::default();
    let spy = {
        let seen = seen.clone();
        OnText(move |_: &RunContext, delta: &str| {
            seen.record(delta);
            ChunkAction::Pass
        })
    };
    let mut session = rules(EMAIL).middleware(spy).build().session();
    let base = session.begin(ModelConfig::default()).unwrap();
    for _ in 0..2 {
        noon().block_on(session.before_model(base.clone())).unwrap();
        let mut passed = Vec::new();
        for delta in ["write to ana@exa", "mple.com, or do ", "not"] {
            passed.extend(session.chunk(text(delta)).unwrap());
        }
        passed.extend(session.chunk(finished(1)).unwrap());
        assert!(matches!(passed.pop(), Some(Chunk::Finished { .. })));
        let said: String = passed.iter().map(delta).collect();
        assert_eq!(said, "write to [email], or do not");
        assert_eq!(seen.take().concat(), said);
    }
}

#[test]
fn held_text_is_passed_on_if_the_stream_ends_without_notice() {
    let (mut session, _) = session(EMAIL);
    session.begin(ModelConfig::default()).unwrap();
    let mut passed = session.chunk(text("ask ana@example.co")).unwrap();
    passed.extend(session.rest_of_stream().unwrap());
    assert_eq!(passed.iter().map(delta).collect::<String>(), "ask [email]");
    assert_eq!(session.rest_of_stream().unwrap(), []);
}

#[test]
fn usage_counts_even_if_a_hook_drops_its_chunk() {
    struct ChunkDropper;
    impl Middleware for ChunkDropper {
        fn id(&self) -> &str {
            "deaf"
        }
        fn on_chunk(&self, _: &RunContext, _: &Chunk) -> ChunkAction {
            ChunkAction::discard()
        }
    }
    let mut session = rules("policies: []").middleware(ChunkDropper).build().session();
    session.begin(ModelConfig::default()).unwrap();
    assert_eq!(session.chunk(finished(7)).unwrap(), []);
    assert_eq!(session.stats().usage.tokens(), 7);
}

fn delta(chunk: &Chunk) -> &str {
    match chunk {
        Chunk::Text { delta, .. } => delta,
        other => panic!("{other:?}"),
    }
}
