//! Property test: limits admit exactly as much as a naive recount of everything admitted before.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callgate::host::Clock;
use callgate::json::{Value, json};
use callgate::state::MemoryStore;
use callgate::{OutcomeKind, ToolCall, engine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::Witness;
use super::execution::{engine_at, noon};

/// A limit in the reference model.
#[derive(Clone, Debug)]
struct Limit {
    algorithm: &'static str,
    limit: i64,
    burst: i64,
    /// In seconds; divisible by `limit`, so that durations have no fractions.
    per: i64,
    key: Option<&'static str>,
    by_cost: bool,
    /// The real cost is known only afterwards.
    after: bool,
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
        if self.after {
            limit["cost"] = "1 + input.cost".into();
            limit["cost_after"] = "input.real".into();
        }
        if self.attempts {
            limit["count"] = "attempts".into();
        }
        json!({ "id": id, "match": if self.for_all { "*" } else { "pay" }, "rate_limit": limit })
    }

    /// Whether this amount fits, by a recount of everything acquired (time and amount).
    fn fits(&self, taken: &[(i64, i64)], now: i64, cost: i64) -> bool {
        let since =
            |start: i64| taken.iter().filter(|(at, _)| *at >= start).map(|(_, cost)| cost).sum::<i64>();
        match self.algorithm {
            _ if cost == 0 && self.algorithm != "run" => true,
            "fixed_window" => since(now - now.rem_euclid(self.per)) + cost <= self.limit,
            "sliding_window" => since(now - self.per + 1) + cost <= self.limit,
            "gcra" => {
                // The amount that is still to be refilled, times `per`.
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
    (algorithm, 1i64..7, 1i64..9, per, key, any::<[bool; 5]>()).prop_map(
        |(algorithm, limit, burst, per, key, [by_cost, after, attempts, for_all, in_layer])| Limit {
            algorithm,
            limit: if limit == 5 && per == 60 { 6 } else { limit },
            burst,
            per,
            key,
            by_cost,
            after: after && !attempts,
            attempts,
            for_all,
            in_layer,
        },
    )
}

/// One step: seconds to advance, session, tool, and arguments.
type Step = (i64, usize, &'static str, i64, i64, i64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![3 => Just(0i64), 3 => 1i64..20, 1 => 20i64..200, 1 => Just(60i64)];
    let tool = select(&["pay", "pay", "pay", "other", "denied"][..]);
    vec((pause, 0usize..2, tool, 0i64..2, 0i64..2, 0i64..4), 1..50)
}

/// What a call costs in truth: less than the estimate, more, or very much more.
fn real_cost(a: i64, b: i64, cost: i64) -> i64 {
    [[0, 1], [cost + 1, 3 * cost + 2]][a as usize][b as usize]
}

/// The counts of the model, by limit, session (if relevant) and key.
type Counts = HashMap<(usize, usize, i64), Vec<(i64, i64)>>;

fn check_against_the_model(limits: &[Limit], steps: &[Step], in_rounds: bool) -> Result<(), TestCaseError> {
    let clock = noon();
    let policies = |layer: bool| -> Vec<Value> {
        // Both layers use the same ids, but their counts are separate.
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
        session.state_mut().set_run_info("conversationId", "c".into());
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
                let acquired = match limit {
                    Limit { after: true, .. } => 1 + cost,
                    Limit { by_cost: true, .. } => cost,
                    _ => 1,
                };
                (limit, (place, run, key), acquired)
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
                    for (limit, of, acquired) in these() {
                        let counted = if limit.after { real_cost(a, b, cost) } else { *acquired };
                        counts.entry(*of).or_default().push((now, counted));
                    }
                }
            }
        }
        admitted
    };
    let input = |step: &Step| json!({ "a": step.3, "b": step.4, "cost": step.5, "real": real_cost(step.3, step.4, step.5) });
    let witness = Witness::default();
    for steps in steps.chunks(if in_rounds { 4 } else { 1 }) {
        clock.advance(Duration::from_secs(steps[0].0.unsigned_abs()));
        let session = steps[0].1;
        let now = clock.now().as_second();
        let calls: Vec<ToolCall> = steps.iter().map(|step| ToolCall::new("", step.2, input(step))).collect();
        let outcomes = match in_rounds {
            true => clock.block_on(sessions[session].execute_round(calls, &witness)),
            false => vec![clock.block_on(sessions[session].execute(calls[0].clone(), &witness))],
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
    fn limit_admits_exactly_what_a_recount_admits(limit in limit(), steps in steps()) {
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
