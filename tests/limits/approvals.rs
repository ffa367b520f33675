//! `on_exceed: approval`: a call over the limit requires an approval, runs if it is approved, and is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callgate::Outcome;
use callgate::host::{StoreError, StoreFuture};
use callgate::json::{Value, json};
use callgate::state::{LimitAcquisition, LimitRefusal, MemoryStore};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::approvals::scene::Scene;
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::kind_and_code;

const APPROVED: (&str, &str) = ("executed", "approved");
const SUSPENDED: (&str, &str) = ("suspended", "approval_required");

fn spending(settings: &str) -> String {
    format!(
        "policies: [ {{ id: spend, match: pay, rate_limit: {{ cost: input.amount, on_exceed: approval, {settings} }} }} ]"
    )
}

/// The outcome of a new call.
fn pay(scene: &mut Scene, amount: &Value) -> Outcome {
    let id = format!("c{}", scene.history.messages().len());
    scene.model_calls(&[(&id, "pay", json!({ "amount": amount }))]);
    scene.round().outcomes.remove(0)
}

fn last_request(scene: &Scene) -> String {
    scene.requests().last().unwrap().approval_id.clone()
}

/// Approves the last request, and resumes.
fn approve(scene: &mut Scene) -> Outcome {
    scene.approve_of(&last_request(scene));
    scene.resume().outcomes.remove(0)
}

#[test]
fn an_approved_call_runs_over_the_limit_and_is_counted() {
    for per in ["1d", "1d, algorithm: fixed_window", "1d, algorithm: sliding_window"] {
        let rules = spending(&format!("limit: 100, per: {per}"));
        let mut scene = Scene::new(&rules);
        assert_eq!(pay(&mut scene, &json!(60)).outcome.name(), "executed", "{per}");
        let suspended = pay(&mut scene, &json!(50));
        assert_eq!(kind_and_code(&suspended), SUSPENDED, "{per}");
        let request = suspended.approval.unwrap();
        assert_eq!(request.policies, ["spend"]);
        assert!(request.message.unwrap().contains("exceeds `spend`, which allows 100 per"));
        // Nothing was acquired yet.
        assert_eq!(pay(&mut scene, &json!(1)).outcome.name(), "executed", "{per}");
        scene.approve_of(&request.approval_id);
        assert_eq!(kind_and_code(&scene.resume().outcomes[0]), APPROVED, "{per}");
        assert_eq!(kind_and_code(&pay(&mut scene, &json!(0.1))), SUSPENDED, "{per}");
        assert_eq!(scene.tool.count(), 3);
    }
}

#[test]
fn a_call_that_is_denied_acquires_nothing() {
    let mut scene = Scene::new(&spending("limit: 100, per: 1d"));
    assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), SUSPENDED);
    scene.deny(None);
    assert_eq!(kind_and_code(&scene.resume().outcomes[0]), ("denied", "approval_denied"));
    assert_eq!(pay(&mut scene, &json!(100)).outcome.name(), "executed");
}

#[test]
fn a_limit_joins_the_request_of_other_policies_last() {
    let rules = "policies:
  - { id: spend, priority: 9, match: pay, rate_limit: { limit: 100, per: 1d, cost: input.amount, on_exceed: approval } }
  - { id: ask, match: pay, approval: { message: 'Pay {{ input.amount }}?' } }
";
    let mut scene = Scene::new(rules);
    let within = pay(&mut scene, &json!(90));
    assert_eq!(within.approval.unwrap().policies, ["ask"]);
    // It was only looked up.
    let over = pay(&mut scene, &json!(101));
    assert_eq!(kind_and_code(&over), SUSPENDED);
    assert_eq!(over.reason.policy.as_deref(), Some("ask"));
    let request = over.approval.unwrap();
    assert_eq!(request.policies, ["ask", "spend"]);
    let question = request.message.unwrap();
    assert!(question.starts_with("Pay 101?") && question.contains("`spend`"), "{question}");
    scene.approve_of(&request.approval_id);
    let outcomes = scene.resume().outcomes;
    assert!(outcomes.iter().any(|outcome| kind_and_code(outcome) == APPROVED), "{outcomes:#?}");
    assert_eq!(scene.tool.count(), 1);
}

