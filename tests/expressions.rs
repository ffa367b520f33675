//! Evaluation of expressions: tables of sources with their values or errors.

use callgate::call::{CallView, Root, SessionState, ToolCall};
use callgate::json::{Value, json};
use callgate::script::Predicate;

fn eval_with(text: &str, input: Value, session: &SessionState) -> Result<bool, String> {
    let call = ToolCall::new("c1", "pay", input).with_context(json!({"tenant": "acme", "roles": ["clerk"]}));
    let predicate =
        Predicate::compile(text).map_err(|error| format!("does not compile: {}", error.message))?;
    predicate.eval(&CallView::new(&call, session)).map_err(|error| error.message)
}

fn eval(text: &str, input: Value) -> Result<bool, String> {
    eval_with(text, input, &SessionState::default())
}

fn example() -> Value {
    json!({
        "n": 5, "d": 1.5, "one": 1.0, "s": "Abc", "t": true, "z": null, "list": [1, 2, 3], "words": ["a", "b"],
        "o": {"k": "v", "n": 5}, "items": [{"price": 5, "tags": ["x"]}, {"price": 7, "tags": ["y"]}], "key": "k",
        "limit": 6, "index": 1, "none": [], "late": -1
    })
}

#[test]
fn true_expressions_evaluate_to_true() {
    for text in [
        "input.n == 5",
        "input.n == 5.0 && input.one == 1",
        "input.n != 6 && input.n < 6 && input.n <= 5 && input.n > 4.5 && input.n >= 5",
        r#"input.s < "B" && tool == "pay" && id == "c1""#,
        "input.list == [1, 2.0, 3]",
        r#"input.o == #{n: 5, k: "v"}"#,
        "2 in input.list && !(9 in input.list) && 9 !in input.list",
        r#""n" in input && !("cc" in input) && "tenant" in context && "facts" in session"#,
        r#"has(input.o, "k") && !input.o.has("x")"#,
        "is_null(input.z) && !is_null(input.n)",
        r#"type_of(input.z) == "null" && type_of(input.o) == "object" && type_of(input.d) == "number""#,
        r#"input.s.to_lower() == "abc" && to_upper(input.s) == "ABC" && trim("  x ") == "x""#,
        r#"input.s.starts_with("A") && input.s.ends_with("c") && input.s.contains("b")"#,
        r#"input.s.matches("^[A-Z]b.$") && !input.s.matches(`\d`)"#,
        "input.list.all(|x| x > 0) && input.list.some(|x| x == 3) && input.list.filter(|x| x > 1).len() == 2",
        "input.items.map(|i| i.price).sum() == 12",
        "input.items.all(|i| i.price < input.limit + 2)",
        r#"input.items.some(|i| i.tags.some(|t| t == "y"))"#,
        "input.items.all(|i| input.list.some(|n| n < i.price))",
        "input.items.all(|i| i.tags[0] != input.s) && input.items[input.index - 1].price == 5",
        r#"input.words.map(|w| [w]) == [["a"], ["b"]]"#,
        "input.items.all(|i| i.tags.all(|t| len(t) < input.limit))",
        "input.items[1].price == 7 && input.items[-1].price == 7 && input.items[input.index].price == 7",
        "input.items[input.late].price == 7 && input.items[0].price == 5",
        r#"input["o"]["k"] == "v" && input.o[input.key] == "v" && at(input.o, "k" + "") == "v""#,
        "at(input.list, input.n - 4) == 2",
        r#"keys(input.o) == ["k", "n"] && values(input.o).len() == 2"#,
        r#"split("a,b", ",") == ["a", "b"] && input.words.index_of("b") == 1"#,
        "count([1, 2, 1.0], 1) == 2 && count([], 1) == 0 && input.list.count(input.n) <= 1",
        "indices([7, 8]) == [0, 1] && indices([]) == [] && indices([7, 8]).all(|k| at([7, 8], k) == k + 7)",
        "min(3, 2.5) == 2.5 && max(3, 2.5) == 3 && abs(-3) == 3 && -input.n == -5",
        "7 / 2 == 3.5 && 6 / 2 == 3 && 7 % 2 == 1 && input.one / 2 == 0.5",
        r#"input.z ?? "x" == "x""#,
        "input.none.all(|x| x.y.z) && !input.none.some(|x| x)",
        r#""clerk" in context.roles"#,
        r#"input.list.all(|x| "n" in input && x in input.list)"#,
        "input.t || input.missing == 1",
    ] {
        assert_eq!(eval(text, example()), Ok(true), "{text}");
    }
}

#[test]
fn comparing_different_types_is_an_error() {
    let values = ["5", "\"5\"", "true", "()", "[5]", "#{n: 5}"];
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().filter(|(j, _)| *j != i) {
            for operator in ["==", "!=", "<", "<=", ">", ">="] {
                let text = format!("{a} {operator} {b}");
                let error = eval(&text, json!({})).expect_err(&text);
                assert!(error.contains("different types"), "{text}: {error} ({j})");
            }
        }
    }
}

