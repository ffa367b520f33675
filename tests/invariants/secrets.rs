//! I10: values that a `redact` policy covers appear nowhere in an outcome.

use std::sync::Arc;

use callgate::explain::render;
use callgate::json::{Value, json};
use callgate::{Engine, ToolCall, ToolDescriptor, ToolError, ToolExecutor, ToolResponse, policy};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::block_on;

const SECRET: &str = "SECRET-40718236";
const CARD: &str = "4111111111111111";

/// Returns everything it knows.
struct LeakyTool {
    fails: bool,
}

impl ToolExecutor for LeakyTool {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.fails {
            true => Err(ToolError::new(format!("invalid: {}", call.input))),
            false => Ok(json!({ "echo": call.input, "text": call.input.to_string() }).into()),
        }
    }
}

/// A value with a secret: as a string, inside a string, as a number, nested, as a key.
fn secret_value() -> impl Strategy<Value = Value> {
    let long = "x".repeat(300);
    let leaf = select(vec![
        json!(SECRET),
        json!(format!("my {SECRET}, keep it")),
        json!(format!("{long}{SECRET}{long}")),
        json!(format!("line\n\"{SECRET}\"\ttab")),
        json!(CARD),
        callgate::json::from_str(CARD).unwrap(),
        json!({ SECRET: 1 }),
        json!("harmless"),
        json!(7),
    ]);
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..3).prop_map(Value::from),
            inner.prop_map(|inner| json!({ "inner": inner }))
        ]
    })
}

/// Policies that expose a call in every possible way.
fn exposing_policy() -> impl Strategy<Value = Value> {
    let all = "{{ input.a }} {{ input.b }} {{ input }} {{ session.facts.kept }}";
    let closed = json!({
        "type": "object", "properties": { "a": { "type": "string", "enum": ["x"] }, "b": { "type": "integer" } },
        "additionalProperties": false,
    });
    let when =
        |kind: &str, value: Value, condition: Value| json!({ "match": { "where": condition }, kind: value });
    let script = |text: &str| json!({ "match": "*", "around": { "script": text } });
    select(vec![
        when("deny", json!({ "message": all }), json!({ "path": "$.input.a", "exists": true })),
        when("deny", json!({}), json!({ "path": "$.input.a", "gt": 5 })),
        when("deny", json!({}), json!({ "path": "$.input.a", "inside": "/srv" })),
        when("deny", json!({}), json!({ "path": "$.input.a", "host": { "path": "$.input.b" } })),
        when("deny", json!({}), json!({ "expr": "input.a.nosuch == input.b" })),
        when("halt", json!({ "message": all }), json!({ "path": "$.input.b", "exists": true })),
        when("approval", json!({ "message": all }), json!({ "path": "$.input.a", "exists": true })),
        when("approval", json!({}), json!({ "path": "$.input.b", "gt": 5 })),
        json!({ "match": "*", "validate": { "schema": closed } }),
        json!({ "match": "*", "transform": { "input": [{ "path": "$.input.a", "trim": true }] } }),
        json!({ "match": "*", "transform": { "input": [{ "path": "$.input.new", "template": all }] } }),
        json!({ "match": "*", "transform": { "output": [{ "path": "$.output.text", "clamp": { "max": 1 } }] } }),
        json!({ "match": "*", "recover": { "message": format!("{{{{ error }}}} {{{{ suggestion }}}} {all}") } }),
        json!({ "match": "*", "fact": { "name": "kept", "value": "$.input" } }),
        json!({ "match": "*", "audit": { "fields": ["$.input", "$.output", "$.error", "$.session.facts"] } }),
        json!({ "match": "*", "respond": { "output": { "note": SECRET } } }),
        json!({ "match": "*", "cache": { "ttl": "1h", "key": "$.input.none" } }),
        json!({ "match": "*", "rate_limit": { "limit": 1, "per": "run", "message": all } }),
        json!({ "match": "*", "rate_limit": { "limit": 1, "per": "1h", "cost": 2, "message": all } }),
        json!({ "match": "*", "rate_limit": { "limit": 1, "per": "1h", "cost": "$.input.a" } }),
        json!({ "match": "*", "concurrency": { "max": 1, "key": "$.input.a.inner" } }),
        json!({ "match": "*", "retry": { "attempts": 2, "idempotent": true, "on": "*invalid*", "backoff": { "initial": "1ms" } } }),
        script("audit(#{ a: input.a, b: input.b }); let out = next(input); audit(#{ out: out }); out"),
        script("try { next(input) } catch (error) { audit(#{ error: error.message }); throw error; }"),
        script(
            "try { next(input) } catch (error) { throw #{ message: `bad ${error.message}`, kind: error.message }; }",
        ),
        script("throw #{ message: `${input.a} ${input.b}`, kind: `${input.b}` };"),
        script(
            "cache_set(1, input.a, \"1h\"); let a = input.a; input.a = input.b; let out = next(input); [out, a, cache_get(1)]",
        ),
        script(
            "let known = cache_get(1); cache_set(1, input.a, \"1h\"); approve(`${input.a} ${known}`); next(input)",
        ),
        script("#{ here: input }[input.a]"),
        script("input.a + input.b + 1"),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn i10_no_secret_is_in_any_part_of_an_outcome_or_its_explanation(
        mut policies in vec(exposing_policy(), 1..6),
        calls in vec((secret_value(), secret_value(), any::<bool>()), 1..3),
        style in select(vec![json!("mask"), json!("hash"), json!("remove"), json!({ "keep_last": 3 })]),
        place in 0usize..6,
    ) {
        let redact = json!({ "patterns": ["SECRET-\\d{8}"], "detect": "payment_card", "with": style });
        policies.insert(place.min(policies.len()), json!({ "match": "*", "redact": redact }));
        for (place, policy) in policies.iter_mut().enumerate() {
            policy["id"] = format!("p{place}").into();
        }
        let rules = json!({ "policies": policies }).to_string();
        let mut built = policy::build_texts([("rules.yaml", rules.clone())]);
        let chains = Arc::new(built.policies.take().unwrap());
        let sources = built.sources;
        // The content of a rules file is not a secret to anyone who sees its lines.
        let said = format!("\"note\":\"{SECRET}\"");
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" }, "c": {} }, "required": ["c"] });
        let tool: ToolDescriptor = callgate::json::from_value(json!({ "name": "pay", "inputSchema": schema })).unwrap();
        let mut session = Engine::builder(chains).tools([tool]).build().session();
        for (a, b, fails) in calls {
            let call = ToolCall::new("c1", "pay", json!({ "a": a, "b": b }));
            let (outcome, explanation) = block_on(session.explain(call, &LeakyTool { fails }, &sources));
            let explanation = explanation.unwrap();
            let why_not: Vec<_> = policies.iter().map(|policy| explanation.why_not(policy["id"].as_str().unwrap())).collect();
            let told = [
                callgate::json::to_string(&outcome).unwrap(),
                render::json(&explanation).unwrap(),
                render::text(&explanation, Some(&sources), false, true).replace(&said, ""),
                callgate::json::to_string(&why_not).unwrap(),
            ];
            for told in told {
                prop_assert!(!told.contains(SECRET) && !told.contains(CARD), "{}\n{}", rules, told);
            }
        }
    }
}