/// What the first request did not cover is requested when the call resumes.
#[test]
fn a_limit_that_is_used_up_meanwhile_requests_an_approval_of_its_own() {
    let rules = "policies:
  - { id: spend, match: '*', rate_limit: { limit: 100, per: 1d, cost: input.amount, on_exceed: approval } }
  - { id: ask, match: pay, approval: {} }
";
    let mut scene = Scene::new(rules);
    assert_eq!(pay(&mut scene, &json!(90)).approval.unwrap().policies, ["ask"]);
    scene.model_calls(&[("other", "move", json!({ "amount": 50 }))]);
    assert_eq!(scene.round().outcomes[0].outcome.name(), "executed");
    let again = approve(&mut scene);
    assert_eq!(kind_and_code(&again), SUSPENDED);
    assert_eq!(again.approval.unwrap().policies, ["spend"]);
    assert_eq!(kind_and_code(&approve(&mut scene)), APPROVED);
    assert_eq!(scene.tool.count(), 2);
}

#[test]
fn an_approval_is_for_these_arguments_and_this_policy() {
    let rules = spending("limit: 100, per: 1d");
    let changes = [
        (rules.clone(), "executed"),
        (rules.replace("limit: 100", "limit: 99"), "suspended"),
        (rules.replace("per: 1d", "per: 1d, approval: { approvers: [bea] }"), "suspended"),
        (rules.replace("on_exceed: approval", "on_exceed: deny"), "denied"),
    ];
    for (changed, expected) in changes {
        let mut scene = Scene::new(&rules);
        assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), SUSPENDED);
        scene.rules.clone_from(&changed);
        assert_eq!(approve(&mut scene).outcome.name(), expected, "{changed}");
    }
    let mut scene = Scene::new(&rules);
    assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), SUSPENDED);
    assert_eq!(kind_and_code(&approve(&mut scene)), APPROVED);
    assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), SUSPENDED);
}

/// Nobody is asked to approve an amount that is unknown.
#[test]
fn an_unknown_cost_or_key_denies() {
    let rules = spending("limit: 100, per: 1d, key: input.account");
    for input in
        [json!({ "amount": "1", "account": "a" }), json!({ "account": "a" }), json!({ "amount": -1 })]
    {
        let mut scene = Scene::new(&rules);
        scene.model_calls(&[("c", "pay", input.clone())]);
        assert_eq!(kind_and_code(&scene.round().outcomes[0]), ("denied", "undecided"), "{input}");
    }
}

#[test]
fn a_stricter_policy_denies_without_a_request() {
    for stricter in ["deny: {}", "rate_limit: { limit: 1, per: 1d, cost: input.amount }"] {
        let rules = spending("limit: 100, per: 1d")
            .replace(" ]", &format!(", {{ id: no, match: pay, {stricter} }} ]"));
        let mut scene = Scene::new(&rules);
        let outcome = pay(&mut scene, &json!(101));
        assert_eq!(outcome.outcome.name(), "denied", "{stricter}");
        assert_eq!((outcome.reason.policy.as_deref(), outcome.approval), (Some("no"), None));
    }
}

#[test]
fn a_limit_of_the_run_is_asked_about_and_counted() {
    let text = spending("limit: 100, per: run, approval: { message: 'Beyond the run?' }");
    let mut scene = Scene::new(&text);
    let outcome = pay(&mut scene, &json!(101));
    assert_eq!(kind_and_code(&outcome), SUSPENDED);
    assert_eq!(outcome.approval.unwrap().message.as_deref(), Some("Beyond the run?"));
    assert_eq!(kind_and_code(&approve(&mut scene)), APPROVED);
}

#[test]
fn a_remembered_approval_covers_later_calls_over_the_limit() {
    let rules = spending("limit: 100, per: 1d, approval: { remember: { scope: arguments, for: 8h } }");
    let mut scene = Scene::new(&rules);
    assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), SUSPENDED);
    assert_eq!(kind_and_code(&approve(&mut scene)), APPROVED);
    let again = pay(&mut scene, &json!(101));
    assert_eq!(kind_and_code(&again), APPROVED);
    assert!(again.approved.unwrap().remembered);
    assert_eq!(kind_and_code(&pay(&mut scene, &json!(102))), SUSPENDED);
}

/// A round shows one request; the other call is not run.
#[test]
fn approvals_of_a_round_can_be_requested_one_at_a_time() {
    let mut scene = Scene::new(&spending("limit: 100, per: 1d, approval: { present: first }"));
    scene.model_calls(&[("a", "pay", json!({ "amount": 101 })), ("b", "pay", json!({ "amount": 102 }))]);
    let outcomes = scene.round().outcomes;
    assert_eq!(outcomes.iter().map(kind_and_code).collect::<Vec<_>>(), [SUSPENDED, ("denied", "ask_again")]);
}

