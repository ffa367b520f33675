//! Argument checks: names that a server could confuse with a name that policies read, and values of undeclared types.

use callgate::call::OutcomeKind;
use callgate::json::{Value, json};
use callgate::{Engine, ToolCall, ToolDescriptor, ToolError, ToolExecutor, ToolResponse, engine};
use proptest::prelude::*;

struct EchoTool;

impl ToolExecutor for EchoTool {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(json!("ran").into())
    }
}

fn tool(schema: Value) -> ToolDescriptor {
    callgate::json::from_value(json!({ "name": "pay", "input_schema": schema })).unwrap()
}

fn build(rules: &str, schema: Option<Value>) -> Engine {
    let rules = engine::load_text(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    Engine::builder(rules).tools(schema.map(tool)).build()
}

/// Executes a call; returns its outcome, reason code and message.
fn run_call(engine: &Engine, input: Value) -> (&'static str, String, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let outcome = runtime.block_on(engine.session().execute(ToolCall::new("c1", "pay", input), &EchoTool));
    (outcome.outcome.name(), outcome.reason.code, outcome.reason.message)
}

fn deny(condition: &str) -> String {
    format!("policies: [ {{ id: p, match: {{ tool: pay, where: [ {condition} ] }}, deny: {{}} }} ]")
}

/// Each way to read an argument, with a call that would bypass the policy if names were compared exactly.
#[test]
fn argument_name_confusable_with_one_policies_read_is_invalid() {
    for (rules, input, named) in [
        (deny("{ path: $.input.amount, gt: 100 }"), json!({"Amount": 5000}), "`Amount`"),
        (deny("{ path: $.input.amount, gt: 100 }"), json!({"amount": 5, "AMOUNT": 5000}), "`AMOUNT`"),
        (deny("{ path: $.input.amount_eur, gt: 100 }"), json!({"amountEur": 5000}), "`amountEur`"),
        (deny("{ path: $.input.amountEur, gt: 100 }"), json!({"amount-eur": 5000}), "`amount-eur`"),
        (deny("{ path: $.input.amount, gt: 100 }"), json!({"ａｍｏｕｎｔ": 5000}), "`ａｍｏｕｎｔ`"),
        (deny("{ path: $.input.amount, gt: 100 }"), json!({"am\u{200b}ount": 5000}), "am"),
        (deny("{ path: $.input.cost, gt: 100 }"), json!({"co\u{17f}t": 5000}), "co"),
        (deny("{ path: $.input.key, eq: x }"), json!({"\u{212a}ey": "x"}), "ey"),
        (deny("{ path: $.input.order.amount, gt: 100 }"), json!({"order": {"Amount": 5000}}), "`order.Amount`"),
        (deny("{ path: $.input.order.amount, gt: 100 }"), json!({"Order": {"amount": 5000}}), "`Order`"),
        (deny("{ path: '$.input.items[*].price', gt: 100 }"), json!({"items": [{"price": 1}, {"Price": 500}]}), "`items.1.Price`"),
        (deny("{ path: '$.input.items[0].price', gt: 100 }"), json!({"items": [{"Price": 500}]}), "`items.0.Price`"),
        (deny("{ path: '$.input.items[?@.price > 100]' , exists: true }"), json!({"items": [{"Price": 500}]}), "`items.0.Price`"),
        (deny("{ path: '$.input..[?@.price > 100]', exists: true }"), json!({"a": [{"b": {"PRICE": 500}}]}), "`a.0.b.PRICE`"),
        (deny("{ path: $.input..price, gt: 100 }"), json!({"a": [{"b": {"PRICE": 500}}]}), "`a.0.b.PRICE`"),
        (deny("{ path: \"$.input['to','cc']\", eq: x }"), json!({"CC": "x"}), "`CC`"),
        (deny("{ path: '$.session.facts.order[?@.id == $.input.order_id]', exists: true }"), json!({"orderId": 7}), "`orderId`"),
        (deny("{ path: $.tool, eq: { path: $.input.name } }"), json!({"Name": "pay"}), "`Name`"),
        (deny("{ expr: input.amount > 100 }"), json!({"Amount": 5000}), "`Amount`"),
        (deny("{ expr: '\"amount\" in input && input.amount > 100' }"), json!({"Amount": 5000}), "`Amount`"),
        (deny("{ expr: 'has(input.order, \"amount\")' }"), json!({"order": {"Amount": 5000}}), "`order.Amount`"),
        (deny("{ expr: 'input.order.has(\"amount\")' }"), json!({"order": {"Amount": 5000}}), "`order.Amount`"),
        (deny("{ expr: 'input.items.some(|i| i.price > 100)' }"), json!({"items": [{"Price": 500, "price": 1}]}), "`items.0.Price`"),
        (deny("{ expr: 'input.items[0].price > 100' }"), json!({"items": [{"Price": 500, "price": 1}]}), "`items.0.Price`"),
        (
            "policies: [ { id: p, match: pay, around: { script: 'if input.amount > 100 { throw \"no\"; } next(input)' } } ]".to_owned(),
            json!({"amount": 1, "Amount": 5000}),
            "`Amount`",
        ),
        (
            "policies: [ { id: p, match: pay, rate_limit: { limit: 100, per: 1d, key: $.tool, cost: $.input.amount } } ]".to_owned(),
            json!({"amount": 1, "Amount": 5000}),
            "`Amount`",
        ),
        (
            "policies: [ { id: p, match: pay, transform: { input: [ { path: $.input.limit, clamp: { max: 5 } } ] } } ]".to_owned(),
            json!({"Limit": 5000}),
            "`Limit`",
        ),
    ] {
        let (outcome, code, message) = run_call(&build(&rules, None), input.clone());
        assert_eq!((outcome, code.as_str()), ("invalid", "ambiguous_argument"), "{rules} over {input}: {message}");
        assert!(message.contains(named), "{rules} over {input}: {message}");
    }
}

#[test]
fn declared_and_unrelated_names_are_accepted() {
    let amount = deny("{ path: $.input.amount, gt: 100 }");
    let both =
        json!({"type": "object", "properties": {"amount": {"type": "number"}, "Amount": {"type": "string"}}});
    let nested = json!({"type": "object", "properties": {"order": {"$ref": "#/$defs/order"}},
        "$defs": {"order": {"anyOf": [{"type": "null"}, {"properties": {"amount": {}, "AMOUNT": {}}}]}}});
    for (rules, schema, input) in [
        // The tool itself declares both names.
        (amount.clone(), Some(both), json!({"amount": 5, "Amount": "five"})),
        (deny("{ path: $.input.order.amount, gt: 100 }"), Some(nested), json!({"order": {"AMOUNT": 5000}})),
        // Policies read both names.
        (deny("{ path: $.input.amount, gt: 100 }, { path: $.input.Amount, gt: 100 }"), None, json!({"Amount": 5})),
        // Policies read no argument there.
        (deny("{ path: $.input.path, eq: x }"), None, json!({"path": "a", "env": {"PATH": "x", "Path": "y"}})),
        (amount.clone(), None, json!({"amounts": 5000, "amo": 1, "-": 1, "": 2})),
        (deny("{ path: $.tool, eq: other }"), None, json!({"Amount": 1, "amount": 2})),
        (deny("{ path: $.context.amount, gt: 1 }"), None, json!({"Amount": 1, "amount": 2})),
        // A policy in shadow mode changes nothing.
        (
            "policies: [ { id: p, mode: shadow, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} } ]".to_owned(),
            None,
            json!({"Amount": 5000}),
        ),
        // The policy is for another tool.
        ("policies: [ { id: p, match: { tool: other, where: { path: $.input.amount, gt: 1 } }, deny: {} } ]".to_owned(), None, json!({"Amount": 1})),
        ("policies: []".to_owned(), None, json!({"Amount": 1, "amount": "x"})),
        (
            "policies: [ { id: p, match: pay, transform: { input: [ { path: $.input.Amount, rename: amount } ] } }, \
             { id: q, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} } ]".to_owned(),
            None,
            json!({"Amount": 50}),
        ),
    ] {
        let (outcome, code, message) = run_call(&build(&rules, schema), input.clone());
        assert_eq!(outcome, "executed", "{rules} over {input}: {code}: {message}");
    }
}

const OPTIONAL: &str = r##"{"type":"object","required":["amount"],"additionalProperties":false,"properties":{
  "amount":{"type":"number","minimum":0},
  "count":{"type":"integer"},
  "note":{"anyOf":[{"type":"string","minLength":3},{"type":"null"}]},
  "tags":{"type":"array","items":{"type":"string"}},
  "kind":{"enum":["a","b"]},
  "open":{"type":"string","nullable":true},
  "link":{"$ref":"#/$defs/address","nullable":true},
  "either":{"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"b$"},{"type":"number"}]},
  "to":{"$ref":"#/$defs/address"},
  "free":{"type":"object","additionalProperties":{"type":"integer"}},
  "when":{"type":["string","integer"],"format":"date"},
  "any":{}
 },"$defs":{"address":{"type":"object","properties":{"city":{"type":"string"},"next":{"$ref":"#/$defs/address"}}}}}"##;

