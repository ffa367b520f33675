//! Comparison with Rhai itself: a script has the same result as in Rhai, or is refused, or the difference is in the table of this file, which
//! the reference lists ([`DIFFERENCES`](super::DIFFERENCES)).

use proptest::prelude::*;
use rhai::{Dynamic, Engine};

use super::{AroundScript, DIFFERENCES, Journal, ReplayResult};
use crate::call::{SessionState, ToolCall};
use crate::json::{Key, Map, Value, json};

/// The result in Rhai. Returns `None` for an error, and for a value that JSON does not have.
fn in_rhai(script: &str) -> Option<Value> {
    let mut engine = Engine::new();
    engine.set_max_operations(100_000);
    engine.on_print(|_| {}).on_debug(|_, _, _| {});
    to_json(&engine.eval::<Dynamic>(script).ok()?)
}

fn to_json(value: &Dynamic) -> Option<Value> {
    if value.is_unit() {
        return Some(Value::Null);
    }
    if let Ok(value) = value.as_bool() {
        return Some(Value::Bool(value));
    }
    if let Ok(value) = value.as_int() {
        return Some(value.into());
    }
    if let Ok(value) = value.as_float() {
        return Some(Value::from(value));
    }
    if let Ok(text) = value.clone().into_string() {
        return Some(text.as_str().into());
    }
    if let Ok(items) = value.as_array_ref() {
        return items.iter().map(to_json).collect::<Option<Vec<_>>>().map(Value::from);
    }
    let members = value.as_map_ref().ok()?;
    let members = members.iter().map(|(key, value)| Some((Key::from(key.as_str()), to_json(value)?)));
    members.collect::<Option<Map>>().map(Value::Object)
}

/// The result here. Returns `None` if the script is refused when it is loaded, or fails.
fn here(script: &str) -> Option<Value> {
    let script = AroundScript::compile(script).ok()?;
    let (call, session) = (ToolCall::new("c1", "t", json!({})), SessionState::default());
    let call = script.begin(&call, None, &session).ok()?;
    match script.replay(&call, &Journal::new(&call)) {
        ReplayResult::Completed { output, .. } => Some(Value::clone(&output)),
        _ => None,
    }
}