/// A store whose operations fail one by one.
#[derive(Default)]
struct Failing {
    acquire: AtomicBool,
    correct: AtomicBool,
}

impl Failing {
    fn result<'a, T: Send + 'a>(fails: &AtomicBool, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match fails.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(StoreError::Unavailable("not now".to_owned())) }),
            false => good,
        }
    }
}

impl Alteration for Failing {
    fn take<'a>(
        &'a self,
        good: StoreFuture<'a, Vec<LimitRefusal>>,
        _: &'a MemoryStore,
        _: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Self::result(&self.acquire, good)
    }

    fn correct<'a>(&'a self, good: StoreFuture<'a, ()>) -> StoreFuture<'a, ()> {
        Self::result(&self.correct, good)
    }
}

#[test]
fn a_failing_store_denies_and_requests_nothing() {
    for (setting, expected) in
        [("deny", ("denied", "store_unavailable")), ("allow", ("executed", "unmatched"))]
    {
        let store = Arc::new(Altered::by(Failing::default()));
        let mut scene = Scene::new(&spending(&format!("limit: 100, per: 1d, on_store_error: {setting}")));
        scene.store = store.clone();
        store.by.acquire.store(true, Ordering::Relaxed);
        assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), expected);
    }
}

/// An approved call that cannot be counted does not run.
#[test]
fn an_approved_call_that_cannot_be_counted_is_denied() {
    let store = Arc::new(Altered::by(Failing::default()));
    let mut scene = Scene::new(&spending("limit: 100, per: 1d"));
    scene.store = store.clone();
    assert_eq!(kind_and_code(&pay(&mut scene, &json!(101))), SUSPENDED);
    store.by.correct.store(true, Ordering::Relaxed);
    assert_eq!(kind_and_code(&approve(&mut scene)), ("denied", "store_unavailable"));
    assert_eq!(scene.tool.count(), 0);
}

/// Whether an amount fits, by a recount of everything that ran before (time in seconds and amount).
fn fits(algorithm: &str, taken: &[(i64, i64)], now: i64, cost: i64) -> bool {
    const PER: i64 = 100;
    const LIMIT: i64 = 10;
    let since = |start: i64| taken.iter().filter(|(at, _)| *at >= start).map(|(_, cost)| cost).sum::<i64>();
    match algorithm {
        "fixed_window" => since(now - now.rem_euclid(PER)) + cost <= LIMIT,
        "sliding_window" => since(now - PER + 1) + cost <= LIMIT,
        _ => {
            let drained = |level: i64, from: i64, to: i64| 0.max(level - (to - from) * LIMIT);
            let (level, last) = taken
                .iter()
                .fold((0, 0), |(level, last), (at, cost)| (drained(level, last, *at) + cost * PER, *at));
            drained(level, last, now) + cost * PER <= LIMIT * PER
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Calls that fit run, others are suspended, and approved ones count like those that fit.
    #[test]
    fn approved_calls_count_in_a_recount(
        algorithm in select(&["gcra", "fixed_window", "sliding_window"][..]),
        steps in vec((0u64..60, 1i64..9, any::<bool>()), 1..14),
    ) {
        let mut scene = Scene::new(&spending(&format!("limit: 10, per: 100s, algorithm: {algorithm}")));
        let mut taken = Vec::new();
        for (pause, cost, is_approved) in steps {
            scene.advance(pause);
            let now = callgate::host::Clock::now(&scene.clock).as_second();
            scene.history = callgate::message::History::default();
            scene.conversation = format!("talk {}", scene.tool.count() + taken.len() + now.unsigned_abs() as usize);
            let outcome = pay(&mut scene, &json!(cost));
            let expected = if fits(algorithm, &taken, now, cost) { "executed" } else { "suspended" };
            prop_assert_eq!(outcome.outcome.name(), expected, "{} at {}, after {:?}", cost, now, taken);
            if expected == "suspended" {
                if !is_approved {
                    continue;
                }
                let resumed = approve(&mut scene);
                prop_assert_eq!(kind_and_code(&resumed), APPROVED);
            }
            taken.push((now, cost));
        }
        prop_assert_eq!(scene.tool.count(), taken.len());
    }
}
