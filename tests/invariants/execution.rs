//! Around the execution: scripts cannot bypass the gate, and a failing store makes nothing more permissive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::host::{ManualClock, StateStore, StoreError, StoreFuture};
use callgate::json::{Value, json};
use callgate::state::MemoryStore;
use callgate::{Effect, Engine, OutcomeKind, SessionState, engine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::vocabulary::{self, EVERYTHING, Scope, call, policies, rules, unmatched};
use super::{Witness, strictness, strictness_of};
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures;

pub fn noon() -> ManualClock {
    ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap())
}

pub fn engine_at(clock: &ManualClock, rules: &str, store: Arc<dyn StateStore>) -> Engine {
    let chains = engine::load_text(rules).unwrap_or_else(|error| panic!("{error}\n{rules}"));
    Engine::builder(chains).keys(fixtures::keys()).clock(clock.clone()).seed(1).store(store).build()
}

/// What a script does to its arguments before it calls `next` again.
fn edit() -> impl Strategy<Value = String> {
    select(
        &[
            "input.amount = 0;",
            "input.amount = 3;",
            "input.amount = \"3\";",
            "input.amount += 1;",
            "input.to = \"eve@evil.test\";",
            "input.to = \"ana@a.test\";",
            "input.file = \"/etc/passwd\";",
            "input.url = \"https://evil.test/\";",
            "input.flag = !input.flag;",
            "input.tags = [];",
            "input.tags = 7;",
            "input.nested = #{};",
            "input.nested.level = 3;",
            "input = #{};",
            "input = 5;",
            "",
        ][..],
    )
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// I1 and I3: whatever a script passes to `next`, the tool receives only calls that the same bundle would run without the script.
    #[test]
    fn i1_i3_script_cannot_pass_refused_arguments_to_the_tool(
        (unmatched, policies, call) in (
            unmatched(),
            policies(Scope { transforms: false, wraps: false, ..EVERYTHING }),
            call(),
        ),
        edits in vec((edit(), any::<bool>()), 1..6),
        place in select(&["bundle", "layer"][..]),
    ) {
        let script: String = edits
            .iter()
            .map(|(edit, catches)| match catches {
                true => format!("{edit} try {{ next(input) }} catch (error) {{ }}\n"),
                false => format!("{edit} next(input);\n"),
            })
            .collect();
        let wrap = json!({ "id": "wrap", "around": { "script": script } });
        let without = rules(unmatched, "no_match", &policies);
        let clock = noon();
        let engine = |rules: &str| engine_at(&clock, rules, Arc::new(MemoryStore::default()));
        let mut session = match place {
            "layer" => {
                let layer = engine::load_text(&json!({ "policies": [wrap] }).to_string()).unwrap();
                engine(&without).session().with_layer(layer)
            }
            _ => {
                let mut wrapped = policies.clone();
                wrapped.push(wrap);
                engine(&rules(unmatched, "no_match", &wrapped)).session()
            }
        };
        let witness = Witness::default();
        let outcome = clock.block_on(session.execute(call, &witness));
        let plain = vocabulary::engine(&without);
        for seen in witness.seen() {
            let decision = plain.decide(&seen, &SessionState::default());
            prop_assert_eq!(decision.effect(), Effect::Run, "{} ran\n{}\n{}", seen.input, script, without);
        }
        // A refused or pending call was not started.
        if strictness_of(&outcome) > 0 && outcome.outcome != OutcomeKind::Halted {
            prop_assert!(witness.seen().is_empty(), "{:?}\n{}", outcome, script);
        }
    }
}

/// How a store fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Error,
    Panic,
    PanicAtOnce,
    Hang,
}

/// A store that fails from one of its answers on, for a number of answers.
struct Flaky {
    fault: Fault,
    /// The number of good answers left, and the number of failures after them.
    left: AtomicUsize,
    bad: AtomicUsize,
}

impl Alteration for Flaky {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let down = |counter: &AtomicUsize| {
            counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1)).is_ok()
        };
        if down(&self.left) || !down(&self.bad) {
            return good;
        }
        match self.fault {
            Fault::PanicAtOnce => panic!("a mistake in the store"),
            Fault::Error => Box::pin(async { Err(StoreError::Unavailable("down".to_owned())) }),
            Fault::Panic => Box::pin(async { panic!("a mistake in the store") }),
            Fault::Hang => Box::pin(std::future::pending()),
        }
    }
}

/// Strict limits, beside the others.
fn tight() -> impl Strategy<Value = Value> {
    let when =
        select(vec![json!("*"), json!("pay"), json!({ "where": { "path": "$.input.flag", "eq": true } })]);
    let kind = select(vec![
        json!({ "rate_limit": { "limit": 2, "per": "1h" } }),
        json!({ "rate_limit": { "limit": 3, "per": "1h", "cost": "$.input.amount", "algorithm": "sliding_window" } }),
        json!({ "rate_limit": { "limit": 2, "per": "1h", "count": "attempts", "key": "$.input.to" } }),
        json!({ "rate_limit": { "limit": 2, "per": "1m", "on_exceed": "wait", "max_wait": "5m" } }),
        json!({ "rate_limit": { "limit": 3, "per": "conversation", "on_exceed": "halt" } }),
        json!({ "rate_limit": { "limit": 2, "per": "run" } }),
        json!({ "concurrency": { "max": 1, "key": "$.input.to" } }),
    ]);
    (when, kind).prop_map(|(when, mut policy)| {
        policy["match"] = when;
        policy
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// I8: of two runs that are alike up to a call, the run whose store fails during that call is not more permissive.
    #[test]
    fn i8_store_failure_at_any_point_of_a_call_lets_nothing_run(
        unmatched in unmatched(),
        (mut policies, limits) in (policies(Scope { transforms: false, ..EVERYTHING }), vec(tight(), 1..4)),
        calls in vec(call(), 1..6),
        fault in select(vec![Fault::Error, Fault::Panic, Fault::PanicAtOnce, Fault::Hang]),
        (after, bad) in (0usize..6, 1usize..4),
    ) {
        policies.extend(limits);
        let text = rules(unmatched, "no_match", &policies);
        let run = |breaks: bool| {
            let clock = noon();
            let (left, bad) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(bad));
            let store = Arc::new(Altered::by(Flaky { fault, left, bad }));
            let engine = engine_at(&clock, &text, store.clone());
            let (mut session, witness) = (engine.session(), Witness::default());
            session.state_mut().set_run_info("conversationId", "c".into());
            let mut last = None;
            for (number, call) in calls.iter().enumerate() {
                if breaks && number + 1 == calls.len() {
                    store.by.left.store(after, Ordering::SeqCst);
                }
                last = Some(clock.block_on(session.execute(call.clone(), &witness)));
            }
            last.unwrap()
        };
        let (working, broken) = (run(false), run(true));
        // A call that is denied because of the store never reaches the script whose own arguments would have been halted.
        let halts_script_input = calls.last().is_some_and(|call| call.input != working.input);
        let expected = match working.outcome {
            OutcomeKind::Halted if halts_script_input => strictness(Effect::Deny),
            _ => strictness_of(&working),
        };
        prop_assert!(
            strictness_of(&broken) >= expected,
            "{:?} became {:?}\n{}", working, broken, text
        );
    }
}
