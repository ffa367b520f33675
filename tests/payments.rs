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

/// The file of the bundle's README that adapts it to another bank.
fn adaptation() -> String {
    let readme = std::fs::read_to_string(project("policies/payments/README.md")).unwrap();
    let (_, rest) = readme.split_once("```yaml bank.yaml\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[tokio::test]
async fn a_file_of_ten_lines_adapts_the_bundle_to_other_tools() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bank.yaml");
    std::fs::write(&file, adaptation()).unwrap();
    assert!(adaptation().lines().count() <= 10);
    let rules = engine::load(&[project("policies/payments"), file]).unwrap_or_else(|error| panic!("{error}"));
    let schema = json!({
        "type": "object",
        "properties": {"recipient": {"type": "string"}, "amount": {"type": "number"}},
    });
    let descriptor = |name: &str| json!({"name": name, "inputSchema": schema});
    let tools = json!([descriptor("send_money"), descriptor("get_balance"), descriptor("close_account")]);
    let engine = Engine::builder(rules).tools(tools::parse_list(&tools.to_string()).unwrap()).build();
    let known = "DE89370400440532013000";
    let call = |tool: &str, recipient: &str, amount: u64| {
        let context = json!({"principal": "ana", "currency": "EUR", "payees": ["GB82WEST12345698765432"]});
        callgate::ToolCall::new("c", tool, json!({"recipient": recipient, "amount": amount}))
            .with_context(context)
    };
    let executor = callgate::ClosureTools::new()
        .with_tool("send_money", async |_| Ok(json!("sent")))
        .with_tool("get_balance", async |_| Ok(json!(1000)));
    for (tool, recipient, amount, task, outcome, policy) in [
        ("get_balance", "", 0, "", "executed", "reading-accounts-is-free"),
        (
            "send_money",
            known,
            100,
            "Pay 100 to DE89 3704 0044 0532 0130 00, please.",
            "executed",
            "small-amounts-are-free",
        ),
        ("send_money", "GB82WEST12345698765432", 100, "", "executed", "small-amounts-are-free"),
        ("send_money", known, 100, "Pay the rent.", "suspended", "ask-before-first-payment"),
        ("send_money", known, 100, "", "suspended", "ask-before-first-payment"),
        ("send_money", "GB82WEST12345698765432", 300, "", "suspended", "ask-above"),
        ("close_account", known, 0, "", "denied", ""),
    ] {
        let mut session = engine.session();
        if !task.is_empty() {
            session.set_task(callgate::Task::from_text(task));
        }
        let outcome_of = session.execute(call(tool, recipient, amount), &executor).await;
        let reason = outcome_of.reason;
        assert_eq!(
            (outcome_of.outcome.name(), reason.policy.as_deref().unwrap_or_default()),
            (outcome, policy),
            "{task}: {}",
            reason.message
        );
    }
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
