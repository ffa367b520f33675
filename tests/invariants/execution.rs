//! Around the execution: scripts get nothing past gate, a store that fails loosens nothing, and limits admit what a naive
//! recount does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::host::{
    BoxFuture, CacheEntry, CacheSpace, Clock, Lookup, ManualClock, Refusal, StateStore, StoreError,
    StoreFuture, Take,
};
use callgate::state::MemoryStore;
use callgate::{Effect, Engine, OutcomeKind, SessionState, ToolCall, engine};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::vocabulary::{self, EVERYTHING, Scope, call, policies, rules, unmatched};
use super::{Witness, strictness_of};

fn noon() -> ManualClock {
    ManualClock::new("2026-01-01T12:00:00Z".parse().unwrap())
}

fn engine_at(clock: &ManualClock, rules: &str, store: Arc<dyn StateStore>) -> Engine {
    let chains = engine::load_text(rules).unwrap_or_else(|error| panic!("{error}\n{rules}"));
    Engine::builder(chains).clock(clock.clone()).seed(1).store(store).build()
}

/// What a script makes of its arguments before it calls `next` once more.
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

    /// I1 and I3: whatever a script passes to `next`, the tool receives only what the same bundle without the script runs.
    #[test]
    fn i1_i3_a_script_gets_no_arguments_to_the_tool_that_would_not_run_without_it(
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
        let outcome = clock.drive(session.execute(call, &witness));
        let plain = vocabulary::engine(&without);
        for seen in witness.seen() {
            let decision = plain.decide(&seen, &SessionState::default());
            prop_assert_eq!(decision.effect(), Effect::Run, "{} ran\n{}\n{}", seen.input, script, without);
        }
        // What is refused, or waits for a person, was not begun.
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

/// A store that fails from one of its answers on, for so many answers.
struct Flaky {
    inner: MemoryStore,
    fault: Fault,
    /// Good answers that are left; of those after it this many are bad.
    left: AtomicUsize,
    bad: AtomicUsize,
}

impl Flaky {
    fn answer<'a, T: Send + 'a>(&self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let down = |counter: &AtomicUsize| {
            counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1)).is_ok()
        };
        if down(&self.left) || !down(&self.bad) {
            return good;
        }
        match self.fault {
            Fault::PanicAtOnce => panic!("a mistake in the store"),
            Fault::Error => Box::pin(async { Err(StoreError("down".to_owned())) }),
            Fault::Panic => Box::pin(async { panic!("a mistake in the store") }),
            Fault::Hang => Box::pin(std::future::pending()),
        }
    }
}

impl StateStore for Flaky {
    fn take<'a>(&'a self, now: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        self.answer(self.inner.take(now, takes))
    }
    fn give_back(&self, key: &str) {
        self.inner.give_back(key);
    }
    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        self.inner.slot_freed()
    }
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, Lookup> {
        self.answer(self.inner.cache_get(now, space, key))
    }
    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.answer(self.inner.cache_put(space, key, entry, generation))
    }
    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.answer(self.inner.cache_clear(space))
    }
}

/// Limits that are soon used up, beside the others.
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

    /// I8: of two runs that are alike up to a call, the one whose store fails in that call is no more permissive.
    #[test]
    fn i8_a_store_that_fails_at_any_point_of_a_call_gets_nothing_through(
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
            let store = Arc::new(Flaky { inner: MemoryStore::default(), fault, left, bad });
            let engine = engine_at(&clock, &text, store.clone());
            let (mut session, witness) = (engine.session(), Witness::default());
            session.state_mut().set("conversationId", "c".into());
            let mut last = None;
            for (number, call) in calls.iter().enumerate() {
                if breaks && number + 1 == calls.len() {
                    store.left.store(after, Ordering::SeqCst);
                }
                last = Some(clock.drive(session.execute(call.clone(), &witness)));
            }
            last.unwrap()
        };
        let (working, broken) = (run(false), run(true));
        prop_assert!(
            strictness_of(&broken) >= strictness_of(&working),
            "{:?} became {:?}\n{}", working, broken, text
        );
    }
}

/// A limit as the model knows it.
#[derive(Clone, Debug)]
struct Limit {
    algorithm: &'static str,
    limit: i64,
    burst: i64,
    /// In seconds; it divides by `limit`, so that spans have no fractions.
    per: i64,
    key: Option<&'static str>,
    by_cost: bool,
    attempts: bool,
    for_all: bool,
    in_layer: bool,
}

impl Limit {
    fn policy(&self, id: &str) -> Value {
        let mut limit = json!({ "limit": self.limit });
        match self.algorithm {
            word @ ("run" | "conversation") => limit["per"] = word.into(),
            algorithm => {
                limit["per"] = format!("{}s", self.per).into();
                limit["algorithm"] = algorithm.into();
            }
        }
        if self.algorithm == "gcra" {
            limit["burst"] = self.burst.into();
        }
        if let Some(key) = self.key {
            limit["key"] = format!("$.input.{key}").into();
        }
        if self.by_cost {
            limit["cost"] = "$.input.cost".into();
        }
        if self.attempts {
            limit["count"] = "attempts".into();
        }
        json!({ "id": id, "match": if self.for_all { "*" } else { "pay" }, "rate_limit": limit })
    }

