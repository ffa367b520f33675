//! The shipped bundle for payments: refunds of exact amounts.

use std::sync::OnceLock;

use callgate::call::Outcome;
use callgate::json::json;
use callgate::{Engine, engine, tools};
use proptest::prelude::*;

use crate::recorded_calls::{play, project, records};

fn euros(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Looks up a partially refunded charge, and refunds `refund` cents of it.
fn refund(engine: &Engine, charged: u64, refunded: u64, refund: u64) -> Outcome {
    let context = json!({ "principal": format!("ana-{charged}-{refunded}-{refund}"), "currency": "EUR" });
    let charge = format!("c-{charged}-{refunded}");
    let (amount, part, all) = (euros(refund), euros(refunded), euros(charged));
    let lines = [
        format!(r#"{{"id":"a","tool":"get_charge","input":{{"charge_id":"{charge}"}},"context":{context},"#),
        format!(
            r#""recorded":{{"output":{{"charge_id":"{charge}","amount":{all},"refunded":{part},"currency":"EUR","#
        ),
        r#""status":"succeeded"}}}"#.to_owned(),
        "\n".to_owned(),
        format!(
            r#"{{"id":"b","tool":"refund_charge","context":{context},"recorded":{{"output":{{"ok":true}}}},"#
        ),
        format!(r#""input":{{"charge_id":"{charge}","amount":{amount},"currency":"EUR","reason":"broken","#),
        r#""idempotency_key":"refund-of-c1-once-01"}}"#.to_owned(),
    ];
    play(&mut engine.session(), &records(&lines.concat())).remove(1)
}

fn bundle() -> &'static Engine {
    static BUNDLE: OnceLock<Engine> = OnceLock::new();
    BUNDLE.get_or_init(|| {
        let tools = std::fs::read_to_string(project("policies/payments/tools.json")).unwrap();
        let rules = engine::load(&[project("policies/payments")]).unwrap_or_else(|error| panic!("{error}"));
        Engine::builder(rules).tools(tools::parse_list(&tools).unwrap()).build()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn refunds_exactly_the_remainder_of_a_charge(charged in 2_u64..90_000, part in 0.0..1.0_f64) {
        let engine = bundle();
        let refunded = ((charged - 1) as f64 * part) as u64;
        let rest = charged - refunded;
        let outcome = refund(engine, charged, refunded, rest);
        prop_assert_eq!(outcome.outcome.name(), "executed", "{} of {}: {:?}", rest, charged, outcome.reason);
        let outcome = refund(engine, charged, refunded, rest + 1);
        prop_assert_eq!(outcome.reason.policy.as_deref(), Some("no-more-than-was-charged"), "{:?}", outcome.reason);
        prop_assert_eq!(outcome.reason.code, "more_than_charged");
    }
}