#[test]
fn operands_of_the_wrong_type_are_errors() {
    for text in [
        "[1, \"2\"] == [1, 2]",
        "[1, \"2\"] == [9, 2]",
        "#{a: #{b: 1}} == #{a: #{b: \"1\"}}",
        "input.n == input.s",
        "input.z == input.n",
        "input.n == () || input.z == ()",
        "\"2\" in input.list",
        "2 in [2, \"2\"]",
        // The agent could pass a string or an object in place of a list.
        "\"k\" in input.o",
        "\"b\" in input.s",
        "\"k\" in input.n",
        "input.items.some(|i| \"x\" in i)",
        "\"a\" in to_lower(input.s)",
        "1 in context.tenant",
        "1 in input",
        "input.list.index_of(\"1\") >= 0",
        "count(input.list, \"1\") == 0",
        "count(input.s, \"A\") == 0",
        "indices(input.s) == []",
        "indices(input.o) == []",
        "input.n.len() > 1",
        "input.t.is_empty()",
        "input.list.contains(\"1\")",
        "input.s[0] == \"A\"",
        "input.s[0] != \"B\"",
        "input.words.all(|w| w > 1)",
        "input.words.some(|w| w)",
        "input.n + \"1\" == \"51\"",
        "input.s + 1 == \"Abc1\"",
        "input.t + 1 == 2",
        "!input.n",
        "-input.s == 1",
        "input.n && true",
        "input.n",
        "max(1, \"2\") == 1",
        "sum(input.words) == 0",
        "input.n[0]",
        "true < false",
        "[1] < [2]",
        "1 / 0 == 1",
        "1.0 % 0 == 1",
        "1e33 + 0.1 > 0",
    ] {
        let error = eval(text, example()).expect_err(text);
        assert!(!error.contains("compile"), "{text}: {error}");
    }
}

#[test]
fn missing_values_are_errors() {
    for (text, expected) in [
        ("input.missing == 1", "the object has no key `missing`"),
        ("input[\"missing\"] == 1", "the object has no key `missing`"),
        ("input.o.x.y == 1", "the object has no key `x`"),
        ("is_null(input.missing)", "the object has no key `missing`"),
        ("tool.x == 1", "`x` is read from a value that is not an object"),
        ("input.n && true", "expected a boolean, found a value of type number"),
        ("input.list[3] == 1", "no element 3"),
        ("input.list[-4] == 1", "no element -4"),
        ("at(input.list, 3) == 1", "none at 3"),
        ("input.items[input.missing].price == 1", "the object has no key `missing`"),
        ("input.items.all(|i| i.missing == 1)", "the object has no key `missing`"),
        ("output == 1", "only once the call has settled"),
        ("error == \"x\"", "only once the call has settled"),
        ("server == \"x\"", "the call has no `server`"),
        ("is_null(annotations)", "the call has no `annotations`"),
        ("[1].all(|x| server == \"x\")", "the call has no `server`"),
    ] {
        let error = eval(text, example()).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(eval("input.n == 1", json!([1])).unwrap_err().contains("not a JSON object"));
    let (call, session) = (ToolCall::new("c", "t", json!({})), SessionState::default());
    let view = CallView::new(&call, &session);
    let error = Predicate::compile("context.tenant == \"a\"").unwrap().eval(&view).unwrap_err();
    assert_eq!(error.message, "the object has no key `tenant`");
}

/// What is absent can be tested and replaced; what is undecided stays so, and wins over what is absent.
#[test]
fn absent_values_can_be_replaced_and_undecided_ones_cannot() {
    for text in [
        "(input.missing ?? 3) == 3 && (input.z ?? 4) == 4 && (input.n ?? 6) == 5",
        "(input.missing.deep ?? input.absent ?? 1) == 1",
        "(input.list[9] ?? 0) == 0 && (at(input.list, 9) ?? 0) == 0 && (server ?? \"none\") == \"none\"",
        "(input.missing + 1 ?? 2) == 2",
        "([1, input.missing] ?? []) == [] && (#{a: input.missing} ?? 1) == 1",
        "(input.items.map(|i| i.missing) ?? []) == []",
        "((input.missing && true) ?? false) == false",
        "exists(input.n) && exists(input.z) && !exists(input.missing) && !exists(input.o.x.y)",
        "present(input.n) && !present(input.z) && !present(input.missing)",
        "!exists(server) && !exists(input.list[7]) && exists(input.list[2])",
        "is_null(input.missing?.a) && is_null(input.z?.a.b) && input.o?.k == \"v\" && is_null(input.o?.x)",
        "is_null(input.missing?[1]) && input.list?[1] == 2 && is_null(input.list?[9])",
        "input.items?[0].price == 5 && input.items[0]?.tags[0] == \"x\"",
        r#""cm" in context.tenant && "x" !in context.tenant && "facts" in session && !("x" in session.facts)"#,
        r#""b" in "abc" && "k" in #{k: 1} && "n" in input && "tenant" in context"#,
        "is_tool(\"pay\") && is_tool(\"p*\") && is_tool(\"/^pa/\") && !is_tool(\"refund\")",
        "join([\"a\", to_text(1)], \"-\") == \"a-1\" && sort([2, 1]) == [1, 2] && to_number(\"1.5\") == 1.5",
    ] {
        assert_eq!(eval(text, example()), Ok(true), "{text}");
    }
    for text in [
        "(input.s + 1 ?? 2) == 2",
        "(input.missing + (1 + \"a\") ?? 2) == 2",
        "([input.missing, 1 + \"a\"] ?? []) == []",
        "((input.missing && input.n) ?? false) == false",
        "(input.items.map(|i| if_missing(i)) ?? []) == []",
        "(input.items.map(|i| [i.missing, 1 + \"a\"]) ?? []) == []",
        "exists(input.s.x)",
        "exists(1 + \"a\")",
        "is_null(input.s?.a)",
        "is_null(input.o?.k.x)",
    ] {
        assert!(eval(text, example()).is_err(), "{text}");
    }
}

#[test]
fn numbers_beyond_float_precision_are_compared_exactly() {
    let parse = |text: &str| callgate::json::parse(text).unwrap();
    let input = parse(
        r#"{"p":9007199254740993,"q":9007199254740992.0,"big":18446744073709551617,"huge":1e400,
        "tiny":1e-400,"round":1e3,"power":18446744073709551616,"fine":9007199254740993.5,"tenth":0.1}"#,
    );
    for text in [
        "input.p > input.q",
        "input.p != input.q",
        "input.round == 1000",
        "input.power > input.p",
        "input.tenth == 0.1",
        "input.big > input.power && input.huge > 1 && input.tiny > 0 && input.fine > input.p",
    ] {
        assert_eq!(eval(text, input.clone()), Ok(true), "{text}");
    }
}

