//! `cost_after`: the cost of a call that is known only from its result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callgate::host::{StoreError, StoreFuture};
use callgate::json::{Value, json};
use callgate::{Outcome, ToolError};

use super::{EXECUTED, LIMITED};
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

/// The outcomes of calls whose tool returns these results, one after the other.
fn outcomes(limit: &str, results: &[Result<Value, &str>]) -> Vec<Outcome> {
    let clock = noon();
    let script = results.iter().cloned().map(|result| (Duration::ZERO, result.map_err(ToolError::new)));
    let tool = Tool::scripted(&clock, script);
    let text = format!("policies: [ {{ id: p, match: ask, rate_limit: {{ {limit} }} }} ]");
    let mut session = rules(&text).clock(clock.clone()).build().session();
    results.iter().map(|_| clock.block_on(session.execute(call("ask", json!({})), &tool))).collect()
}

fn codes(outcomes: &[Outcome]) -> Vec<(&str, &str)> {
    outcomes.iter().map(kind_and_code).collect()
}

const PERIODS: [&str; 4] = ["1d", "run", "1d, algorithm: fixed_window", "1d, algorithm: sliding_window"];

#[test]
fn results_correct_the_estimate_in_both_directions() {
    for per in PERIODS {
        let limit = format!("limit: 2, per: {per}, cost: 1, cost_after: result.usd");
        // 0.5 and 0.5 and 1.5: debt of 0.5.
        let usd = [0.5, 0.5, 1.5, 0.0].map(|usd| Ok(json!({ "usd": usd })));
        assert_eq!(codes(&outcomes(&limit, &usd)), [EXECUTED, EXECUTED, EXECUTED, LIMITED], "{per}");
        // Exactly used up, but an estimate needs room of its own.
        let usd = [1.5, 0.0, 0.0].map(|usd| Ok(json!({ "usd": usd })));
        assert_eq!(codes(&outcomes(&limit, &usd)), [EXECUTED, LIMITED, LIMITED], "{per}");
    }
}

#[test]
fn nothing_is_admitted_on_top_of_debt_even_if_its_estimate_is_zero() {
    for per in PERIODS {
        let limit = format!("limit: 2, per: {per}, cost: \"input.estimate ?? 0\", cost_after: result.usd");
        let usd = [2, 0].map(|usd| Ok(json!({ "usd": usd })));
        assert_eq!(codes(&outcomes(&limit, &usd)), [EXECUTED, LIMITED], "{per}");
    }
}

#[test]
fn a_cost_that_cannot_be_read_takes_all_that_is_left() {
    for result in [json!({}), json!({"usd": "0.1"}), json!({"usd": -1}), json!({"usd": null}), json!("free")]
    {
        for per in PERIODS {
            let limit = format!("limit: 20, per: {per}, cost: 1, cost_after: result.usd");
            let results = [Ok(result.clone()), Ok(json!({"usd": 0}))];
            assert_eq!(codes(&outcomes(&limit, &results)), [EXECUTED, LIMITED], "{result} {per}");
        }
    }
}

#[test]
fn a_failed_call_keeps_the_estimate() {
    let limit = "limit: 2, per: 1d, cost: 1, cost_after: result.usd";
    let results = [Err("500"), Ok(json!({"usd": 0})), Err("500"), Ok(json!({"usd": 0}))];
    let failed = ("failed", "tool_error");
    assert_eq!(codes(&outcomes(limit, &results)), [failed, EXECUTED, failed, LIMITED]);
}

/// A store that can fail to correct costs.
#[derive(Default)]
struct Uncorrectable(AtomicBool);

impl Alteration for Uncorrectable {
    fn correct<'a>(&'a self, good: StoreFuture<'a, ()>) -> StoreFuture<'a, ()> {
        match self.0.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(StoreError::Unavailable("not now".to_owned())) }),
            false => good,
        }
    }
}

/// The debt is not lost: until the store has it, nothing is admitted, and afterwards it counts.
#[test]
fn debt_that_the_store_did_not_take_denies_until_it_has_it() {
    let clock = noon();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!({ "usd": 9 })))]);
    let store = Arc::new(Altered::by(Uncorrectable::default()));
    let text = "policies: [ { id: p, match: ask, rate_limit: { limit: 5, per: 1d, cost: 1, cost_after: result.usd } } ]";
    let mut session = rules(text).clock(clock.clone()).store(store.clone()).build().session();
    let mut ask = || {
        let outcome = clock.block_on(session.execute(call("ask", json!({})), &tool));
        let (kind, code) = kind_and_code(&outcome);
        (kind, code.to_owned())
    };
    store.by.0.store(true, Ordering::Relaxed);
    assert_eq!(ask(), ("executed", "unmatched".to_owned()));
    assert_eq!(ask(), ("denied", "store_unavailable".to_owned()));
    store.by.0.store(false, Ordering::Relaxed);
    assert_eq!(ask(), ("denied", "rate_limited".to_owned()));
}

/// Each run of the tool by a script acquires an estimate of its own, which its own result corrects.
#[test]
fn a_script_that_calls_the_tool_twice_pays_twice() {
    let clock = noon();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!({ "usd": 2 })))]);
    let text = "policies:
  - { id: p, match: ask, rate_limit: { limit: 5, per: 1d, cost: 1, cost_after: result.usd } }
  - { id: s, match: ask, around: { script: 'next(input); next(input)' } }
";
    let mut session = rules(text).clock(clock.clone()).build().session();
    let mut ask = || clock.block_on(session.execute(call("ask", json!({})), &tool)).outcome.name();
    assert_eq!((ask(), ask(), ask()), ("executed", "failed", "denied"));
    assert_eq!(tool.count(), 3);
}