#[test]
fn arguments_must_have_the_declared_types() {
    let schema: Value = callgate::json::from_str(OPTIONAL).unwrap();
    let engine = build(&deny("{ path: $.input.amount, gt: 100 }"), Some(schema));
    for (input, named) in [
        (json!({"amount": "5000"}), "amount"),
        (json!({"amount": null}), "amount"),
        (json!({"amount": [5]}), "amount"),
        (json!({"amount": 5, "count": 1.5}), "count"),
        (json!({"amount": 5, "note": 7}), "note"),
        (json!({"amount": 5, "tags": "a"}), "tags"),
        (json!({"amount": 5, "tags": ["a", 1]}), "tags"),
        (json!({"amount": 5, "kind": 1}), "kind"),
        (json!({"amount": 5, "open": 1}), "open"),
        (json!({"amount": 5, "link": 1}), "link"),
        (json!({"amount": 5, "either": true}), "either"),
        (json!({"amount": 5, "to": {"next": {"city": 5}}}), "city"),
        (json!({"amount": 5, "free": {"x": "1"}}), "free"),
        (json!({"amount": 5, "when": {}}), "when"),
    ] {
        let (outcome, code, message) = run_call(&engine, input.clone());
        assert_eq!((outcome, code.as_str()), ("invalid", "schema_violation"), "{input}: {message}");
        assert!(message.contains(named), "{input}: {message}");
    }
    // Only types are checked: not required properties, ranges, lengths, patterns, formats, enum values or unknown names.
    for input in [
        json!({}),
        json!({"amount": -5, "unknown": 1}),
        json!({"amount": 5, "count": 2.0, "note": "x", "tags": [], "kind": "c", "open": null, "link": null, "either": "c", "free": {"x": 1}}),
        json!({"note": null, "either": 1, "when": "soon", "any": [{}], "to": {"city": "x", "other": 1}}),
    ] {
        let (outcome, code, message) = run_call(&engine, input.clone());
        assert_eq!(outcome, "executed", "{input}: {code}: {message}");
    }
}

