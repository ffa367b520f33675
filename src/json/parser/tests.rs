use super::*;

#[test]
fn keeps_the_text_of_numbers_and_the_order_of_members() {
    for text in [
        r#"{"z":[1,1.0,1E400,12345678901234567890123],"a":{"b":null,"c":true}}"#,
        r#"{"1e5":"2e5 \" 3E5","a\\":[-1e5,2E-7,[1e+5,{"b":-0.5e05}]],"c":0}"#,
        r#"[-0,-0.0,0.10,1.50,"",[],{}]"#,
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn no_key_has_a_special_meaning() {
    for text in [
        r#"{"note":{"$serde_json::private::Number":"5"},"amount":99999,"z":1e0}"#,
        r#"{"$serde_json::private::Number":"5"}"#,
        r#"{"$serde_json::private::RawValue":"[1]"}"#,
        r#"{"$callgate::json::Value":"5","$callgate::json::Number":{"$callgate::json::Value":[]}}"#,
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    let escaped = r#"{"a":{"\u0024serde_json::private::Number":"5"},"amount":99999}"#;
    let read = parse(escaped).unwrap();
    assert_eq!(read["amount"].to_string(), "99999");
    assert_eq!(read["a"]["$serde_json::private::Number"], "5");
}

#[test]
fn rejects_nested_and_escaped_duplicate_keys() {
    for text in [r#"{"a":1,"a":2}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.kind, Kind::DuplicateKey("a".to_owned()));
        assert!(error.to_string().contains("duplicate key `a`"), "{error}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(!crate::json::is_deeper_than(&parse(&nested(MAX_DEPTH)).unwrap(), MAX_DEPTH));
    assert_eq!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().kind, Kind::TooDeep);
    for open in ["[", r#"{"a":"#, r#"[{"a":"#] {
        assert_eq!(parse(&open.repeat(100_000)).unwrap_err().kind, Kind::TooDeep);
    }
}

#[test]
fn errors_have_kind_line_and_column() {
    for (text, expected) in [
        ("", "unexpected end of the text at line 1 column 1"),
        ("{", "unexpected end of the text at line 1 column 2"),
        ("[1,\n 2", "unexpected end of the text at line 2 column 3"),
        ("\"ab", "unexpected end of the text at line 1 column 4"),
        (r#""\"#, "unexpected end of the text at line 1 column 3"),
        ("nul", "expected a value at line 1 column 1"),
        ("[1,]", "expected a value at line 1 column 4"),
        ("{\"ä\" 1}", "expected `:` at line 1 column 6"),
        ("{a: 1}", "expected a key in double quotes at line 1 column 2"),
        ("{\"a\": 1,}", "expected a key in double quotes at line 1 column 9"),
        ("[1 2]", "expected `,` or `]` at line 1 column 4"),
        ("{\"a\": 1 \"b\": 2}", "expected `,` or `}` at line 1 column 9"),
        ("{} {}", "unexpected text after the value at line 1 column 4"),
        ("[\n\n  01]", "invalid number at line 3 column 3"),
        ("[1.5.2]", "invalid number at line 1 column 2"),
        ("[NaN]", "expected a value at line 1 column 2"),
        (r#"["\x"]"#, "invalid escape in a string at line 1 column 3"),
        (r#"["\u12g4"]"#, "invalid escape in a string at line 1 column 3"),
        (r#"["\ud800"]"#, "lone surrogate in a string at line 1 column 3"),
        ("[\"a\tb\"]", "unescaped control character in a string at line 1 column 4"),
        ("{\"a\":1,\n\"a\":2}", "duplicate key `a` at line 2 column 1"),
        ("\u{feff}{}", "expected a value at line 1 column 1"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    assert_eq!(
        parse_bytes(b"[\n\"a\xff\"]").unwrap_err().to_string(),
        "the text is not UTF-8 at line 2 column 3"
    );
}

#[test]
fn reads_escapes() {
    let text = r#""\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00\uD83D\uDE00""#;
    assert_eq!(parse(text).unwrap(), "\"\\/\u{8}\u{c}\n\r\tA\u{e9}\u{1f600}\u{1f600}");
}

#[test]
fn replaces_only_lone_surrogates_and_only_on_request() {
    for (text, expected) in [
        (r#""hello \ud83d""#, "hello \u{fffd}"),
        (r#""\uD83D\uDE00\uD800""#, "\u{1f600}\u{fffd}"),
        (r#""\udE00\uD83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\ud83d\ude00\ude00""#, "\u{fffd}\u{1f600}\u{fffd}"),
        (r#""\ud83d \ude00""#, "\u{fffd} \u{fffd}"),
        (r#""\ud83dude00""#, "\u{fffd}ude00"),
        (r#""\ud83d\\ude00""#, "\u{fffd}\\ude00"),
        (r#""\ud83d\n""#, "\u{fffd}\n"),
        (r#""\\\ud83d""#, "\\\u{fffd}"),
    ] {
        assert_eq!(parse_with_surrogates(text, LoneSurrogates::Replace).unwrap(), expected, "{text}");
        assert_eq!(parse(text).unwrap_err().kind, Kind::LoneSurrogate, "{text}");
    }
    for text in [r#""\u+d80""#, r#""\ud80""#, r#""\Ud800""#, r#""\ud83d\ude00\""#, r#""\ud83d\u""#] {
        assert!(parse_with_surrogates(text, LoneSurrogates::Replace).is_err(), "{text}");
    }
    let duplicate_keys = r#"{"\ud800":1,"\udc00":2}"#;
    let error = parse_with_surrogates(duplicate_keys, LoneSurrogates::Replace).unwrap_err();
    assert_eq!(error.kind, Kind::DuplicateKey("\u{fffd}".to_owned()));
}
