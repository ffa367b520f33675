use super::*;

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
