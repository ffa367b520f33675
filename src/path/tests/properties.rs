use proptest::prelude::*;

use super::*;

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
