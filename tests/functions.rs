//! The functions of expressions: a table of results, of what is absent, and of what is undecided.

use callgate::call::{CallView, SessionState, ToolCall};
use callgate::json::{Value, json};
use callgate::script::Expression;

fn value(text: &str, input: Value) -> Result<Value, String> {
    let expression = Expression::compile(text).map_err(|error| format!("does not compile: {error:?}"))?;
    let (call, session) = (ToolCall::new("c1", "pay", input), SessionState::default());
    expression.value(&CallView::new(&call, &session)).map_err(|error| {
        format!("{}: {}", if error.is_absent { "absent" } else { "undecided" }, error.message)
    })
}

fn example() -> Value {
    json!({
        "n": 5, "s": "abc", "list": [3, 1, 2], "words": ["b", "a", "b"], "none": [], "z": null, "o": {"k": "v"},
        "rows": [{"id": "a", "price": 1.5}, {"id": "b", "price": 2}], "card": "4111 1111 1111 1111",
        "text": "Send $1,200.50 to Ana@Example.com, see https://example.org/a?b=1 and DE89 3704 0044 0532 0130 00"
    })
}

#[test]
fn functions_return_these_values() {
    for (text, expected) in [
        ("[first(input.list), last(input.list), input.list.reverse()]", json!([3, 2, [2, 1, 3]])),
        ("unique(input.words)", json!(["b", "a"])),
        ("unique([1, 1.0, 2]).len() + unique([#{a: 1}, #{a: 1}]).len() + unique([]).len()", json!(3)),
        ("zip(input.list, input.words)", json!([[3, "b"], [1, "a"], [2, "b"]])),
        ("input.rows.find(|r| r.price > 1.5).id", json!("b")),
        ("input.rows.find(|r, i| i == 0).id", json!("a")),
        ("input.list.reduce(|sum, x| sum + x, 10)", json!(16)),
        ("input.list.reduce(|most, x, i| max(most, x * i), 0)", json!(4)),
        ("input.rows.sort(|a, b| b.price - a.price).map(|r| r.id)", json!(["b", "a"])),
        ("[sort(input.list), input.list.sort(|a, b| 0)]", json!([[1, 2, 3], [3, 1, 2]])),
        ("input.list.map(|x, i| x * i)", json!([0, 1, 4])),
        ("[pow(2, 10), sqrt(2.25), sign(-3), int(-2.7), fraction(-2.75)]", json!([1024, 1.5, -1, -2, -0.75])),
        ("[floor(-2.5), ceil(-2.5), round(2.345, 2), round(-0.5)]", json!([-3, -2, 2.35, -1])),
        ("[is_even(4), is_odd(4), is_zero(0.0)]", json!([true, false, true])),
        (
            "[chars(\"né\"), sub_string(\"hello\", 1, 3), sub_string(\"hello\", -2, 9)]",
            json!([["n", "é"], "ell", "lo"]),
        ),
        ("[to_text(5), to_text(\"5\"), to_text(true), to_number(\"1.50\")]", json!(["5", "5", "true", 1.5])),
        (
            "[join(input.words, \"-\"), replace(input.s, \"b\", \"x\"), slice(input.list, 1, 3)]",
            json!(["b-a-b", "axc", [1, 2]]),
        ),
        (
            "[range(1, 4), merge(input.o, #{l: 1}), count(input.words, \"b\"), sum(input.list)]",
            json!([[1, 2, 3], {"k": "v", "l": 1}, 2, 6]),
        ),
        (
            "[domain(\"Ana <ana@Example.COM>\"), host(\"HTTPS://Example.org:8443/x\")]",
            json!(["example.com", "example.org"]),
        ),
        (
            "[domain(\"a@x.com, b@y.com\", [\"x.com\", \"*.y.com\"]), domain(\"a@x.com\", \"x.com\")]",
            json!([false, true]),
        ),
        (
            "[host(\"https://a.b.com\", \"*.b.com\"), inside(\"/srv/data/x\", \"/srv/data\"), inside(\"/srv/x\", [\"/srv/data\"])]",
            json!([true, true, false]),
        ),
        (
            "[emails(input.text), ibans(input.text), hosts(\"see example.org.\")]",
            json!([["ana@example.com"], ["DE89370400440532013000"], ["example.org"]]),
        ),
        (
            "[urls(\"go to https://Example.org/a?b=1.\"), paths(\"'/etc/hosts'\")]",
            json!([["https://example.org/a?b=1"], ["/etc/hosts"]]),
        ),
        (
            "[numbers(\"3 apples, 1.5 kg\"), numbers(\"1.234\", \".\"), amounts(\"pay 5 EUR\")]",
            json!([[3, 1.5], [1.234], [{"value": 5, "currency": "EUR"}]]),
        ),
        ("mentioned(\"ana@example.com\", input.text, \"email\")", json!(true)),
        ("mentioned(\"na@example.com\", [\"x\", #{deep: input.text}], \"email\")", json!(false)),
        (
            "mentioned(5, \"pay 5 EUR\", \"number\") && mentioned(1.234, \"1,234\", \"number\", \",\")",
            json!(true),
        ),
        (
            "[detects(input.card, \"payment_card\"), detects(input, [\"payment_card\"]), detects(input.o, \"email\")]",
            json!([true, true, false]),
        ),
        ("matches(input.s, \"^a\") && input.s.contains(\"bc\")", json!(true)),
    ] {
        assert_eq!(value(text, example()), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_not_there_is_absent() {
    for text in [
        "first(input.none)",
        "last(input.none)",
        "input.list.find(|x| x > 9)",
        "unique(input.missing)",
        "zip(input.list, input.missing)",
        "input.rows.sort(|a, b| a.missing - b.missing)",
        "input.list.reduce(|sum, x| sum + x, input.missing)",
        "mentioned(input.missing, \"x\", \"word\")",
        "mentioned(\"ab\", input.missing, \"word\")",
        "detects(input.missing, \"email\")",
        "domain(input.missing, \"example.com\")",
        "pow(input.missing, 2)",
    ] {
        let error = value(text, example()).expect_err(text);
        assert!(error.starts_with("absent: "), "{text}: {error}");
        let replaced = format!("({text}) ?? 1");
        assert_eq!(value(&replaced, example()), Ok(json!(1)), "{replaced}");
    }
}

#[test]
fn what_cannot_be_computed_is_undecided() {
    for text in [
        // An element that cannot be tested is not one that is not found.
        "input.rows.find(|r| r.missing)",
        "input.rows.some(|r| r.missing)",
        "zip([1, 2], [1])",
        "unique([1, \"a\"])",
        "unique([\"a\", 1])",
        "unique([[1], [\"a\"]])",
        "first(input.s)",
        "reverse(input.s)",
        "input.list.find(|x| x)",
        "input.rows.find(|r| r.id > 1)",
        "input.list.sort(|a, b| a < b)",
        "input.s.sort(|a, b| 0)",
        "[1, \"a\"].sort()",
        "input.list.reduce(|sum, x| sum + to_text(x), 0)",
        "sqrt(-1)",
        "pow(2, -1)",
        "pow(10, 40) + 0.1",
        "is_even(1.5)",
        "int(input.s)",
        "to_text(input.o)",
        "to_text(input.list)",
        "to_text(input.z)",
        "domain(\"a@x.com, b@y.com\")",
        "domain(input.s)",
        "domain(5, \"x.com\")",
        "host(\"https://x.com@evil.org\", \"x.com\")",
        "host(input.list, \"x.com\")",
        "inside(\"~/x\", \"/srv/other\")",
        "inside(\"/srv/x\", input.n)",
        "domain(\"a@x.com\", to_lower(\"@X.com\"))",
        "numbers(\"1.234\")",
        "numbers(\"1\", \"x\")",
        "amounts(5)",
        "emails(input.list)",
        "mentioned(\"two words@x.com\", \"x\", \"email\")",
        "mentioned(5, \"5\", \"email\")",
        "mentioned(\"ab\", input.z, \"word\")",
        "mentioned(\"ab\", input.n, \"word\")",
        "mentioned(input.o, \"x\", \"word\")",
        "detects(input.z, \"email\")",
        "detects(true, \"email\")",
        "mentioned(input.s + 1, input.missing, \"word\")",
    ] {
        let error = value(text, example()).expect_err(text);
        assert!(error.starts_with("undecided: "), "{text}: {error}");
        assert!(value(&format!("({text}) ?? 1"), example()).is_err(), "{text}");
    }
}

#[test]
fn literals_are_checked_when_the_rules_are_loaded() {
    for (text, offset, message, help) in [
        ("detects(input.s, \"api_kye\")", 17, "unknown detector `api_kye`", "did you mean `api_key`?"),
        ("detects(input.s, tool)", 17, "must be string literals", "detects(input.text"),
        ("detects(input.s, [])", 17, "must be string literals", ""),
        ("mentioned(input.s, tool, \"mail\")", 25, "a known kind", "`email`, `url`"),
        ("mentioned(input.s, tool, \"email\", \".\")", 34, "for numbers only", "remove it"),
        ("input.s.domain(\"@x.com\")", 15, "a domain has no `@`", ""),
        ("host(input.s, [\"x.com\", \"https://y.com\"])", 24, "", ""),
        ("inside(input.s, \"data\")", 16, "", ""),
        ("input.list.sort(|a| a)", 16, "takes two parameters", ""),
        ("input.list.reduce(|a| a, 1)", 18, "takes two parameters", ""),
        (
            "input.list.reduce(|a, b| a)",
            11,
            "takes 3 arguments, this call has 2",
            "reduce(array, |result, x| …, initial)",
        ),
        ("input.list.map(|a, b, c| a)", 15, "one parameter", ""),
        ("input.list.sort(1)", 16, "`sort` takes a closure", "sort(array, |a, b| …?)"),
    ] {
        let error = Expression::compile(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(error.offset, Some(offset), "{text}: {error:?}");
        assert!(error.help.clone().unwrap_or_default().contains(help), "{text}: {error:?}");
    }
}

/// Whoever wraps a value in an array or an object hides nothing from `detects`.
#[test]
fn detectors_look_into_every_type_of_value() {
    for note in [json!("4111 1111 1111 1111"), json!(4111111111111111u64)] {
        for wrapped in
            [note.clone(), json!([note]), json!({"a": [{"b": note}]}), json!({"4111 1111 1111 1111": 1})]
        {
            assert_eq!(
                value("detects(input.note, \"payment_card\")", json!({"note": wrapped})),
                Ok(json!(true)),
                "{wrapped}"
            );
        }
    }
}

#[test]
fn functions_of_long_values_are_bounded() {
    let words: Vec<String> = (0..9_000).map(|n| format!("w{n}")).collect();
    let input =
        json!({"words": words, "numbers": (0..9_000).collect::<Vec<_>>(), "text": "a@x.com ".repeat(20_000)});
    assert_eq!(value("unique(input.words).len()", input.clone()), Ok(json!(9_000)));
    for text in [
        "unique(input.numbers)",
        "emails(input.text)",
        "input.numbers.sort(|a, b| input.numbers.sort(|c, d| d - c)[0])",
    ] {
        let error = value(text, input.clone()).expect_err(text);
        assert!(error.starts_with("undecided: "), "{text}: {error}");
    }
}