#[test]
fn scripts_have_the_same_result_as_in_rhai() {
    for script in [
        "let x = 3; switch x { 1 => \"a\", 2 | 3 => \"b\", _ => \"c\" }",
        "switch \"b\" { \"a\" => 1, \"b\" if false => 2, \"b\" => 3, _ => 4 }",
        "switch 7 { 1..5 => 1, 5..=7 => 2, _ => 3 }",
        "switch 5 { 1..5 => 1, 5..10 if 1 > 2 => 2, 5..=5 => 4, _ => 3 }",
        "switch true { true => { let y = 2; y * 2 }, false => 1 }",
        "switch 9 { 1 => 2 }",
        "let x = 0; switch -2 { -2 => x = 5, _ => x = 6 } x",
        "let s = ``; for i in 0..3 { s += switch i { 0 => \"a\", 1 => `<${i}>`, _ => \"c\" }; } s",
        "switch 2 { 1 => if true { 1 } else { 2 } 2 => for i in 0..2 { } _ => 4 }",
        "switch 1 { 1 => switch 2 { 2 => #{ a: [1, 2] }, _ => 0 }, _ => 1 }",
        "fn kind(x) { switch x { 1 => \"one\", _ => return \"many\" } } [kind(1), kind(2)]",
        "[1, 2, 3].map(|x| switch x { 1 => 10, 2 => 20, _ => 0 })",
        "let sum = 0; for i in 1..5 { sum += i; } sum",
        "let sum = 0; for i in 1..=5 { if i == 2 { continue; } sum += i; } sum",
        "[3 in 1..5, 5 in 1..5, 5 in 1..=5, 0 !in 1..5]",
        "\"hello\"[1..3] + \"hello\"[1..=3] + \"hello\"[3..99]",
        "let f = |x| x * 2; f.call(4) + f.call(1)",
        "let n = 1; let f = |x| x + n; n = 10; f.call(1)",
        "let n = 1; let f = || { n += 1; n }; f.call(); f.call(); n",
        "let a = 1; let f = |x, y| { let z = x * y; z + a }; let b = 5; let c = 7; [f.call(2, 3), b, c]",
        "let f = |x| x > 1; [1, 2, 3].filter(f)",
        "let f = |x| x + 1; let g = |y| f.call(y) * 2; [1, 2].map(|z| g.call(z))",
        "let a = [3, 1, 2]; a.insert(1, 9); a.insert(-1, 8); a.insert(99, 7); a",
        "let a = [1, 2, 3]; a.reduce(|sum, x| sum + x, 0)",
        "[1, 2, 3].find(|x| x > 1)",
        "[1, 2, 3].map(|x, i| x * i)",
        "[1, 2].all(|x| x > 0) && [1, 2].some(|x| x > 1)",
        "\"hello\".sub_string(1, 3) + \"hello\".sub_string(-2, 5)",
        "[abs(-3), sign(-3), is_even(4), is_odd(4), is_zero(0), min(1, 2), max(1, 2)]",
        "let o = #{a: 1}; [o?.a, o?.b, () ?? 3]",
        "\"a,b\".split(\",\")",
        "[\"a\".to_upper(), \"A\".to_lower(), \"abc\".contains(\"b\"), \"abc\".starts_with(\"a\"), \"abc\".ends_with(\"c\")]",
        "let x = 0; while x < 5 { x += 2; } x",
        "let x = 0; loop { x += 1; if x > 3 { break x * 2; } }",
        "let a = [1, 2]; a.push(3); [a.pop(), a.len(), a]",
        "2 ** 10 % 7 + 3 * 4 - 1",
        "let s = \"\"; for (x, i) in [\"a\", \"b\"] { s += `${x}${i}`; } s",
        "let x = 1; try { throw \"no\"; } catch { x = 5; } x",
        "fn f(n) { if n <= 1 { 1 } else { n * f(n - 1) } } f(5)",
    ] {
        let theirs = in_rhai(script);
        let ours = here(script);
        assert!(theirs.is_some(), "{script} fails in Rhai");
        assert_eq!(ours, theirs, "{script}");
    }
}

#[test]
fn differences_are_those_of_the_reference() {
    for difference in DIFFERENCES {
        let script = difference.script;
        let value = |text: &str| match text {
            "error" => None,
            text => Some(crate::json::parse(text).unwrap()),
        };
        assert_eq!(in_rhai(script), value(difference.in_rhai), "{script} in Rhai");
        assert_eq!(here(script), value(difference.here), "{script} here");
        assert_ne!(difference.in_rhai, difference.here, "{script}");
    }
}

#[test]
fn what_would_differ_without_an_error_is_refused() {
    for (script, in_rhai_is, message) in [
        ("`a${}b`", "\"ab\"", "`${}` is empty"),
        ("`a${ }b`", "\"ab\"", "`${}` is empty"),
        ("let e = 0; try { throw 42; } catch (x) { e = x; } e", "42", "`throw` takes a string"),
        ("let e = 0; try { throw [1]; } catch (x) { e = x; } e", "[1]", "`throw` takes a string"),
        ("let e = 0; try { throw; } catch (x) { e = x; } e", "null", "`throw` takes a string"),
        ("let s = \" a \"; s.trim(); s", "\"a\"", "changes nothing"),
    ] {
        assert_eq!(in_rhai(script), Some(crate::json::parse(in_rhai_is).unwrap()), "{script} in Rhai");
        let refused = AroundScript::compile(script).unwrap_err().to_string();
        assert!(refused.contains(message), "{script}: {refused}");
    }
}

