//! Random bundles and calls over a small vocabulary: every field has one type, and every test requires that type.

use crate::fixtures;
use callgate::json::{Value, json};
use callgate::{Engine, ToolCall, engine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The features that random policies may use.
#[derive(Clone, Copy)]
pub struct Scope {
    /// `transform.input` policies, with the arguments that result.
    pub transforms: bool,
    /// `exists`, and `not` and `each: none` in permitting policies: tests that absence may satisfy.
    pub absence_decides: bool,
    /// `expr` conditions.
    pub expressions: bool,
    /// `cache`, `retry` and `around`: policies that may run a tool never, repeatedly, or with other arguments.
    pub wraps: bool,
}

pub const EVERYTHING: Scope =
    Scope { transforms: true, absence_decides: true, expressions: true, wraps: true };

const PEOPLE: [&str; 3] = ["ana@a.test", "bob@b.test", "eve@evil.test"];
const FILES: [&str; 3] = ["/srv/x", "/etc/passwd", "/srv/../etc/passwd"];
const LINKS: [&str; 2] = ["https://a.test/x", "https://evil.test/"];
const TAGS: [&str; 3] = ["a", "b", "c"];
const ROLES: [&str; 3] = ["clerk", "lead", "guest"];

/// Expressions that are true for some calls and false for others, and fail if a field has another type.
const EXPRESSIONS: [&str; 8] = [
    "input.amount > 2",
    "input.amount == 1 || input.flag",
    "input.nested.level >= 2 && input.to != \"bob@b.test\"",
    "\"a\" in input.tags",
    "context.role == \"clerk\"",
    "!input.flag && input.amount < context.limit",
    "starts_with(input.to, \"ana\")",
    "input.nested.name == context.role || input.tags[0] == \"b\"",
];

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = Value> + Clone {
    select(texts).prop_map(Value::from)
}

/// A test of one path, `{ path, OPERATOR: OPERAND }`.
fn test(
    path: &'static str,
    operators: &'static [&'static str],
    operand: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    (select(operators), operand)
        .prop_map(move |(operator, operand)| {
            let operand = match operator {
                "in" | "not_in" => json!([operand]),
                "matches" => json!("^[a-e]"),
                "length" => json!({ "gt": 9 }),
                _ => operand,
            };
            json!({ "path": path, operator: operand })
        })
        .boxed()
}

const NUMERIC: &[&str] = &["eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in"];
const TEXTUAL: &[&str] = &["eq", "ne", "in", "not_in", "starts_with", "ends_with", "matches"];

fn leaf(scope: Scope, permits: bool) -> BoxedStrategy<Value> {
    let number = || (0i64..4).prop_map(Value::from).boxed();
    let quantifiers: &[&str] =
        if permits && !scope.absence_decides { &["any", "every"] } else { &["any", "every", "none"] };
    let each = move |test: BoxedStrategy<Value>| {
        (test, select(quantifiers))
            .prop_map(|(mut test, each)| {
                test["each"] = each.into();
                test
            })
            .boxed()
    };
    let mut leaves = vec![
        test("$.input.amount", NUMERIC, number()),
        test(
            "$.input.amount",
            &["eq", "ne", "gt", "lte"],
            Just(json!({ "path": "$.context.limit" })).boxed(),
        ),
        test("$.input.to", TEXTUAL, one_of(&PEOPLE).boxed()),
        test("$.input.to", &["contains", "length"], Just(json!("ev")).boxed()),
        test("$.input.to", &["domain"], Just(json!(["a.test", "b.test"])).boxed()),
        test("$.input.file", &["inside"], Just(json!("/srv")).boxed()),
        test("$.input.url", &["host"], Just(json!("a.test")).boxed()),
        test("$.input.flag", &["eq", "ne"], any::<bool>().prop_map(Value::from).boxed()),
        each(test("$.input.tags[*]", &["eq", "ne", "in", "not_in", "matches"], one_of(&TAGS).boxed())),
        test("$.input.tags[0]", &["eq", "ne"], one_of(&TAGS).boxed()),
        test("$.input.tags", &["contains"], one_of(&TAGS).boxed()),
        test("$.input.nested.level", NUMERIC, number()),
        test("$.input.nested.name", TEXTUAL, one_of(&ROLES).boxed()),
        test("$.context.role", TEXTUAL, one_of(&ROLES).boxed()),
        test("$.context.role", &["in", "not_in"], Just(json!({ "path": "$.context.roles" })).boxed())
            .prop_map(|mut test| {
                for operator in ["in", "not_in"] {
                    if let Some(operand) = test.get(operator).cloned() {
                        test[operator] = operand[0].clone();
                    }
                }
                test
            })
            .boxed(),
        each(test("$.context.roles[*]", &["eq", "ne"], one_of(&ROLES).boxed())),
    ];
    if scope.absence_decides {
        leaves.push(
            (select(&["$.input.amount", "$.input.nested.level", "$.input.other"][..]), any::<bool>())
                .prop_map(|(path, exists)| json!({ "path": path, "exists": exists }))
                .boxed(),
        );
    }
    if scope.expressions {
        leaves.push(select(&EXPRESSIONS[..]).prop_map(|expr| json!({ "expr": expr })).boxed());
    }
    proptest::strategy::Union::new(leaves).boxed()
}

