mod invalid_paths;
mod properties;

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
