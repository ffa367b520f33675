//! I8: looking up the elements of arguments in values of the call never takes more work than is counted, however large both are.

use callgate::json::{Value, json};
use callgate::work_limit::DECISION_UNITS;
use callgate::{Effect, Engine, SessionState, ToolCall};

/// Conditions that look up each of `n` elements among `n` values by hash.
const HASHED: [&str; 3] = [
    "{ every: { path: '$.input.list[*]', in: { path: $.session.facts.seen } } }",
    "{ every: { path: $.input.numbers, mentioned_in: { path: $.context.numbers }, as: number } }",
    "{ any_of: { path: $.input.list, as: row, any_of: { expr: '[row]', mentioned_in: { path: $.context.addresses }, as: email } } }",
];

/// Conditions that compare each of `n` elements with each of `n` values.
const COMPARED: [&str; 7] = [
    "{ any_of: { path: $.input.phrases, mentioned_in: { path: $.context.words }, as: word } }",
    "{ any_of: { path: $.input.list, domain: { path: $.context.domains } } }",
    "{ any_of: { path: $.input.list, ignore_case: true, in: { path: $.context.others } } }",
    "{ any_of: { path: $.input.list, starts_with: { path: $.context.others } } }",
    "{ any_of: { path: $.input.objects, in: { path: $.context.objects } } }",
    "{ path: $.input.list, contains_any: { path: $.context.others } }",
    "{ expr: 'input.list.some(|x| x in context.others)', eq: true }",
];

fn engine(condition: &str) -> Engine {
    Engine::from_text(&format!(
        "policies: [{{ id: p, match: {{ tool: t, where: {condition} }}, deny: {{}} }}]"
    ))
    .unwrap()
}

fn strings(n: usize, name: impl Fn(usize) -> String) -> Value {
    (0..n).map(|index| Value::from(name(index))).collect::<Vec<_>>().into()
}

/// Whether the policy applies to a call with `n` elements and as many values, and the work units.
fn decide(condition: &str, n: usize) -> (Effect, u64) {
    let address = |index| format!("user{index}@mail{index}.example");
    let input = json!({
        "list": strings(n, address),
        "numbers": strings(n, |index| index.to_string()),
        "phrases": strings(n, |index| format!("word{index} x")),
        "objects": (0..n).map(|index| json!({ "at": index, "kind": "a" })).collect::<Vec<_>>(),
    });
    let mut call = ToolCall::new("c1", "t", input);
    let numbers: Vec<String> = (0..n).map(|index| index.to_string()).collect();
    call.context = json!({
        "numbers": numbers.join("; "),
        "addresses": "nobody@mail.example ".repeat(n),
        "words": "word ".repeat(n),
        "others": strings(n, |index| format!("other {index}")),
        "domains": strings(n, |index| format!("other{index}.example")),
        "objects": (0..n).map(|index| json!({ "at": index, "kind": "b" })).collect::<Vec<_>>(),
    });
    let mut session = SessionState::default();
    session.set_fact("seen", None, strings(n, address));
    let decision = engine(condition).decide(&call, &session);
    (decision.effect(), decision.work())
}

#[test]
fn i8_work_of_lookups_by_hash_grows_with_the_sum_of_both_sides() {
    for condition in HASHED {
        let (small, large) = (decide(condition, 1_000).1, decide(condition, 2_000).1);
        assert!(large < 3 * small, "{condition}: {small} and {large}");
        assert!(large < DECISION_UNITS / 10, "{condition}: {large}");
    }
}

#[test]
fn i8_work_of_comparisons_grows_with_the_product_of_both_sides() {
    for condition in COMPARED {
        let (small, large) = (decide(condition, 250).1, decide(condition, 500).1);
        assert!(large > 3 * small, "{condition}: {small} and {large}");
    }
}

#[test]
fn i8_comparisons_beyond_the_work_limit_deny() {
    for condition in COMPARED {
        let (effect, work) = decide(condition, 9_000);
        assert_eq!(effect, Effect::Deny, "{condition}");
        assert!(work <= DECISION_UNITS, "{condition}: {work}");
    }
}