    /// Whether so much more fits, recounted from all that was taken: when, and how much.
    fn fits(&self, taken: &[(i64, i64)], now: i64, cost: i64) -> bool {
        let since =
            |start: i64| taken.iter().filter(|(at, _)| *at >= start).map(|(_, cost)| cost).sum::<i64>();
        match self.algorithm {
            _ if cost == 0 && self.algorithm != "run" => true,
            "fixed_window" => since(now - now.rem_euclid(self.per)) + cost <= self.limit,
            "sliding_window" => since(now - self.per + 1) + cost <= self.limit,
            "gcra" => {
                // What is still to flow back, times `per`.
                let mut level = 0;
                let mut last = i64::MIN / 2;
                for (at, cost) in taken {
                    level =
                        0.max(level - at.saturating_sub(last).saturating_mul(self.limit)) + cost * self.per;
                    last = *at;
                }
                level = 0.max(level - now.saturating_sub(last).saturating_mul(self.limit));
                level + cost * self.per <= self.burst * self.per
            }
            _ => since(i64::MIN) + cost <= self.limit,
        }
    }
}

fn limit() -> impl Strategy<Value = Limit> {
    let algorithm = select(&["gcra", "gcra", "fixed_window", "sliding_window", "run", "conversation"][..]);
    let per = select(&[60i64, 120, 3600][..]);
    let key = prop::option::of(select(&["a", "b"][..]));
    (algorithm, 1i64..7, 1i64..9, per, key, any::<[bool; 4]>()).prop_map(
        |(algorithm, limit, burst, per, key, [by_cost, attempts, for_all, in_layer])| Limit {
            algorithm,
            limit: if limit == 5 && per == 60 { 6 } else { limit },
            burst,
            per,
            key,
            by_cost,
            attempts,
            for_all,
            in_layer,
        },
    )
}

/// One step: so many seconds later, in which session, which tool, with what.
type Step = (i64, usize, &'static str, i64, i64, i64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![3 => Just(0i64), 3 => 1i64..20, 1 => 20i64..200, 1 => Just(60i64)];
    let tool = select(&["pay", "pay", "pay", "other", "denied"][..]);
    vec((pause, 0usize..2, tool, 0i64..2, 0i64..2, 0i64..4), 1..50)
}

/// What the model counts: of which limit, in which session (where that matters), for which key.
type Counts = HashMap<(usize, usize, i64), Vec<(i64, i64)>>;

fn check_against_the_model(limits: &[Limit], steps: &[Step], in_rounds: bool) -> Result<(), TestCaseError> {
    let clock = noon();
    let policies = |layer: bool| -> Vec<Value> {
        // Both layers use the same ids: their counts are apart all the same.
        let chosen = limits.iter().filter(|limit| limit.in_layer == layer);
        chosen.enumerate().map(|(place, limit)| limit.policy(&format!("p{place}"))).collect()
    };
    let mut bundle = policies(false);
    bundle.push(json!({ "id": "no", "match": "denied", "deny": {} }));
    let engine =
        engine_at(&clock, &json!({ "policies": bundle }).to_string(), Arc::new(MemoryStore::default()));
    let layer = engine::load_text(&json!({ "policies": policies(true) }).to_string()).unwrap();
    let mut sessions: Vec<_> = (0..2).map(|_| engine.session().with_layer(layer.clone())).collect();
    for session in &mut sessions {
        session.state_mut().set("conversationId", "c".into());
    }
    let mut counts = Counts::new();
    let mut admitted = |now: i64, (_, session, tool, a, b, cost): Step| {
        let concerned: Vec<_> = limits
            .iter()
            .enumerate()
            .filter(|(_, limit)| limit.for_all || tool == "pay")
            .map(|(place, limit)| {
                let run = if limit.algorithm == "run" { session } else { usize::MAX };
                let key = match limit.key {
                    Some("a") => a,
                    Some(_) => b,
                    None => -1,
                };
                (limit, (place, run, key), if limit.by_cost { cost } else { 1 })
            })
            .collect();
        let mut admitted = tool != "denied";
        for attempts in [true, false] {
            let these = || concerned.iter().filter(|(limit, ..)| limit.attempts == attempts);
            let fits = |(limit, of, cost): &(&Limit, (usize, usize, i64), i64), counts: &Counts| {
                limit.fits(counts.get(of).map(Vec::as_slice).unwrap_or_default(), now, *cost)
            };
            if attempts {
                for claim in these() {
                    match fits(claim, &counts) {
                        true => counts.entry(claim.1).or_default().push((now, claim.2)),
                        false => admitted = false,
                    }
                }
            } else {
                admitted &= these().all(|claim| fits(claim, &counts));
                if admitted {
                    these().for_each(|claim| counts.entry(claim.1).or_default().push((now, claim.2)));
                }
            }
        }
        admitted
    };
    let input = |step: &Step| json!({ "a": step.3, "b": step.4, "cost": step.5 });
    let witness = Witness::default();
    for steps in steps.chunks(if in_rounds { 4 } else { 1 }) {
        clock.advance(Duration::from_secs(steps[0].0.unsigned_abs()));
        let session = steps[0].1;
        let now = clock.now().as_second();
        let calls: Vec<ToolCall> = steps.iter().map(|step| ToolCall::new("", step.2, input(step))).collect();
        let outcomes = match in_rounds {
            true => clock.drive(sessions[session].execute_round(calls, &witness)),
            false => vec![clock.drive(sessions[session].execute(calls[0].clone(), &witness))],
        };
        for (step, outcome) in steps.iter().zip(outcomes) {
            let step = (step.0, session, step.2, step.3, step.4, step.5);
            let expected = admitted(now, step);
            prop_assert_eq!(
                outcome.outcome == OutcomeKind::Executed,
                expected,
                "{:?} at {}: {:?}",
                step,
                now,
                outcome
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_limit_admits_exactly_what_a_recount_admits(limit in limit(), steps in steps()) {
        check_against_the_model(&[limit], &steps, false)?;
    }

    #[test]
    fn several_limits_together_admit_exactly_what_a_recount_admits(
        limits in vec(limit(), 2..6),
        steps in steps(),
        in_rounds in any::<bool>(),
    ) {
        check_against_the_model(&limits, &steps, in_rounds)?;
    }
}