#[test]
fn defaults_select_how_arguments_are_checked() {
    let schema = || Some(callgate::json::from_str::<Value>(OPTIONAL).unwrap());
    let policies = deny("{ path: $.input.amount, gt: 100 }");
    let broken =
        Some(json!({"type": "object", "properties": {"amount": {"type": "number", "pattern": "("}}}));
    for (defaults, schema, input, outcome, code) in [
        ("", schema(), json!({"amount": "x"}), "invalid", "schema_violation"),
        ("arguments: typed", schema(), json!({"amount": "x"}), "invalid", "schema_violation"),
        ("arguments: typed", schema(), json!({"amount": -1}), "executed", "unmatched"),
        ("arguments: valid", schema(), json!({"amount": -1}), "invalid", "schema_violation"),
        ("arguments: valid", schema(), json!({}), "invalid", "schema_violation"),
        ("arguments: valid", schema(), json!({"amount": 1}), "executed", "unmatched"),
        ("arguments: valid", None, json!({"amount": 1}), "executed", "unmatched"),
        ("arguments: valid", broken.clone(), json!({"amount": 1}), "invalid", "schema_unavailable"),
        ("arguments: typed", broken, json!({"amount": "x"}), "invalid", "schema_violation"),
        ("arguments: unchecked", schema(), json!({"amount": "x"}), "denied", "undecided"),
        ("arguments: unchecked", schema(), json!({"Amount": 1}), "invalid", "ambiguous_argument"),
    ] {
        let rules = format!("defaults: {{ {defaults} }}\n{policies}");
        let (found, reason, message) = run_call(&build(&rules, schema), input.clone());
        assert_eq!((found, reason.as_str()), (outcome, code), "{defaults}, {input}: {message}");
    }
}

/// Variant spellings of a name.
fn spelling(name: &'static str) -> impl Strategy<Value = String> {
    let letters: Vec<_> = name
        .chars()
        .map(|c| {
            let wide = char::from_u32(c as u32 - 0x20 + 0xff00).unwrap_or(c);
            (
                prop_oneof![4 => Just(c), 2 => Just(c.to_ascii_uppercase()), 1 => Just(wide)],
                prop_oneof![6 => Just(""), 1 => Just("_"), 1 => Just("-"), 1 => Just(" ")],
            )
        })
        .collect();
    letters.prop_map(|parts| parts.into_iter().map(|(c, separator)| format!("{c}{separator}")).collect())
}

proptest! {
    #[test]
    fn no_spelling_of_an_argument_bypasses_a_policy(
        outer in spelling("order"), inner in spelling("amount"), depth in 0_usize..3
    ) {
        let rules = deny("{ path: $.input.order.amount, gt: 100 }, { path: '$.input.order.list[*].amount', gt: 100 }").replace("}, {", "} ] }, deny: {} }, { id: q, match: { tool: pay, where: [ {");
        let input = match depth {
            0 => json!({ outer: { "amount": 500 } }),
            1 => json!({ "order": { inner: 500 } }),
            _ => json!({ "order": { "list": [{}, { inner: 500 }] } }),
        };
        let (outcome, code, message) = run_call(&build(&rules, None), input.clone());
        prop_assert!(["invalid", "denied"].contains(&outcome), "{input}: {outcome} {code} {message}");
        prop_assert_ne!(outcome, OutcomeKind::Executed.name());
    }
}
