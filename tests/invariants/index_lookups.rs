//! The policies that an index finds by a value are those that the evaluation of every policy finds, for each kind of test that it looks
//! up, and for values that are hard to compare.

use callgate::json::{Value, json};
use callgate::{SessionState, ToolCall};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::vocabulary::{engine, rules};

/// An operator, operands for it, and texts that are hard to tell apart by it.
type Kind = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Longer than what an index compares.
const LONG: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

const KINDS: [Kind; 6] = [
    (
        "host",
        &[
            "example.com",
            "*.example.com",
            "*.com",
            "api.example.com",
            "*.a.example.com",
            "192.0.2.1",
            "[2001:db8::1]",
        ],
        &[
            "https://example.com",
            "https://EXAMPLE.com.:8443/x",
            "https://a.example.com",
            "wss://b.a.example.com?q",
            "https://badexample.com",
            "http://com",
            "https://user@example.com",
            "https://example.com\\.evil.org",
            "http://192.0.2.1/",
            "http://192.0.2.01/",
            "http://[2001:db8::1]",
            "example.com",
            "mailto:a@example.com",
            "",
        ],
    ),
    (
        "inside",
        &["/", "/srv", "/srv/data", "/srv/Data", "/srv/d\u{e4}ta", "/srv/data/x", "/etc"],
        &[
            "/srv/data/a",
            "/srv/data",
            "/SRV/data/x",
            "/srv/Data/x/y",
            "/srv/data/../../etc",
            "/srv//data/./x",
            "/srv/d\u{e4}ta/x",
            "/srv/da\u{308}ta",
            "/srv/data'/x",
            "/srv/data(1)",
            "/home/x",
            "srv/data",
            "~/x",
            "/srv/$HOME",
            "",
        ],
    ),
    (
        "starts_with",
        &["", "a", "ab", "abc", "\u{e4}", "b", "A", LONG, "-0123456789abcdef0123456789abcdef-"],
        &[
            LONG,
            "-0123456789abcdef0123456789abcdef+",
            "a",
            "ab",
            "abd",
            "abcd",
            "\u{e4}b",
            "a\u{308}",
            "",
            "ba",
            "AB",
            "c",
        ],
    ),
    (
        "ends_with",
        &["", "a", "ba", "cba", "\u{e4}", "b", "A", LONG, "-0123456789abcdef0123456789abcdef-"],
        &[
            LONG,
            "+0123456789abcdef0123456789abcdef-",
            "a",
            "ba",
            "dba",
            "dcba",
            "b\u{e4}",
            "a\u{308}",
            "",
            "ab",
            "BA",
            "c",
        ],
    ),
    (
        "contains",
        &["", "a", "ab", "aba", "\u{e4}", "bab", "A", "order"],
        &["a", "abab", "ababab", "bababa", "x\u{e4}x", "", "b", "an order", "ORDER", "ord"],
    ),
    (
        "matches",
        &[
            "^order-\\d+$",
            "refund|invoice",
            "\\bpaid$",
            "(?i)total",
            "^.*$",
            "[a-c]{3}",
            "late.*order",
            "^(?:eur|usd) \\d",
        ],
        &[
            "order-12",
            "order-x",
            "an invoice",
            "unpaid",
            "it was paid",
            "ToTaL",
            "abc",
            "a late or early order",
            "",
            "eur 5",
        ],
    ),
];

/// Values that are not texts, which leave tests of texts undecided, and none.
fn other_value() -> impl Strategy<Value = Option<Value>> {
    let values = [
        None,
        Some(Value::Null),
        Some(json!(1)),
        Some(json!(true)),
        Some(json!(["a", "order", "/srv/data"])),
        Some(json!({ "a": "a" })),
    ];
    select(values.to_vec())
}

/// Policies that all test one text, as many as it takes for them to be looked up, and calls.
fn texts() -> impl Strategy<Value = (Vec<Value>, Vec<Option<Value>>)> {
    select(&KINDS[..]).prop_flat_map(|(operator, operands, texts)| {
        let operand = prop_oneof![
            3 => select(operands).prop_map(|operand| json!(operand)),
            1 => vec(select(operands), 1..3).prop_map(|operands| json!(operands)),
        ];
        // `contains` takes one operand.
        let operand = operand.prop_map(move |operand| match operator {
            "contains" => {
                operand.as_array().and_then(|operands| operands.first()).unwrap_or(&operand).clone()
            }
            _ => operand,
        });
        let test = operand.prop_map(move |operand| json!({ "path": "$.input.a", operator: operand }));
        let value = prop_oneof![4 => select(texts).prop_map(|text| Some(json!(text))), 1 => other_value()];
        let policies = if matches!(operator, "contains" | "matches") { 64..70 } else { 24..40 };
        (vec(test, policies), vec(value, 1..5))
    })
}

const ODD_NUMBERS: [&str; 6] = ["1e400", "-0", "9007199254740993", "0.1", "1.0", "-1e-400"];

/// Policies that compare one number, and calls.
fn numbers() -> impl Strategy<Value = (Vec<Value>, Vec<Option<Value>>)> {
    let number = || {
        prop_oneof![
            3 => (-3_i64..4).prop_map(|number| json!(number)),
            1 => select(&ODD_NUMBERS[..]).prop_map(|text| text.parse::<Value>().unwrap()),
        ]
    };
    let test = (select(&["gt", "gte", "lt", "lte"][..]), number())
        .prop_map(|(operator, bound)| json!({ "path": "$.input.a", operator: bound }));
    (vec(test, 60..70), vec(prop_oneof![4 => number().prop_map(Some), 1 => other_value()], 1..5))
}

proptest! {
    #[test]
    fn lookups_find_what_the_evaluation_of_every_policy_finds(
        (tests, values) in prop_oneof![6 => texts(), 1 => numbers()],
        kinds in vec(select(&["deny", "allow", "approval", "halt"][..]), 70),
        absent in select(&["match", "no_match"][..]),
        more in any::<bool>(),
    ) {
        let policies = |wrap: &dyn Fn(&Value) -> Value| -> Vec<Value> {
            let policy = |(test, kind): (&Value, &&str)| {
                let kind = *kind;
                let mut conditions = vec![wrap(test)];
                if more {
                    conditions.push(wrap(&json!({ "path": "$.input.b", "gte": 1 })));
                }
                json!({ "match": { "where": conditions }, kind: {} })
            };
            tests.iter().zip(&kinds).map(policy).collect()
        };
        let indexed = engine(&rules("allow", absent, &policies(&Value::clone)));
        // A test inside `any` is the same test, but no index looks it up.
        let naive = engine(&rules("allow", absent, &policies(&|test| json!({ "any": [test] }))));
        let session = SessionState::default();
        for value in values {
            let mut input = json!({ "b": 1 });
            if let Some(value) = value {
                input["a"] = value;
            }
            let call = ToolCall::new("c1", "pay", input);
            let effect = indexed.effect(&call, &session);
            let (indexed, naive) = (indexed.decide(&call, &session), naive.decide(&call, &session));
            prop_assert_eq!(indexed.effect(), naive.effect());
            prop_assert_eq!(effect, naive.effect());
            prop_assert_eq!(indexed.reason(), naive.reason());
            prop_assert_eq!(indexed.policies(), naive.policies());
        }
    }
}
