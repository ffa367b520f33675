use super::*;
use crate::json::json;

#[test]
fn keeps_ordinary_values() {
    for text in [
        "ana@example.com",
        "first.last@mail.example.co.uk",
        "snake_case_name",
        "kebab-case",
        "3.14",
        "-5",
        "+49 30 1234567",
        "10:30:00",
        "2026-11-21T10:30:00Z",
        "costs $250, or $5.50",
        "Is it so? Yes (mostly)! 100%, it's 10:30",
        "\"quoted\" and 'quoted'",
        "Größe, ação, Καλημέρα, Привет, שלום, مرحبا, नमस्ते, こんにちは, 你好, 안녕하세요",
        "path/to/file.txt",
        "e\u{301}",
    ] {
        assert_eq!(escape_markup(text), text);
    }
}

#[test]
fn escapes_possible_markup() {
    for (text, escaped) in [
        ("_it_", r"\u005fit\u005f"),
        ("a__b", r"a\u005f\u005fb"),
        ("@here", r"\u0040here"),
        ("x@everyone", r"x\u0040everyone"),
        (":tada:", r"\u003atada\u003a"),
        (":100:", r"\u003a100\u003a"),
        ("www.example.com", r"www\u002eexample.com"),
        ("- item", r"\u002d item"),
        ("1. item", r"1\u002e item"),
        ("===", r"\u003d=="),
        ("$x$", r"\u0024x\u0024"),
        ("$5$6", r"$5\u00246"),
        (" $5", r"\u0020\u00245"),
        (" a  b ", r"\u0020a \u0020b\u0020"),
        ("a\nb\u{1b}[0m", r"a\nb\u001b\u005b0m"),
        (r"a\n", r"a\u005cn"),
        ("\u{202e}\u{200b}\u{a0}", r"\u202e\u200b\u00a0"),
        ("\u{e0041}", r"\udb40\udc41"),
        ("e\u{301}\u{302}\u{303}", "e\u{301}\u{302}\\u0303"),
        ("<\u{338}", r"\u003c\u0338"),
        ("Tool: x", r"Tool\u003a x"),
        ("Tool:", r"Tool\u003a"),
        ("Tool\u{ff1a}x", r"Tool\uff1ax"),
        ("\u{201c}a\u{ff02}", r"\u201ca\uff02"),
        ("''a'b\u{2019}\u{2019}", r"\u0027\u0027a'b\u2019\u2019"),
        ("…［3", r"…\uff3b3"),
    ] {
        assert_eq!(escape_markup(text), escaped, "{text:?}");
    }
}

#[test]
fn escaping_a_message_is_idempotent() {
    let message = format!("Pay {} to\n  {}?", escape_markup("<1>"), escape_markup("a\\b\nc"));
    assert_eq!(escape_message(&message, 100).text, r"Pay \u003c1\u003e to a\u005cb\nc?");
    assert_eq!(escape_message(r"a\*b", 100).text, r"a\u005c\u002ab");
}

#[test]
fn truncates_between_escapes_and_counts_the_rest() {
    let cut = |text, limit| escape_markup_up_to(text, limit).to_string();
    assert_eq!(cut("ab<c", 7), "ab…[1 character not shown]…c");
    assert_eq!(cut("ab<c", 9), escape_markup("ab<c"));
    assert_eq!(cut("abcdefghijklmnop", 9), "abcdef…[7 characters not shown]…nop");
    assert_eq!(escape_json(&json!([1, "a"]), 4).to_string(), "[1,…[4 characters not shown]…]");
}

#[test]
fn escapes_markup_next_to_a_gap() {
    assert_eq!(escape_markup_up_to("aa_bbbbb_c", 6).to_string(), r"aa_b…[4 characters not shown]…\u005fc");
    assert_eq!(escape_markup_up_to("aaa_bbb@cc", 9).to_string(), r"aaa_bb…[1 character not shown]…\u0040cc");
    assert_eq!(
        escape_markup_up_to("aaaaa_bbbb@cc", 9).to_string(),
        r"aaaaa\u005f…[4 characters not shown]…\u0040cc"
    );
}
