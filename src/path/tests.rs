use proptest::prelude::*;

use super::*;
use crate::call::{SessionState, ToolCall};
use crate::json::json;

/// Evaluates a path over a call with this input and a fixed context and session.
fn nodes(path: &str, input: Value) -> Result<Value, PathEvaluationError> {
    let call = ToolCall::new("c1", "createRefund", input)
        .with_context(json!({ "roles": ["agent", "lead"], "principal": "ana" }));
    let mut session = SessionState::default();
    session.set_fact("order", None, json!([{ "order_id": 7, "status": "paid" }]));
    let view = CallView::new(&call, &session);
    let path = Path::parse(path).unwrap();
    let nodes = path.nodes(&view)?;
    Ok(nodes.into_iter().map(NodeRef::to_json).collect())
}

#[test]
fn path_selects_from_the_call_document() {
    for (path, input, expected) in [
        ("$.tool", json!({}), json!(["createRefund"])),
        ("$.server", json!({}), json!([])),
        ("$['input']", json!({"a": 1}), json!([{"a": 1}])),
        ("$.input.items[-1].id", json!({"items": [{"id": 1}, {"id": 2}]}), json!([2])),
        ("$.input.items[5]", json!({"items": []}), json!([])),
        ("$.input.a.b.c", json!({}), json!([])),
        ("$.context.roles[*]", json!({}), json!(["agent", "lead"])),
        (
            "$.session.facts.order[?@.order_id == $.input.order_id].status",
            json!({"order_id": 7}),
            json!(["paid"]),
        ),
        ("$.session.facts.order[?@.order_id == $.input.order_id].status", json!({"order_id": 8}), json!([])),
        ("$.input.items[?@ == $.tool]", json!({"items": ["createRefund", "x"]}), json!(["createRefund"])),
        (
            "$.input.items[?match(@.to, '.*@evil\\\\.com')].to",
            json!({"items": [{"to": "a@evil.com"}, {"to": "b@evilxcom"}]}),
            json!(["a@evil.com"]),
        ),
        ("$.input..id", json!({"a": {"id": 1}, "b": [{"id": 2}, 3]}), json!([1, 2])),
    ] {
        let found = nodes(path, input.clone()).unwrap();
        assert!(found == expected, "{path} over {input}: {found}");
    }
}