#[test]
fn patterns_of_the_call_are_parsed_once_for_all_elements() {
    let condition = "{ any_of: { path: $.input.list, ends_with: { path: $.context.patterns } } }";
    let mut call = ToolCall::new("c1", "t", json!({ "list": strings(2_000, |index| format!("{index}")) }));
    call.context = json!({ "patterns": strings(50, |index| format!("{index}{}", "x".repeat(500))) });
    let decision = engine(condition).decide(&call, &SessionState::default());
    assert_eq!(decision.effect(), Effect::Run, "{}", decision.work());
}

#[test]
fn set_of_many_facts_is_looked_up_with_little_work() {
    let mut session = SessionState::default();
    session.set_fact("seen", None, strings(100_000, |index| format!("id-{index}")));
    let call = ToolCall::new("c1", "t", json!({ "id": "id-none" }));
    let condition = "{ expr: 'input.id in session.facts.seen || input.id in session.facts.seen', eq: true }";
    let decision = engine(condition).decide(&call, &session);
    assert_eq!(decision.effect(), Effect::Run);
    assert!(decision.work() < DECISION_UNITS / 20, "{}", decision.work());
}

#[test]
fn constant_list_is_looked_up_by_hash() {
    let work = |n: usize, condition: &str, id: Value| {
        let data = strings(n, |index| format!("id-{index}"));
        let rules = format!(
            "data: {{ known: {data}, mixed: {{ all: [1, {}], ids: {data} }} }}\nlet: {{ listed: data.known, lists: data.mixed, again: lists }}\n\
             functions: 'fn is_known(id) {{ id in data.known }}'\npolicies: [{{ id: p, match: {{ tool: t, where: {condition} }}, deny: {{}} }}]",
            data.as_array().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        let call = ToolCall::new("c1", "t", json!({ "id": id }));
        let decision = Engine::from_text(&rules).unwrap().decide(&call, &SessionState::default());
        (decision.effect(), decision.work())
    };
    for (condition, held) in [
        ("{ path: $.input.id, in: { expr: data.known } }", "id-7"),
        ("{ path: $.input.id, in: { path: $.data.mixed.all } }", "id-7"),
        ("{ path: $.input.id, not_in: { expr: data.known } }", "other"),
        ("{ path: $.input.id, in: { expr: listed } }", "id-7"),
        ("{ path: $.input.id, in: { expr: again.ids } }", "id-7"),
        ("{ path: $.input.id, contains_any: { expr: data.known } }", "see id-7 there"),
        ("{ path: $.input.id, contains_any: { path: $.data.mixed.all } }", "see id-7 there"),
        ("{ not: { path: $.input.id, contains_any: { expr: listed } } }", "nothing"),
        ("input.id in data.known", "id-7"),
        ("input.id in listed", "id-7"),
        ("input.id in again.ids", "id-7"),
        ("data.known.contains(input.id)", "id-7"),
        ("'contains(listed, input.id)'", "id-7"),
        ("is_known(input.id)", "id-7"),
        ("{ not: 'input.id in listed' }", "other"),
    ] {
        let (few, many) = (work(10, condition, json!(held)), work(20_000, condition, json!(held)));
        assert_eq!(few, many, "{condition}");
        assert_eq!(few.0, Effect::Deny, "{condition}");
    }
    let ids = "{ path: $.input.id, contains_any: { expr: listed } }";
    assert_eq!(work(20_000, ids, json!(["x", "id-7"])), work(10, ids, json!(["x", "id-7"])));
    assert_eq!(work(20_000, ids, json!(["x", "y"])).0, Effect::Run);
    // A value of another type is undecided, whatever the number of values.
    let typed = "{ path: $.input.id, in: { expr: data.known } }";
    assert_eq!(work(20_000, typed, json!(7)), work(10, typed, json!(7)));
    // Other values of a list with several types are compared one by one.
    assert_eq!(work(10, "{ path: $.input.id, in: { path: $.data.mixed.all } }", json!({})).0, Effect::Deny);
}
