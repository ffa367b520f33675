//! A card commits to the whole call: arguments that policies read come first, every difference is visible, and no value can imitate
//! a field of the card.

use callgate::card::{Card, CardExtent, FieldKind, Resolution, ResolutionKind, call_digest};
use callgate::json::{self, Key, Map, Value, json};
use callgate::message::RequestPart;
use callgate::seal::Keys;
use callgate::tools::ToolDescriptor;
use callgate::{Engine, OutcomeKind};
use proptest::prelude::*;

use super::escaping::{hostile, hostile_value};
use crate::approvals::scene::KEY;
use crate::fixtures::{Tool, call, noon, rules, run};

const POLICIES: &str = "
policies:
  - id: large
    match: { tool: pay, where: [ { path: $.input.amount, gte: 0 }, { path: '$.input.order.total', lt: 1000 } ] }
    approval: { message: 'Pay {{ input.to }}?' }
  - { id: every, match: pay, approval: { message: 'Pay {{ input.to }}?' } }
  - id: anywhere
    match: { tool: pay, where: { path: '$.input..country', eq: nowhere } }
    deny: {}
  - id: pin
    match: pay
    redact: { in: [input], patterns: ['PIN [0-9]+'] }
";

fn engine() -> Engine {
    let schema = json!({ "type": "object", "required": ["currency"], "properties": { "currency": { "type": "string" } } });
    let tool: ToolDescriptor = json::from_value(json!({ "name": "pay", "input_schema": schema })).unwrap();
    rules(POLICIES).keys(Keys::parse(KEY).unwrap()).tools([tool]).build()
}

fn approval_request(engine: &Engine, input: &Value) -> RequestPart {
    let clock = noon();
    let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &[call("pay", input.clone())]);
    assert_eq!(outcomes[0].outcome, OutcomeKind::Suspended, "{outcomes:?}");
    RequestPart::from(outcomes[0].approval.as_deref().unwrap())
}

fn labels(card: &Card, kind: FieldKind) -> Vec<&str> {
    card.fields.iter().filter(|field| field.kind == kind).map(|field| field.label.as_str()).collect()
}

/// Every form in which a card can be shown.
fn rendered(request: &RequestPart) -> Vec<String> {
    let resolution = Resolution { kind: ResolutionKind::Approved, by: Vec::new(), at: None, reason: None };
    [CardExtent::Bounded, CardExtent::Complete]
        .into_iter()
        .flat_map(|extent| {
            [
                Card::pending_with_extent(request, extent),
                Card::resolved_with_extent(request, &resolution, extent),
            ]
        })
        .flat_map(|card| {
            [card.to_text(), card.to_markdown(), card.to_html(), json::to_value(&card).unwrap().to_string()]
        })
        .collect()
}

/// Adds filler arguments before and after `more` that exceed the size of a card.
fn crowded(more: Value) -> Value {
    let junk =
        |name: &'static str| (0..30).map(move |n| (Key::from(format!("{name}{n}")), json!("j".repeat(600))));
    let Value::Object(more) = more else { panic!("{more}") };
    junk("a").chain(more).chain(junk("z")).collect::<Map>().into()
}

#[test]
fn arguments_read_by_policies_and_templates_come_first() {
    let address = json!({ "street": "s", "country": "here" });
    let input = crowded(json!({
        "note": "n", "address": address, "currency": "EUR", "order": { "total": 5 }, "amount": 20, "to": "ana@example.com"
    }));
    let request = approval_request(&engine(), &input);
    let card = Card::pending(&request);
    let shown = labels(&card, FieldKind::Argument);
    assert_eq!(
        shown[..5],
        ["\"to\"", "\"amount\"", "\"order\"", "\"currency\"", "\"address\""],
        "{:?}",
        request.relevant
    );
    assert!(card.to_text().contains("Not shown: 42 of 66 arguments"), "{}", card.to_text());
    let complete = Card::pending_with_extent(&request, CardExtent::Complete);
    assert_eq!(labels(&complete, FieldKind::Argument).len(), 66);
    assert!(!complete.incomplete && complete.fields.iter().all(|field| field.left_out == 0));
}

#[test]
fn parts_read_by_policies_are_shown_if_their_argument_is_truncated() {
    let order = json!({ "a": "x".repeat(900), "total": 999, "z": "x".repeat(900) });
    let card = Card::pending(&approval_request(&engine(), &json!({ "to": "a", "order": order })));
    let part = card.fields.iter().find(|field| field.kind == FieldKind::Part).unwrap();
    assert_eq!((part.label.as_str(), part.value.as_str()), ("\"order\".\"total\"", "999"));
    let short = Card::pending(&approval_request(&engine(), &json!({ "to": "a", "order": { "total": 999 } })));
    assert!(labels(&short, FieldKind::Part).is_empty());
}

#[test]
fn calls_that_differ_only_in_redacted_values_have_different_digests() {
    let engine = engine();
    let [one, other] = ["PIN 1111", "PIN 2222"]
        .map(|pin| approval_request(&engine, &json!({ "to": "ana", "note": format!("with {pin}") })));
    assert_eq!(one.input, other.input, "redacted values are not shown");
    assert_ne!(call_digest(&one), call_digest(&other));
    for (one, other) in rendered(&one).into_iter().zip(rendered(&other)) {
        assert_ne!(one, other);
    }
    // The order of arguments does not matter.
    let [one, other] = [json!({ "to": "ana", "n": 1 }), json!({ "n": 1.0, "to": "ana" })]
        .map(|input| approval_request(&engine, &input));
    assert_eq!(call_digest(&one), call_digest(&other));
}