#[test]
fn compares_numbers_in_filters_exactly() {
    for (filter, holds) in [
        ("@ == 0.30000000000000000004", false),
        ("@ == 0.3", true),
        ("@ == 3e-1", true),
        ("@ < 0.30000000000000000004", true),
        ("@ < 1e400", true),
        ("@ > -1e400 && @ != 0.3000000000000000000000001", true),
    ] {
        let found = nodes(&format!("$.input.n[?{filter}]"), json!({"n": [0.3]})).unwrap();
        assert_eq!(found.as_array().unwrap().len(), usize::from(holds), "{filter}");
    }
    let large = crate::json::parse(r#"{"n": [9007199254740993], "m": 9007199254740992}"#).unwrap();
    assert_eq!(nodes("$.input.n[?@ == $.input.m]", large.clone()), Ok(json!([])));
    assert!(nodes("$.input.n[?@ > $.input.m]", large).unwrap().get(0).is_some());
}

#[test]
fn wrong_type_is_a_mismatch_and_absence_is_not() {
    use ExpectedType::{Array, Object, ObjectOrArray};
    for (path, input, segment, expected, found) in [
        ("$.input.customer.id", json!({"customer": "abc"}), 3, Object, JsonType::String),
        ("$.input.customer.id", json!({"customer": null}), 3, Object, JsonType::Null),
        ("$.input.customer.id", json!({"customer": []}), 3, Object, JsonType::Array),
        ("$.input.items[0]", json!({"items": {"0": 1}}), 3, Array, JsonType::Object),
        ("$.input.items[0:2]", json!({"items": "ab"}), 3, Array, JsonType::String),
        ("$.input.items[*]", json!({"items": 1}), 3, ObjectOrArray, JsonType::Number),
        ("$.input.items[?@ > 1]", json!({"items": true}), 3, ObjectOrArray, JsonType::Boolean),
        ("$.input.items[*].id", json!({"items": [{"id": 1}, "x"]}), 4, Object, JsonType::String),
        ("$.input..a.b", json!({"a": 1}), 3, Object, JsonType::Number),
        ("$.tool.name", json!({}), 2, Object, JsonType::String),
        ("$.input", json!([1]), 1, Object, JsonType::Array),
        ("$.context.roles[?@ == $.input.role]", json!("x"), 1, Object, JsonType::String),
    ] {
        assert_eq!(
            nodes(path, input.clone()),
            Err(PathEvaluationError::WrongType { segment, expected, found }),
            "{path} over {input}"
        );
    }
    for path in ["$.input..b", "$.input['a', 'b']", "$.input.a", "$.input..[?@.x > 1]"] {
        assert!(nodes(path, json!({"a": 1})).is_ok(), "{path}");
    }
    assert_eq!(
        PathEvaluationError::WrongType { segment: 3, expected: Object, found: JsonType::String }.to_string(),
        "segment 3 of the path expects an object, found a string"
    );
}

/// A price that is sent as a string must not make a filter on prices select nothing.
#[test]
fn filters_report_wrong_types() {
    let items = |items: Value| json!({ "items": items });
    for (path, input) in [
        ("$.input.items[?@.price > 100]", items(json!([{"price": 5}, {"price": "500"}]))),
        ("$.input.items[?@.price > 100]", items(json!([{"price": null}]))),
        ("$.input.items[?@.price == 100]", items(json!([{"price": [100]}]))),
        ("$.input.items[?@.price != 100]", items(json!([{"price": "100"}]))),
        ("$.input.items[?@.price > 100]", items(json!(["500"]))),
        ("$.input.items[?@.of.price > 100]", items(json!([{"of": "x"}]))),
        ("$.input.items[?@.parts[?@.price > 100]]", items(json!([{"parts": [{"price": "500"}]}]))),
        ("$.input.items[?@.parts[?@.price > 100]]", items(json!([{"parts": "x"}]))),
        ("$.input.items[?length(@.name) > 3]", items(json!([{"name": 4711}]))),
        ("$.input.items[?search(@.name, 'evil')]", items(json!([{"name": ["evil"]}]))),
        ("$.input.items[?count(@.parts[?@ > 1]) > 0]", items(json!([{"parts": ["2"]}]))),
        ("$.input.items[?!(@.price <= 100)]", items(json!([{"price": "500"}]))),
        ("$.input..[?@.price > 100]", items(json!([{"price": 5}, {"price": "500"}]))),
        ("$.input..[?@.price > 100]", items(json!([{"price": null}]))),
        ("$.input..[?@.price > 100]", items(json!({"price": ["500"]}))),
        ("$.input..[?@.price > 100]", json!({"a": [[{"b": {"price": {"amount": 500}}}]]})),
        ("$.input..[?@.price.amount > 100]", items(json!({"price": "500"}))),
        ("$.input..[?!(@.price <= 100)]", items(json!([{"price": "500"}]))),
        ("$.input..[?@.price > 1 && @.price < 9]", items(json!([{"price": true}]))),
        ("$.input..[?@.limit < @.price]", items(json!([{"price": 5, "limit": "1"}]))),
        ("$.input..[?@[0] > 100]", items(json!([["500"]]))),
        ("$.input..[?length(@.name) > 3]", items(json!([{"name": 4711}]))),
        ("$.input..[?search(@.name, 'evil')]", items(json!([{"name": ["evil"]}]))),
        ("$.input..[?@.parts[?@.price > 100]]", items(json!([{"parts": [{"price": "500"}]}]))),
        ("$.input..[?@.name == $.context.principal.x]", items(json!([{"name": "x"}]))),
    ] {
        assert!(nodes(path, input.clone()).is_err(), "{path} over {input}");
    }
    for (path, input, found) in [
        // An absent value is not a type error, and short-circuit evaluation skips a comparison.
        ("$.input.items[?@.price > 100]", items(json!([{}, {"price": 101}])), json!([{"price": 101}])),
        ("$.input.items[?@.kind == 'a' && @.n > 1]", items(json!([{"kind": "b", "n": "x"}])), json!([])),
        // Every type can be compared with null.
        (
            "$.input.items[?@.end == null].id",
            items(json!([{"id": 1, "end": null}, {"id": 2, "end": "x"}])),
            json!([1]),
        ),
        // Descendants have all types: those without the member are not selected.
        (
            "$.input..[?@.price > 100].id",
            items(json!([{"id": 1, "price": 101}, "x", {"prize": "x"}, ["price"], 500, null])),
            json!([1]),
        ),
        (
            "$.input..[?@.of.price > 100].id",
            items(json!([{"id": 1, "of": {"price": 101}}, {"of": {}}])),
            json!([1]),
        ),
        ("$.input..[?@[0] > 100]", json!({"a": {"b": [101]}, "c": {"0": "x"}, "d": []}), json!([[101]])),
        ("$.input..[?length(@.name) > 3].id", items(json!([{"id": 1, "name": "Anna"}, "x"])), json!([1])),
        ("$.input..[?@ > 100]", items(json!([{"n": 101}, "x"])), json!([101])),
        ("$.input..[?search(@, 'evil')]", items(json!([{"n": 1, "t": "evil"}])), json!(["evil"])),
    ] {
        assert_eq!(nodes(path, input.clone()), Ok(found), "{path} over {input}");
    }
}

#[test]
fn reading_an_undecided_part_of_the_session_is_a_mismatch() {
    let call = ToolCall::new("c1", "t", json!({}));
    let answered = |path: &str, unsettled: &str| {
        let mut session = SessionState::default();
        session.mark_unknown(unsettled);
        Path::parse(path).unwrap().nodes(&CallView::new(&call, &session)).err()
            != Some(PathEvaluationError::Undecided)
    };
    for (path, labels, order) in [
        ("$.session.labels[*]", false, true),
        ("$.session.facts.order.status", true, false),
        ("$.session.facts['order', 'x']", true, false),
        ("$.session.facts.other", true, true),
        ("$.session.facts", true, false),
        ("$.session.facts[*]", true, false),
        ("$.session.facts..status", true, false),
        ("$.session['calls', 'labels']", false, true),
        ("$.session.calls.t", true, true),
        ("$.session", false, false),
        ("$.session[*]", false, false),
        ("$.session..status", false, false),
        ("$.input[?@ == $.session.facts.order]", true, false),
        ("$.input[?count($.session.labels[?@ == 'x']) > 0]", false, true),
        ("$.input[?@[?length($.session.facts.order) > 1]]", true, false),
        ("$.input.x", true, true),
    ] {
        assert_eq!(answered(path, "labels"), labels, "{path} with undecided labels");
        assert_eq!(answered(path, "facts.order"), order, "{path} with an undecided fact");
    }
}

#[test]
fn path_reports_its_dependencies() {
    let path = Path::parse("$.input.items[?@.id == $.output.id && !$.context.x[?@ == $.input.y]]").unwrap();
    assert_eq!(
        (path.root(), path.roots_read()),
        (Root::Input, &[Root::Input, Root::Output, Root::Context][..])
    );
    assert!(!path.is_singular());
    assert_eq!(path.steps(), None);
    let path = Path::parse("$.input['a b'][0]").unwrap();
    assert_eq!(path.steps(), Some(&[PathStep::Name("a b".into()), PathStep::Index(0)][..]));
    assert_eq!(path.to_string(), "$.input['a b'][0]");
}

#[test]
fn rejects_invalid_paths_with_their_position() {
    for (text, wrong, message, help) in [
        (
            "input.amount",
            "input.amount",
            "`input.amount` is not a path: a path starts with `$`",
            "write `$.input.amount`",
        ),
        ("$.inptu.amount", "inptu", "`inptu` is not a member of the call", "did you mean `$.input`?"),
        ("$['contxt']", "'contxt'", "`contxt` is not a member of the call", "did you mean `$.context`?"),
        (
            "$",
            "$",
            "a path reads one member of the call, named directly after `$`",
            "start with one of `$.tool`, ",
        ),
        (
            "$..amount",
            "amount",
            "a path reads one member of the call, named directly after `$`",
            "start with",
        ),
        ("$[*]", "$", "a path reads one member of the call, named directly after `$`", "start with"),
        (
            "$['input', 'context']",
            "'input'",
            "a path reads one member of the call, named directly after `$`",
            "start with",
        ),
        (
            "$.input[?@.a == $.inpt.b]",
            "inpt",
            "`inpt` is not a member of the call",
            "did you mean `$.input`?",
        ),
        ("$.input[?@.a = 1]", "=", "the path is not valid at `=`", "equality is `==`"),
        ("$.input.order-id", "-", "the path is not valid at `-`", "in brackets and quotes"),
        ("$.input[?count(match('a', 'a')) > 0]", "match", "`match()` is not a query", ""),
        ("$.input.a[", "$.input.a[", "the path ends too early", ""),
        ("$.input.a b", " ", "unexpected white space after `a`", "write a name that contains white space"),
        ("$.input.a\u{a0}", "a\u{a0}", "`a\u{a0}` contains white space", "write the name in brackets"),
        ("$.input.a ", " ", "the path ends with white space", ""),
        (
            "$.input[?length(@.*) < 3]",
            "length",
            "`length()` takes one value, and this query may yield several",
            "`count(…)`",
        ),
        (
            "$.input[?@.a && count(@.a)]",
            "count",
            "`count()` returns a value, not true or false",
            "compare it",
        ),
        (
            "$.input[?count(1) > 0]",
            "$.input[?count(1) > 0]",
            "the path is not valid: invalid argument for the function `count`: expected a node, got a literal",
            "",
        ),
        ("$.input[?in(@.a, $.context.b)]", "in", "`in()` is not a JSONPath function", "the functions are"),
        (
            "$.input[?match(@.a, $.context.p)]",
            "match",
            "`match()` takes a pattern that is a string literal",
            "`matches`",
        ),
        ("$.input[?search(@.a, '(')]", "search", "the pattern is not valid: unclosed group", ""),
        (
            "$.input[?@.a == 9007199254740993]",
            "9007199254740993",
            "the number is too large for a path",
            "whole numbers",
        ),
        (
            "$.input[?@.a[?@.b[?@.c[?@.d[?@.e[?@.f[?@.g[?@.h[?@.i]]]]]]]]]",
            "[",
            "brackets and parentheses nest deeper than 8",
            "",
        ),
    ] {
        let error = Path::parse(text).unwrap_err();
        assert_eq!(error.message, message, "{text}");
        assert_eq!(text.get(error.range.clone()), Some(wrong), "{text}: {:?}", error.range);
        assert!(error.help.as_deref().unwrap_or_default().contains(help), "{text}: {:?}", error.help);
        assert_eq!(error.help.is_none(), help.is_empty(), "{text}: {:?}", error.help);
    }
    assert!(Path::parse(&format!("$.input{}", ".a".repeat(65))).is_err());
    assert!(Path::parse(&format!("$.input.{}", "a".repeat(4096))).is_err());
}

#[test]
fn evaluation_work_is_bounded() {
    let many: Vec<Value> = (0..1_000).map(Value::from).collect();
    let mut deep = json!(1);
    for _ in 0..300 {
        deep = json!([deep]);
    }
    let long = "a".repeat(1 << 20);
    for (path, input) in [
        ("$.input..a", json!({ "x": vec![json!(1); 200_000] })),
        ("$.input.x[?$.input.x[?@ == -1]]", json!({ "x": many })),
        ("$.input.x[?count($.input.x[*]) > 0]", json!({ "x": many })),
        ("$.input.x[?$.input.x == $.input.y]", json!({ "x": many, "y": many })),
        ("$.input.x[?$.input.s == $.input.t]", json!({ "x": many, "s": long, "t": long })),
        ("$.input.x[?search($.input.s, 'b')]", json!({ "x": many, "s": long })),
        ("$.input..x..x..x", json!({ "x": deep })),
        ("$.input[?@ == $.input.x]", json!({ "x": deep })),
    ] {
        assert_eq!(nodes(path, input), Err(PathEvaluationError::LimitExceeded), "{path}");
    }
}

#[test]
fn locations_point_at_the_nodes_of_the_path() {
    let mut input =
        json!({ "items": [{ "id": 1, "tmp": 1 }, { "id": 2 }, { "id": 3, "tmp": 2 }], "a.b": { "c'": 4 } });
    let session = SessionState::default();
    for (path, values) in [
        ("$.input.items[?@.tmp].id", json!([1, 3])),
        ("$.input.items[-1].id", json!([3])),
        ("$.input['a.b'][\"c'\"]", json!([4])),
        ("$.input..id", json!([1, 2, 3])),
        ("$.input.none", json!([])),
    ] {
        let call = ToolCall::new("c1", "t", input.clone());
        let locations = Path::parse(path).unwrap().locations(&CallView::new(&call, &session)).unwrap();
        let found: Vec<Value> = locations.iter().map(|at| get_mut(&mut input, at).unwrap().clone()).collect();
        assert!(Value::from(found) == values, "{path}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_path_or_an_error_with_a_position(text in "\\PC{0,40}|[$@.\\[\\]()?!=<>&|*:,'\"a-c0-9e+ -]{0,40}|\\$\\.input[\\[\\]().?@$!=<>&|*:,'ab01 ]{0,30}") {
        if let Err(error) = Path::parse(&text) {
            prop_assert!(text.get(error.range).is_some());
        }
        let _ = Query::parse(&text);
    }

    #[test]
    fn singular_walk_agrees_with_the_general_evaluator(value in any_json(), steps in prop::collection::vec(any_step(), 0..4)) {
        let path = Path::parse(&format!("$.input.v{}", steps.concat())).unwrap();
        let call = ToolCall::new("c1", "t", json!({ "v": value }));
        let session = SessionState::default();
        let view = CallView::new(&call, &session);
        let as_json = |nodes: Result<Nodes<'_>, PathEvaluationError>| nodes.map(|nodes| nodes.into_iter().map(NodeRef::to_json).collect::<Vec<_>>());
        prop_assert!(path.is_singular());
        prop_assert_eq!(as_json(path.nodes(&view)), as_json(path.general_nodes(&view)));
    }
}

fn any_step() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(".a".to_owned()),
        Just("['b']".to_owned()),
        (-3i64..3).prop_map(|index| format!("[{index}]"))
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), Just(json!("x")), Just(json!(1))];
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[ab]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON with members `price` and `id` of all types, at all depths.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => (0..200_i32).prop_map(Value::from),
        1 => Just(json!("500")),
        1 => Just(Value::Null),
        1 => Just(json!(true)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((prop_oneof![2 => Just("price"), 3 => Just("id")], inner), 0..3).prop_map(
                |members| members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<Value>()
            ),
        ]
    })
}

/// Every `price` below a value.
fn prices<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("price"));
            members.values().for_each(|member| prices(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| prices(item, found)),
        _ => {}
    }
}

proptest! {
    /// A filter on descendants has a result only if each of them has a comparable member or none.
    #[test]
    fn filter_on_descendants_decides_only_on_numbers(tree in tree()) {
        let input = json!({ "all": tree });
        let mut found = Vec::new();
        prices(&input, &mut found);
        let decided = found.iter().all(|price| price.is_number());
        let above = found.iter().filter(|price| price.as_i64().is_some_and(|price| price > 100)).count();
        match nodes("$.input..[?@.price > 100]", input.clone()) {
            Ok(selected) => {
                prop_assert!(decided, "{input}");
                prop_assert_eq!(selected.as_array().map(Vec::len), Some(above), "{}", input);
            }
            Err(_) => prop_assert!(!decided, "{input}"),
        }
    }
}