fn condition(scope: Scope, permits: bool) -> BoxedStrategy<Value> {
    let negations = scope.absence_decides || !permits;
    leaf(scope, permits)
        .prop_recursive(3, 12, 3, move |inner| {
            let all = vec(inner.clone(), 1..3).prop_map(|list| json!({ "all": list }));
            let any = vec(inner.clone(), 1..3).prop_map(|list| json!({ "any": list }));
            let not = inner.prop_map(move |inner| if negations { json!({ "not": inner }) } else { inner });
            prop_oneof![all, any, not]
        })
        .boxed()
}

/// The effect of a policy, `(key, value)`.
type PolicyEffect = (&'static str, Value);

fn restricting_kind() -> BoxedStrategy<PolicyEffect> {
    let schema = json!({
        "type": "object", "required": ["amount"],
        "properties": { "amount": { "type": "number", "maximum": 2 } },
    });
    prop_oneof![
        4 => Just(("deny", json!({ "message": "No" }))),
        2 => Just(("halt", json!({}))),
        4 => Just(("approval", json!({ "message": "Really {{ input.amount }}?" }))),
        1 => Just(("validate", json!({ "schema": schema }))),
        1 => limit().prop_map(|limit| ("rate_limit", limit)),
        1 => limit_key().prop_map(|key| ("concurrency", json!({ "max": 1, "key": key }))),
        1 => Just(("timeout", json!("30s"))),
    ]
    .boxed()
}

fn limit_key() -> impl Strategy<Value = Value> {
    select(vec![json!("$.tool"), json!("$.input.nested.name"), json!(["$.context.role", "$.input.amount"])])
}

/// A limit that the first call does not reach.
fn limit() -> impl Strategy<Value = Value> {
    let per = select(&["run", "1h"][..]);
    let count = select(&["executions", "attempts"][..]);
    (1i64..4, per, count, limit_key()).prop_map(
        |(limit, per, count, key)| json!({ "limit": limit, "per": per, "count": count, "key": key }),
    )
}

fn wrapping_kind() -> BoxedStrategy<PolicyEffect> {
    let script = |text: &str| ("around", json!({ "script": text }));
    prop_oneof![
        Just(("cache", json!({ "ttl": "1h", "invalidate_on": "mail" }))),
        Just(("retry", json!({ "attempts": 2, "idempotent": true }))),
        Just(script("next(input)")),
        Just(script("input.amount += 1; next(input)")),
        Just(script("try { next(input) } catch (error) { error.kind }")),
        Just(script("if input.flag { return 1; } let out = next(input); [out]")),
    ]
    .boxed()
}

fn permitting_kind() -> BoxedStrategy<PolicyEffect> {
    prop_oneof![4 => Just(("allow", json!({}))), 1 => Just(("respond", json!({ "output": { "ok": true } })))]
        .boxed()
}

fn settling_kind() -> BoxedStrategy<PolicyEffect> {
    prop_oneof![
        Just(("redact", json!({ "patterns": ["ev"] }))),
        Just(("label", json!({ "add": ["seen"] }))),
        Just(("fact", json!({ "name": "order", "key": "$.input.amount" }))),
        Just(("audit", json!({ "fields": ["$.input.to"] }))),
        Just(("recover", json!({ "on": "*" }))),
    ]
    .boxed()
}

fn transform_kind() -> BoxedStrategy<PolicyEffect> {
    let step = prop_oneof![
        Just(json!({ "path": "$.input.to", "uppercase": true })),
        Just(json!({ "path": "$.input.amount", "clamp": { "max": 2 } })),
        Just(json!({ "path": "$.input.nested.level", "set": 3 })),
        Just(json!({ "path": "$.input.flag", "remove": true })),
        Just(json!({ "path": "$.input.tags[*]", "replace": { "pattern": "b", "with": "a" } })),
        Just(json!({ "path": "$.input.nested.name", "rename": "level" })),
        Just(json!({ "path": "$.input.file", "template": "{{ input.file }}/{{ context.role }}" })),
    ];
    vec(step, 1..3).prop_map(|steps| ("transform", json!({ "input": steps }))).boxed()
}

fn policy(does: BoxedStrategy<PolicyEffect>, scope: Scope, permits: bool) -> BoxedStrategy<Value> {
    let tools = select(vec![json!("*"), json!("pay"), json!("p*"), json!("/a/"), json!(["pay", "mail"])]);
    (does, tools, vec(condition(scope, permits), 0..3), -1i64..2)
        .prop_map(|((kind, value), tools, conditions, priority)| {
            let mut matcher = json!({ "tool": tools });
            if !conditions.is_empty() {
                matcher["where"] = conditions.into();
            }
            json!({ "match": matcher, "priority": priority, kind: value })
        })
        .boxed()
}

/// One restricting policy.
pub fn restricting(scope: Scope) -> BoxedStrategy<Value> {
    policy(restricting_kind(), scope, false)
}

/// Policies of all kinds.
pub fn policies(scope: Scope) -> BoxedStrategy<Vec<Value>> {
    let mut kinds = vec![
        (5, restricting(scope)),
        (3, policy(permitting_kind(), scope, true)),
        (1, policy(settling_kind(), scope, true)),
    ];
    if scope.wraps {
        kinds.push((1, policy(wrapping_kind(), scope, true)));
    }
    if scope.transforms {
        kinds.push((1, policy(transform_kind(), scope, true)));
    }
    vec(proptest::strategy::Union::new_weighted(kinds), 1..8).boxed()
}

/// The values of `defaults.unmatched`.
pub fn unmatched() -> impl Strategy<Value = &'static str> {
    select(&["allow", "deny", "approval"][..])
}