/// A number of a generated script.
fn number(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        (0..9).prop_map(|n: i32| n.to_string()),
        prop::sample::select(vec!["x", "y", "z"]).prop_map(str::to_owned),
        Just("list.len()".to_owned()),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let (a, b) = (number(depth - 1), number(depth - 1));
    prop_oneof![
        leaf,
        (a.clone(), prop::sample::select(vec!["+", "-", "*"]), b.clone())
            .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
        (truth(depth - 1), a.clone(), b.clone())
            .prop_map(|(condition, a, b)| format!("(if {condition} {{ {a} }} else {{ {b} }})")),
        (a.clone(), 0..6, b.clone(), a.clone()).prop_map(|(value, case, b, c)| format!(
            "(switch {value} {{ {case} | 3 => {b}, 4..7 if y > 1 => {c}, 7..=9 => {{ let t = {b}; t + 1 }} _ => {c} }})"
        )),
        (a.clone(), b.clone()).prop_map(|(a, b)| format!("f.call({a}, {b})")),
        (a.clone(), b.clone()).prop_map(|(a, b)| format!("list.reduce(|r, e| r + e * {a}, {b})")),
        a.clone().prop_map(|a| format!("list.map(|e, i| e + i * {a}).filter(|e| e > 2).len()")),
        (a, b).prop_map(|(a, b)| format!("g({a}, {b})")),
    ]
    .boxed()
}

fn truth(depth: u32) -> BoxedStrategy<String> {
    let (a, b) = (number(depth), number(depth));
    prop_oneof![
        (a.clone(), prop::sample::select(vec!["<", "<=", "==", "!=", ">", ">="]), b.clone())
            .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
        (a.clone(), 0..4, 4..8).prop_map(|(a, from, to)| format!("({a} in {from}..{to})")),
        a.clone().prop_map(|a| format!("list.contains({a})")),
        (a.clone(), b.clone()).prop_map(|(a, b)| format!("!({a} == 1 || {b} in 1..=3 && true)")),
        (a, b).prop_map(|(a, b)| format!("list.some(|e| e > {a}) && list.all(|e| e != {b})")),
    ]
    .boxed()
}

/// Statements of a generated script.
fn statements(depth: u32) -> BoxedStrategy<String> {
    let variable = || prop::sample::select(vec!["x", "y", "z"]);
    let simple = prop_oneof![
        (variable(), prop::sample::select(vec!["=", "+=", "-="]), number(2))
            .prop_map(|(name, operator, value)| format!("{name} {operator} {value};")),
        number(1).prop_map(|value| format!("list.push({value});")),
        (-3..5, number(1)).prop_map(|(index, value)| format!("list.insert({index}, {value});")),
        number(1).prop_map(|value| format!("list[0] = {value};")),
        (variable(), number(1)).prop_map(|(name, value)| format!("let {name} = {value};")),
        (variable(), number(1))
            .prop_map(|(name, value)| format!("let f = |a, b| {{ let t = a + {value}; {name} + t * b }};")),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    let block = prop::collection::vec(statements(depth - 1), 0..3).prop_map(|all| all.join(" "));
    prop_oneof![
        3 => simple,
        1 => (truth(1), block.clone(), block.clone()).prop_map(|(condition, a, b)| format!("if {condition} {{ {a} }} else {{ {b} }}")),
        1 => (0..3, 3..5, block.clone()).prop_map(|(from, to, body)| format!("for i in {from}..{to} {{ {body} x += i; }}")),
        1 => (truth(1), block.clone()).prop_map(|(condition, body)| format!("for e in list {{ if {condition} {{ break; }} {body} }}")),
        1 => block.clone().prop_map(|body| format!("{{ {body} }}")),
        1 => (number(1), block.clone(), block).prop_map(|(value, a, b)| format!("switch {value} {{ 1 | 2 => {{ {a} }} 3..9 => x += 1, _ => {{ {b} }} }}")),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn generated_scripts_have_the_same_result_as_in_rhai(body in prop::collection::vec(statements(2), 1..5)) {
        let script = format!(
            "fn g(a, b) {{ if a > b {{ return a - b; }} a }} let x = 1; let y = 2; let z = 3; let list = [5, 2]; \
             let f = |a, b| a - b; {} [x, y, z, list]",
            body.join(" ")
        );
        if let Some(theirs) = in_rhai(&script) {
            prop_assert_eq!(here(&script), Some(theirs), "{}", script);
        }
    }
}