#[test]
fn rejects_invalid_expressions_with_position_and_help() {
    for (text, at, message, help) in [
        ("true && inptu.a == 1", 8, "unknown name `inptu`", "did you mean `input`?"),
        (
            "input.s.starts_wiht(\"a\")",
            8,
            "unknown function `starts_wiht`",
            "did you mean `starts_with(string, start)`?",
        ),
        ("\"ü\" == lower(tool)", 8, "unknown function `lower`", "did you mean `to_lower(string)`?"),
        ("tool ==\n  to_lowr(tool)", 10, "unknown function `to_lowr`", "did you mean `to_lower(string)`?"),
        ("len(input.a, 1) == 1", 0, "takes 1 arguments, this call has 2", "len(string, array or object)"),
        ("input.a.len(1) == 1", 8, "takes 1 arguments", "len(string, array or object)"),
        ("input.a.all(|x| y > x)", 16, "unknown name `y`", "did you mean `x`?"),
        ("input.a.all(|x| foo(x))", 16, "unknown function `foo`", ""),
        ("input.a.all(true)", 12, "takes a closure", "all(array, |x| …)"),
        ("input.a.all(|x, y, z| x == y)", 12, "one parameter", ""),
        ("input.a.all(|input| input)", 12, "choose another name", ""),
        ("input.list.push(1)", 11, "is available only in scripts and functions", ""),
        ("is_null(next(input))", 8, "is available only in `around` scripts", ""),
        ("tool == 'a'", 8, "single quotes make no string", "double quotes"),
        ("tool == `a${id}`", 8, "is not supported", ""),
        ("$.input.a == 1", 0, "has no `$`", "write `input.amount`"),
        ("principal == \"ana\"", 0, "unknown name `principal`", "write `context.principal`"),
        ("amount > 1", 0, "unknown name `amount`", "write `input.amount`"),
        ("data.limits > 1", 0, "unknown constant `data.limits`", "under `data:`"),
        ("is_tool(\"@sends\")", 8, "unknown group `@sends`", "under `groups:`"),
        ("is_tool(tool)", 0, "a string literal", ""),
        ("tool.matches(id)", 13, "must be a string literal", ""),
        ("tool.matches(\"(\")", 13, "invalid regex `(`", ""),
        ("1 << 2 == 1", 2, "not an operator", ""),
        ("sleep(3)", 0, "unknown function `sleep`", ""),
        ("Fn(\"x\").call()", 0, "unknown function", ""),
        ("input.call(input)", 6, "unknown function", ""),
        ("0xFFFF_FFFF_FFFF_FFFF > 1", 0, "cannot be read exactly", "decimal digits"),
        ("- /* so */ 1 > 1", 0, "cannot be read exactly", "directly before"),
        ("std::x == 1", 0, "`::`", ""),
    ] {
        let error = Predicate::compile(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(error.offset, Some(at), "{text}: {error:?}");
        assert!(error.help.unwrap_or_default().contains(help), "{text}");
    }
    for text in [
        "",
        "1 +",
        "let x = 1",
        "eval(\"1\")",
        "print(1)",
        "switch tool { _ => true }",
        "if true { true }",
        "{ true }",
        "while true {}",
        "loop {}",
        "import \"x\" as y",
        "tool = 1",
        "true; false",
        "input.a.all(|x| while true {})",
        "fn f() {}",
        "this == 1",
        "type_of",
        "is_shared(input)",
        "|x| x",
        "debug(1)",
        "tool.trim!()",
        "0..5 == 1",
        "input.a.all(|x| { let y = x; y })",
        "throw 1",
        "input.a.all(|x| return x)",
    ] {
        assert!(Predicate::compile(text).is_err(), "{text}");
    }
}

#[test]
fn hostile_expressions_are_errors() {
    let list: Vec<u32> = (0..2_000).collect();
    let input = json!({"list": list, "text": "x".repeat(40_000), "many": vec![0; 200_000]});
    for text in [
        "input.list.all(|a| input.list.all(|b| input.list.all(|c| c >= 0)))".to_owned(),
        "input.text + input.text == \"\"".to_owned(),
        "input.list.map(|a| input.list.map(|b| b)).len() > 0".to_owned(),
        "input.many.map(|a| a).len() > 0".to_owned(),
        format!("{}1{} == 1", "(".repeat(5_000), ")".repeat(5_000)),
        format!("{}true", "!".repeat(5_000)),
        format!("1 == {}", vec!["1"; 2_000].join(" + ")),
        format!("{}1", "|x| ".repeat(3_000)),
        format!("tool == \"{}\"", "x".repeat(20_000)),
        format!("input.list{} == 1", "[0]".repeat(3_000)),
    ] {
        assert!(eval(&text, input.clone()).is_err(), "{text}");
    }
}

#[test]
fn reads_large_values() {
    let input = json!({"body": "x".repeat(10 << 20), "rows": vec![1; 50_000]});
    assert_eq!(eval("input.body.starts_with(\"x\") && input.body != \"x\"", input.clone()), Ok(true));
    assert_eq!(eval("input.rows.len() == 50000 && 1 in input.rows", input), Ok(true));
}

#[test]
fn undecided_session_values_make_expressions_undecided() {
    let mut session = SessionState::default();
    session.set_fact("order", Some("o1"), json!({"status": "pending"}));
    session.set_fact("other", None, json!(1));
    let input = json!({"order_id": "o1"});
    let reads = [
        ("session.facts.order[input.order_id].status == \"pending\"", true),
        ("has(session.facts, \"order\")", true),
        ("type_of(session) == \"object\"", true),
        ("session.facts[\"order\"].o1.status == \"pending\"", true),
        ("session.facts.other == 1", false),
        ("\"a\" !in session.labels", false),
        ("!has(session.calls, \"x\")", false),
    ];
    for (text, _) in reads {
        assert_eq!(eval_with(text, input.clone(), &session), Ok(true), "{text}");
    }
    session.mark_unknown("facts.order");
    for (text, undecided) in reads {
        let result = eval_with(text, input.clone(), &session);
        match undecided {
            true => assert!(
                result.clone().unwrap_err().contains("`facts.order` of the session"),
                "{text}: {result:?}"
            ),
            false => assert_eq!(result, Ok(true), "{text}"),
        }
    }
    session.mark_unknown("labels");
    assert!(eval_with("\"a\" in session.labels", input, &session).unwrap_err().contains("`labels`"));
}

#[test]
fn reports_the_members_it_reads() {
    let read = |text: &str| Predicate::compile(text).unwrap().roots_read().into_iter().collect::<Vec<_>>();
    assert_eq!(
        read("input.a == 1 && session.facts.x[context.k] == 2"),
        [Root::Input, Root::Context, Root::Session]
    );
    assert_eq!(read("[1].all(|x| [x].all(|y| error == \"\"))"), [Root::Error]);
    assert_eq!(read("true"), []);
}

#[test]
fn predicates_are_send_and_sync() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Predicate>();
}

#[test]
fn operator_precedence_matches_rhai() {
    for text in [
        "1 + 1 in [2] == true",
        "1 in [1] && !(2 in [1])",
        "true || 1 == 2 && false",
        "2 * 3 + 1 == 7 && 1 + 2 > 2 == true",
    ] {
        assert_eq!(eval(text, json!({})), Ok(true), "{text}");
    }
}