#[test]
fn reordered_arguments_do_not_change_which_come_first() {
    let request = approval_request(&engine(), &crowded(json!({ "to": "ana", "amount": 5 })));
    let Some(Value::Object(input)) = request.input.clone() else { panic!("{request:?}") };
    let reversed: Map = input.into_iter().rev().collect();
    let reordered = RequestPart { input: Some(reversed.into()), ..request.clone() };
    assert_eq!(labels(&Card::pending(&reordered), FieldKind::Argument)[..2], ["\"to\"", "\"amount\""]);
    assert_eq!(call_digest(&request), call_digest(&reordered));
}

/// Path of the argument that differs between two calls.
fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        ["/to", "/amount", "/order/total", "/order/deep/country", "/currency", "/a0", "/note"].as_slice(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn different_calls_never_have_equal_cards(
        path in path(), before in hostile(), after in hostile(), pad in 0..1500usize, crowd: bool,
    ) {
        prop_assume!(before != after);
        let engine = engine();
        let pad = "p".repeat(pad);
        let input = |value: &str| {
            let order = json!({ "pad": pad, "total": "t", "deep": { "country": "c" } });
            let plain = json!({ "to": "t", "amount": "a", "order": order, "currency": "c", "a0": "", "note": "" });
            let mut input = if crowd { crowded(plain) } else { plain };
            *input.pointer_mut(path).unwrap() = format!("{pad}{value}{pad}").into();
            input
        };
        let (one, other) = (approval_request(&engine, &input(&before)), approval_request(&engine, &input(&after)));
        for (one, other) in rendered(&one).into_iter().zip(rendered(&other)) {
            prop_assert_ne!(one, other);
        }
    }
}

/// The labels of the card's own fields.
const LABELS: [&str; 12] = [
    "Tool",
    "Server",
    "Note",
    "Arguments",
    "Not shown",
    "Digest",
    "Digest of the answer",
    "Policies",
    "Expires",
    "Reason",
    "By",
    "At",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn names_and_values_cannot_imitate_card_fields(
        input in prop::collection::vec((imitating(), hostile_value()), 0..5), texts in prop::collection::vec(imitating(), 4),
    ) {
        let input: Map = input.into_iter().collect();
        let [tool, server, policy, reason] = texts.try_into().unwrap();
        let request = RequestPart {
            tool_name: Some(tool),
            server: Some(server),
            input: Some(input.clone().into()),
            message: Some("Go on?".to_owned()),
            policies: vec![policy.clone(), reason.clone()],
            ..RequestPart::default()
        };
        let resolution = Resolution {
            kind: ResolutionKind::Edited(input.clone().into()), by: vec![policy.clone()], at: Some(policy), reason: Some(reason),
        };
        for card in [Card::pending_with_extent(&request, CardExtent::Complete), Card::resolved_with_extent(&request, &resolution, CardExtent::Complete)] {
            let (text, markdown, html) = (card.to_text(), card.to_markdown(), card.to_html());
            for label in LABELS {
                let of_fields = card.fields.iter().filter(|field| field.label == label).count();
                let heading = usize::from(label == "Arguments" && !input.is_empty());
                // Also if a terminal or chat product wraps a line.
                prop_assert_eq!(text.matches(&format!("{label}: ")).count(), of_fields, "{} in {}", label, &text);
                prop_assert_eq!(text.lines().filter(|line| line.starts_with(&format!("{label}:"))).count(), of_fields + heading);
                prop_assert_eq!(markdown.matches(&format!("**{label}:**")).count(), of_fields + heading, "{} in {}", label, &markdown);
                prop_assert_eq!(html.matches(&format!("<dt>{label}</dt>")).count(), of_fields + heading, "{} in {}", label, &html);
            }
            prop_assert_eq!(read_back(&text), input.clone());
        }
    }
}

/// Strings that imitate parts of a card.
fn imitating() -> impl Strategy<Value = String> {
    let ours = prop::sample::select(
        [
            "Tool: refund",
            "Digest: 0123456789abcdef",
            "\", \"to\": \"",
            "\n\nTool: x",
            "…[3 characters not shown]…",
            " (was 3)",
            "**By:** ana",
            "</dd><dt>By</dt>",
            "Note\u{ff1a} fine",
            "\u{201d}: \u{201c}",
            "By:",
            " and 3 more",
            ", ",
            " on ",
            "none",
            "removed",
            "Tool\u{a0}: x",
        ]
        .as_slice(),
    );
    prop_oneof![3 => (ours.clone(), hostile()).prop_map(|(ours, other)| format!("{other}{ours}")), 1 => ours.prop_map(str::to_owned), 2 => hostile()]
}

/// Parses the arguments from the lines of a card.
fn read_back(text: &str) -> Map {
    let arguments = text.lines().filter_map(|line| line.strip_prefix("  "));
    let argument = |line: &str| {
        let (name, value) = line.strip_prefix('"').unwrap().split_once("\": ").unwrap();
        (json::from_str::<String>(&format!("\"{name}\"")).unwrap(), json::from_str::<Value>(value).unwrap())
    };
    arguments.map(argument).collect()
}