/// The text of a bundle; policies without an id get their position as id.
pub fn rules(unmatched: &str, absent: &str, policies: &[Value]) -> String {
    let named = policies.iter().enumerate().map(|(place, policy)| {
        let mut policy = policy.clone();
        if policy.get("id").is_none() {
            policy["id"] = format!("p{place}").into();
        }
        policy
    });
    let policies: Vec<Value> = named.collect();
    json!({ "defaults": { "unmatched": unmatched, "absent": absent }, "policies": policies }).to_string()
}

/// An engine for a bundle that must be valid.
pub fn engine(rules: &str) -> Engine {
    let chains = engine::load_text(rules).unwrap_or_else(|error| panic!("{error}\n{rules}"));
    Engine::builder(chains).keys(fixtures::keys()).build()
}

/// A call in which every field is present and of its type.
pub fn call() -> impl Strategy<Value = ToolCall> {
    let input = (
        (0i64..4, one_of(&PEOPLE), one_of(&FILES), one_of(&LINKS)),
        (any::<bool>(), vec(one_of(&TAGS), 1..3), 0i64..4, one_of(&ROLES)),
    )
        .prop_map(|((amount, to, file, url), (flag, tags, level, name))| {
            json!({
                "amount": amount, "to": to, "file": file, "url": url, "flag": flag, "tags": tags,
                "nested": { "level": level, "name": name },
            })
        });
    let context = (one_of(&ROLES), vec(one_of(&ROLES), 1..3), 0i64..4)
        .prop_map(|(role, roles, limit)| json!({ "role": role, "roles": roles, "limit": limit }));
    (select(&["pay", "mail", "play"][..]), input, context)
        .prop_map(|(tool, input, context)| ToolCall::new("c1", tool, input).with_context(context))
}
