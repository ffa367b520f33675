//! Rounds that an SDK announces: their calls take effect in the order of the round, in whatever order the SDK makes them.

use callgate::host::ManualClock;
use callgate::json::json;
use callgate::message::CallPart;
use callgate::session::SdkSession;
use callgate::{Outcome, ToolCall, ToolError, ToolExecutor, ToolResponse};
use proptest::prelude::*;

use crate::fixtures::{kind_and_code, noon, rules};

const RULES: &str = "policies:
  - { id: status, match: set, fact: { name: status, value: $.input.status } }
  - { id: order, match: set, fact: { name: order, key: $.input.order, value: $.input.status } }
  - { id: web, match: fetch, label: { add: [web] } }
  - { id: after-bad, match: { tool: fetch, where: { path: $.session.facts.status, eq: bad } }, label: { add: [bad-web] } }
  - { id: no-pay, match: { tool: pay, where: { path: $.session.facts.status, eq: bad } }, deny: { message: 'it is {{ session.facts.status }}' } }
  - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: web } }, deny: {} }
  - { id: twice, match: { tool: send, where: { path: $.session.calls.send, gte: 2 } }, deny: {} }
  - { id: few, match: pay, rate_limit: { limit: 2, per: run } }";

/// Tools that take `ms` of the clock's time.
#[derive(Clone)]
struct Slow(ManualClock);

impl ToolExecutor for Slow {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        use callgate::host::Clock;
        let ms = call.input["ms"].as_u64().unwrap_or_default();
        self.0.sleep(std::time::Duration::from_millis(ms)).await;
        Ok(json!({ "did": call.tool }).into())
    }
}

type Step = (&'static str, &'static str, &'static str, u64);

fn step() -> impl Strategy<Value = Step> {
    let tools = prop::sample::select(["set", "set", "set", "fetch", "pay", "send", "other"].as_slice());
    let status = prop::sample::select(["good", "bad"].as_slice());
    let millis = prop::sample::select([0_u64, 5, 3_000].as_slice());
    (tools, status, prop::sample::select(["o1", "o2"].as_slice()), millis)
}

fn parts(steps: &[Step]) -> Vec<CallPart> {
    let part = |(index, (tool, status, order, ms)): (usize, &Step)| {
        let input = json!({ "status": status, "order": order, "ms": ms });
        CallPart::new(format!("c{index}"), *tool, input)
    };
    steps.iter().enumerate().map(part).collect()
}

fn armed(text: &str) -> (SdkSession<Slow>, ManualClock) {
    let clock = noon();
    (rules(text).clock(clock.clone()).build().session().into_sdk_session(Slow(clock.clone())), clock)
}

fn line(outcome: &Outcome) -> String {
    format!("{} {:?} {:?}", outcome.outcome, outcome.reason, outcome.output)
}

/// The outcomes of an announced round, in the order of the round, and the session state afterwards. The calls start in the order `starts`:
/// each once the last one has ended, or all at once.
fn run(steps: &[Step], starts: &[usize], at_once: bool) -> Vec<String> {
    let (armed, clock) = armed(RULES);
    let parts = parts(steps);
    clock.block_on(async {
        armed.announce_round(&parts).await;
        let mut calls: Vec<_> = starts
            .iter()
            .map(|index| {
                let (armed, part) = (armed.clone(), parts[*index].clone());
                (*index, Box::pin(async move { armed.call(&part.id, &part.name, part.input).await.outcome }))
            })
            .collect();
        let mut outcomes = vec![String::new(); parts.len()];
        if at_once {
            // Each is polled once, in this order, before any of them continues.
            let mut ended = Vec::new();
            std::future::poll_fn(|context| {
                calls.retain_mut(|(index, call)| match call.as_mut().poll(context) {
                    std::task::Poll::Ready(outcome) => {
                        ended.push((*index, outcome));
                        false
                    }
                    std::task::Poll::Pending => true,
                });
                if calls.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            ended.iter().for_each(|(index, outcome)| outcomes[*index] = line(outcome));
        } else {
            for (index, call) in calls {
                outcomes[index] = line(&call.await);
            }
        }
        let session = armed.session().await;
        let state = session.state();
        let document = state.document();
        outcomes.push(format!("{} {}", document["facts"], document["calls"]));
        outcomes.push(format!("{} {:?}", document["labels"], state.unknown_parts()));
        outcomes
    })
}

fn shuffled() -> impl Strategy<Value = (Vec<Step>, Vec<usize>)> {
    prop::collection::vec(step(), 1..7).prop_flat_map(|steps| {
        let starts: Vec<usize> = (0..steps.len()).collect();
        (Just(steps), Just(starts).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn concurrent_calls_take_effect_in_the_order_of_the_round((steps, starts) in shuffled()) {
        let in_order: Vec<usize> = (0..steps.len()).collect();
        prop_assert_eq!(run(&steps, &starts, true), run(&steps, &in_order, false));
    }

    #[test]
    fn call_made_before_its_dependencies_is_undecided((steps, starts) in shuffled()) {
        let in_order: Vec<usize> = (0..steps.len()).collect();
        let (made, expected) = (run(&steps, &starts, false), run(&steps, &in_order, false));
        let refused = |index: usize| !made[index].starts_with("executed");
        for index in 0..steps.len() {
            // Refused calls before it have no effects, so only rounds without one can be compared.
            if !(0..index).any(refused) && !refused(index) {
                prop_assert_eq!(&made[index], &expected[index]);
            }
        }
        if !(0..steps.len()).any(refused) {
            prop_assert_eq!(&made[steps.len()], &expected[steps.len()]);
        }
    }
}

#[test]
fn fact_of_the_later_call_wins_when_the_sdk_makes_it_first() {
    let steps = [("set", "good", "o1", 0), ("set", "bad", "o1", 0), ("pay", "", "", 0)];
    for starts in [[0, 1, 2], [1, 0, 2]] {
        let made = run(&steps, &starts, false);
        assert!(made[2].starts_with("denied") && made[2].contains("it is bad"), "{made:?}");
        assert!(made[3].contains(r#""status":"bad""#), "{made:?}");
    }
    let made = run(&steps, &[2, 0, 1], false);
    assert!(made[2].starts_with("denied") && made[2].contains("undecided"), "{made:?}");
}

/// If the host uses the session between two calls, their effects are merged: state that is then out of order is unknown.
#[test]
fn state_that_can_no_longer_be_ordered_is_unknown() {
    let (armed, clock) = armed(RULES);
    let parts = parts(&[("set", "bad", "o1", 0), ("set", "good", "o1", 0), ("pay", "", "", 0)]);
    let outcomes: Vec<Outcome> = clock.block_on(async {
        armed.announce_round(&parts).await;
        let mut outcomes = Vec::new();
        for index in [1, 0, 2] {
            let CallPart { id, name, input } = parts[index].clone();
            outcomes.push(armed.call(&id, &name, input).await.outcome);
            drop(armed.session().await);
        }
        outcomes
    });
    let ends: Vec<_> = outcomes.iter().map(kind_and_code).collect();
    assert_eq!(ends[..2], [("executed", "unmatched"), ("executed", "unmatched")]);
    assert_eq!(ends[2], ("denied", "undecided"));
}
