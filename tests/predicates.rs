//! Properties of every expression and call, including hostile ones: no panic, and no wrong type that passes as false.

use callgate::call::{CallView, SessionState, ToolCall};
use callgate::json::{Map, Value, json};
use callgate::script::{Names, PolicyScript, Predicate, ScriptFinding, functions};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-4i32..4).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        "[abé]{0,2}".prop_map(Value::from),
        Just("1e400".parse().map_or(Value::Null, Value::Number)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map>())),
        ]
    })
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "input",
        "input.a",
        "input.b",
        "input.a.b",
        "input[\"c\"]",
        "input.a[0]",
        "input.b[-1]",
        "input.a[input.b]",
        "context",
        "session.facts",
        "session.labels",
        "output",
        "server",
        "tool",
        "()",
        "true",
        "0",
        "1",
        "-1",
        "1.5",
        "\"a\"",
        "\"\"",
        "[]",
        "[1, 2]",
        "[\"a\"]",
        "#{a: 1}",
        "x",
        "y.a",
        "9223372036854775807",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let binary = prop::sample::select(vec![
            "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in", "!in", "&&", "||", "??", "**",
            "..",
        ]);
        let name = prop::sample::select(
            functions().map(|function| function.name).chain(["call", "eval", "curry"]).collect::<Vec<_>>(),
        );
        prop_oneof![
            (inner.clone(), binary, inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            inner.clone().prop_map(|a| format!("!{a}")),
            (name.clone(), inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            (name.clone(), inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
            (inner.clone(), name.clone(), inner.clone())
                .prop_map(|(a, name, b)| format!("{a}.{name}(|x| {b})")),
            (inner.clone(), name, inner.clone()).prop_map(|(a, name, b)| format!("{a}.{name}(|y| {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            inner.prop_map(|a| format!("{a}.a")),
        ]
    })
}

fn eval(predicate: &Predicate, input: Value) -> Result<bool, String> {
    let (call, session) = (ToolCall::new("c", "t", input), SessionState::default());
    predicate.eval(&CallView::new(&call, &session)).map_err(|error| error.message)
}

/// Every replacement of `value`, or of one value inside it, by a value of another type.
fn corrupted(value: &Value) -> Vec<Value> {
    let type_of = |value: &Value| callgate::json::JsonType::from_value(value);
    let others =
        [json!(null), json!(true), json!(2), json!("a"), json!([]), json!(["a"]), json!({}), json!({"a": 1})];
    let mut all: Vec<Value> = others.into_iter().filter(|other| type_of(other) != type_of(value)).collect();
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for other in corrupted(item) {
                    let before = items.iter().take(index).cloned();
                    let after = items.iter().skip(index + 1).cloned();
                    all.push(before.chain([other]).chain(after).collect());
                }
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                for other in corrupted(member) {
                    let mut members = members.clone();
                    members.insert(key.clone(), other);
                    all.push(Value::Object(members));
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn wrong_type_never_makes_a_true_expression_false() {
    for (text, input) in [
        ("input.a == input.b", json!({"a": [1, {"k": ["x", null]}], "b": [1.0, {"k": ["x", null]}]})),
        ("input.a == 1 && input.b == true", json!({"a": 1, "b": true})),
        ("input.a != input.b", json!({"a": {"k": 1, "l": "x"}, "b": {"k": 2, "l": "y"}})),
        ("input.a != input.b", json!({"a": [1, "x"], "b": [2, "y"]})),
        ("input.a > 100", json!({"a": 250})),
        ("input.a >= input.b && input.b <= input.a && input.b < input.a", json!({"a": "b", "b": "a"})),
        ("input.a in input.b", json!({"a": "x", "b": ["w", "x", "y"]})),
        ("input.a in input.b", json!({"a": {"k": [1]}, "b": [{"k": [2]}, {"k": [1]}]})),
        ("input.a !in input.b", json!({"a": "x", "b": ["w", "y"]})),
        ("!(input.a in input.b)", json!({"a": 1, "b": [2, 3]})),
        ("input.b.index_of(input.a) >= 0", json!({"a": "x", "b": ["w", "x"]})),
        ("input.a.starts_with(\"x\") && ends_with(input.a, \"z\")", json!({"a": "xyz"})),
        ("input.a.matches(\"^x\") || false", json!({"a": "xyz"})),
        ("input.a.to_lower() == \"x\" && input.a.trim().to_upper() == \"X\"", json!({"a": "X"})),
        ("has(input.a, \"k\")", json!({"a": {"k": 1}})),
        ("keys(input.a).len() > 1", json!({"a": {"k": 1, "l": 2}})),
        ("input.a[0] == \"x\" && input.a[1] != \"z\"", json!({"a": ["x", "y"]})),
        ("input.a[0]", json!({"a": [true]})),
        ("input.a.all(|x| x < input.b)", json!({"a": [1, 2], "b": 3})),
        ("input.a.some(|x| x.k == input.b)", json!({"a": [{"k": "v"}], "b": "v"})),
        ("input.a.filter(|x| x > 1).len() == 1", json!({"a": [1, 2]})),
        ("sum(input.a) > 2 && max(input.b, 2) == 5 && min(input.b, 9) == 5", json!({"a": [1, 2], "b": 5})),
        ("input.a * 2 + input.b > 9", json!({"a": 4, "b": 2})),
        ("-input.a < 0 && abs(input.a) == 4", json!({"a": 4})),
        ("!input.a", json!({"a": false})),
        ("input.a && input.b", json!({"a": true, "b": true})),
        ("split(input.a, \",\").len() == 2", json!({"a": "x,y"})),
        ("at(input.a, input.b) == 1", json!({"a": [1], "b": 0})),
        ("first(input.a) + last(input.a) == 3", json!({"a": [1, 2]})),
        ("unique(input.a).len() == 1", json!({"a": [1, 1]})),
        ("zip(input.a, input.b).all(|p| p[0] < p[1])", json!({"a": [1, 2], "b": [2, 3]})),
        ("input.a.find(|x| x > input.b) == 3", json!({"a": [1, 3], "b": 2})),
        ("input.a.reduce(|sum, x| sum + x, input.b) == 6", json!({"a": [1, 2], "b": 3})),
        ("input.a.sort(|x, y| y - x)[0] == 3", json!({"a": [1, 3]})),
        ("pow(input.a, input.b) == 8 && sqrt(input.a * 2) == input.b - 1", json!({"a": 2, "b": 3})),
        (
            "is_even(input.a) && is_odd(input.b) && int(input.a) == 2 && sign(input.b) == 1",
            json!({"a": 2, "b": 3}),
        ),
        ("sub_string(input.a, 0, 1) == \"x\" && chars(input.a).len() == 3", json!({"a": "xyz"})),
        ("domain(input.a) == \"x.com\" && domain(input.a, \"x.com\")", json!({"a": "ana@x.com"})),
        ("host(input.a, \"x.com\") && host(input.a) == \"x.com\"", json!({"a": "https://x.com"})),
        ("inside(input.a, \"/srv\")", json!({"a": "/srv/x"})),
        ("mentioned(input.a, \"write to ana@x.com\", \"email\")", json!({"a": "ana@x.com"})),
        ("emails(input.a).len() == 1 && numbers(input.a).len() == 0", json!({"a": "ana@x.com"})),
        ("reverse(input.a)[0] == 2", json!({"a": [1, 2]})),
    ] {
        let predicate = Predicate::compile(text).unwrap();
        assert_eq!(eval(&predicate, input.clone()), Ok(true), "{text}");
        for member in ["a", "b"].into_iter().filter(|member| input.get(member).is_some()) {
            for other in corrupted(&input[member]) {
                let mut input = input.clone();
                input[member] = other;
                // An empty array or object that replaces another one has the right type.
                assert_ne!(eval(&predicate, input.clone()), Ok(false), "{text} with {input}");
            }
        }
    }
}

fn find(script: &PolicyScript, input: Value) -> ScriptFinding {
    let (call, session) = (ToolCall::new("c", "t", input), SessionState::default());
    script.evaluate(&CallView::new(&call, &session))
}

#[test]
fn wrong_type_never_lets_a_script_find_nothing() {
    for (text, input) in [
        ("for x in input.a { if x > input.b { return true; } }", json!({"a": [3], "b": 2})),
        ("switch input.a { \"x\" | \"y\" => #{ code: `c` }, _ => false }", json!({"a": "x"})),
        ("switch input.a { 1..5 if input.b => true, _ => () }", json!({"a": 4, "b": true})),
        ("let large = |x| x > 2; input.a.some(large)", json!({"a": [3]})),
        ("let n = 0; for i in 0..input.a { n += 1; } n == 2", json!({"a": 2})),
        ("let s = input.a; s = s.trim(); s == \"x\"", json!({"a": " x "})),
        ("try { if input.a > 1 { throw `no`; } false } catch { true }", json!({"a": 2})),
        ("if input.a { #{ message: `no ${input.b}` } }", json!({"a": true, "b": 1})),
        ("input.a[0..2] == \"xy\" && input.b in 1..3", json!({"a": "xyz", "b": 2})),
        ("let a = input.a; a.push(1); a.len() == 3 && a[0] == 5", json!({"a": [5, 6]})),
    ] {
        let script = PolicyScript::compile(text, &Names::default()).unwrap();
        assert!(matches!(find(&script, input.clone()), ScriptFinding::Match(_)), "{text}");
        for member in ["a", "b"].into_iter().filter(|member| input.get(member).is_some()) {
            for other in corrupted(&input[member]) {
                let mut input = input.clone();
                input[member] = other;
                // The elements of an array may be fewer, but not of another type.
                let is_shorter = input[member].as_array().is_some_and(Vec::is_empty);
                assert!(
                    is_shorter || find(&script, input.clone()) != ScriptFinding::NoMatch,
                    "{text} with {input}"
                );
            }
            let mut input = input.clone();
            input.as_object_mut().unwrap().remove(member);
            assert_ne!(find(&script, input.clone()), ScriptFinding::NoMatch, "{text} with {input}");
        }
    }
}

/// What is absent is undecided, whatever else the script throws and catches.
#[test]
fn script_cannot_catch_an_error_beside_an_absent_operand() {
    for operands in [
        "input.none > fail()",
        "[input.none, fail()].len() == 2",
        "#{ a: input.none, b: fail() }.a == 1",
        "input.none && fail()",
        "max(input.none, fail()) > 1",
        "[1, 2].map(|x| if x == 1 { input.none } else { fail() }).len() == 2",
        "both(input.none, fail())",
    ] {
        let functions = "fn fail() { throw `no`; } fn both(a, b) { a == b }";
        let text = format!("{functions} try {{ {operands} }} catch {{ false }}");
        let script = PolicyScript::compile(&text, &Names::default()).unwrap();
        let finding = find(&script, json!({}));
        assert!(matches!(finding, ScriptFinding::Undecided(_)), "{text}: {finding:?}");
    }
    let jump = PolicyScript::compile("input.none > { return false; }", &Names::default()).unwrap();
    assert!(matches!(find(&jump, json!({})), ScriptFinding::Undecided(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn evaluation_never_panics(text in expression(), a in value(), b in value(), c in value()) {
        if let Ok(predicate) = Predicate::compile(&text) {
            let result = eval(&predicate, json!({"a": a, "b": b, "c": c}));
            prop_assert!(!result.as_ref().is_err_and(|message| message.contains("failed with an internal error")), "{text}: {result:?}");
        }
    }

    #[test]
    fn compile_errors_point_inside_the_source(text in "[ -~é\n]{0,40}") {
        if let Err(error) = Predicate::compile(&text) {
            prop_assert!(!error.message.contains("failed with an internal error"), "{error:?}");
            if let Some(offset) = error.offset {
                prop_assert!(text.is_char_boundary(offset), "{error:?}");
            }
        }
    }

    #[test]
    fn scripts_of_any_tokens_never_panic(tokens in prop::collection::vec(prop::sample::select(vec![
        "switch", "input.a", "{", "}", "=>", "1", "-2", "1.5", "..", "..=", "|", "_", "if", "else", ",", "x", "`a${", "}`", "(", ")", "let", "=",
        ";", "|x|", "f", "f.call(1)", "in", "for", "#{", "a:", "\"a\"", "[", "]", "true", "try", "catch", "print(1)", "loop", "break", "return",
        "fn g(x)", "g(2)", "?.", "??", "()", "throw", "while", "&&", ".map(", ".sort(", "'c'", "// x\n", "/* y */",
    ]), 0..24), a in value()) {
        let text = tokens.join(" ");
        match PolicyScript::compile(&text, &Names::default()) {
            Ok(script) => {
                let finding = find(&script, json!({ "a": a }));
                prop_assert!(!format!("{finding:?}").contains("internal error"), "{text}: {finding:?}");
            }
            Err(error) => {
                prop_assert!(!error.message.contains("internal error"), "{text}: {error:?}");
                prop_assert!(error.offset.is_none_or(|offset| text.is_char_boundary(offset)), "{text}: {error:?}");
            }
        }
    }

    #[test]
    fn equality_of_equal_types_matches_json_equality(a in value(), b in value()) {
        let predicate = Predicate::compile("input.a == input.b").unwrap();
        if let Ok(equal) = eval(&predicate, json!({"a": a, "b": b})) {
            prop_assert_eq!(equal, a == b);
        }
    }
}
