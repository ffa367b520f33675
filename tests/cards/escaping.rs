//! Escaping of untrusted text: no renderer interprets it as markup.

use std::sync::LazyLock;

use callgate::card::{Card, CardLabels, Resolution, ResolutionKind};
use callgate::json::{Value, json};
use callgate::message::RequestPart;
use callgate::safe_text::{escape_json, escape_markup, escape_message, escape_non_ascii, is_hidden};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::{Regex, RegexSet};

/// Fragments with a meaning to renderers, combined in generated strings.
const PIECES: [&str; 60] = [
    "*",
    "**",
    "_",
    "__",
    "~",
    "~~",
    "`",
    "```",
    "<",
    ">",
    "</b>",
    "<!here>",
    "<@U1>",
    "<#C1>",
    "&",
    "&lt;",
    "&#64;",
    "[",
    "]",
    "](",
    "(",
    ")",
    "!",
    "#",
    "# ",
    "- ",
    "+ ",
    "1. ",
    "1) ",
    "> ",
    "---",
    "===",
    "|",
    "||",
    "\\",
    "\\u003c",
    "\\n",
    "\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    "@",
    "@here",
    "everyone",
    "a",
    "b7",
    ":",
    "://",
    ":tada:",
    "www.",
    ".",
    "$",
    "$$",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{200b}",
    "\u{301}",
    "é",
    "\"",
];

pub fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(PIECES.as_slice()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z]{1,6}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

pub fn hostile_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![4 => hostile().prop_map(Value::from), 1 => any::<i64>().prop_map(Value::from), 1 => Just(Value::Null)];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((hostile(), inner), 0..4)
                .prop_map(|entries| entries.into_iter().collect::<callgate::json::Map>().into()),
        ]
    })
}

/// Patterns that start markup, a mention or a link in some renderer.
static FORBIDDEN: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new([
        r"[<>&`*~|#^]",
        r"://",
        r"(?i)www\.",
        r"(?i)@(everyone|here|channel|group)",
        r"(^|[^A-Za-z0-9])@",
        r"@([^A-Za-z0-9]|$)",
        r"(^|[^A-Za-z0-9])_|_([^A-Za-z0-9]|$)",
        r":[A-Za-z0-9_+-]*[A-Za-z_+-][A-Za-z0-9_+-]*:",
        r":(100|1234):",
        r"\$[^0-9]|\$$",
        r"\]\(",
        r"\\[^unrt]|\\$",
        r"  |^ | $",
    ])
    .unwrap()
});

/// Asserts that a string contains nothing that any renderer interprets.
fn assert_without_markup(text: &str) {
    for c in text.chars() {
        assert!(!c.is_control() && !is_hidden(c), "{c:?} in {text:?}");
        assert!(c == ' ' || !c.is_whitespace(), "{c:?} in {text:?}");
    }
    let found: Vec<usize> = FORBIDDEN.matches(text).into_iter().collect();
    assert!(
        found.is_empty(),
        "{:?} in {text:?}",
        found.iter().map(|at| &FORBIDDEN.patterns()[*at]).collect::<Vec<_>>()
    );
}

/// Returns the text that a Markdown renderer with every extension produces; panics on any other element.
fn markdown_text(markdown: &str) -> String {
    let options = Options::all() - Options::ENABLE_SMART_PUNCTUATION;
    let mut text = String::new();
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Text(part) => text.push_str(&part),
            Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) => {}
            other => panic!("{other:?} in {markdown:?}"),
        }
    }
    text
}

/// Returns the text that a browser shows for HTML without elements.
fn html_text(html: &str) -> String {
    html.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// Reverses the escaping of a string.
fn original(unmarked: &str) -> String {
    callgate::json::from_str(&format!("\"{}\"", unmarked.replace('"', "\\\""))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn escaped_text_has_no_markup_and_is_reversible(text in hostile()) {
        let shown = escape_markup(&text);
        assert_without_markup(&shown);
        // Reversible, so different strings have different escaped forms.
        prop_assert_eq!(original(&shown), text.clone());
        prop_assert_eq!(markdown_text(&shown), shown.clone());
        prop_assert_eq!(markdown_text(&format!("before {shown} after")), format!("before {shown} after"));
        let spelled = escape_non_ascii(&text, usize::MAX).text;
        prop_assert!(spelled.is_ascii());
        prop_assert_eq!(original(&spelled), text);
    }

    #[test]
    fn escaped_json_parses_to_the_same_value(value in hostile_value()) {
        let shown = escape_json(&value, usize::MAX).text;
        prop_assert_eq!(callgate::json::from_str::<Value>(&shown).unwrap(), value);
        prop_assert_eq!(markdown_text(&format!("value: {shown} end")), format!("value: {shown} end"));
    }

    #[test]
    fn escaping_a_message_is_idempotent(text in hostile(), within in hostile()) {
        let message = escape_message(&text, usize::MAX).text;
        prop_assert_eq!(&escape_message(&message, usize::MAX).text, &message);
        prop_assert_eq!(markdown_text(&message), message.clone());
        let value = if within.is_empty() { "nothing".to_owned() } else { escape_markup(&within) };
        let around = escape_message(&format!("Send {value} now"), usize::MAX).text;
        prop_assert_eq!(around, format!("Send {value} now"));
    }

    #[test]
    fn truncated_text_stays_escaped_and_counts_omitted_characters(text in hostile(), limit in 0..20usize) {
        let cut = callgate::safe_text::escape_markup_up_to(&text, limit);
        assert_without_markup(&cut.to_string());
        // One character on each side of the gap may be written as an escape.
        prop_assert!(cut.text.chars().count() + cut.end.chars().count() <= limit + 22);
        let (beginning, end) = (original(&cut.text), original(&cut.end));
        prop_assert_eq!(beginning.chars().count() + cut.left_out + end.chars().count(), text.chars().count());
        prop_assert!(text.starts_with(&beginning) && text.ends_with(&end));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn rendered_cards_contain_only_their_own_elements(texts in prop::collection::vec(hostile(), 10), input in hostile_value()) {
        let [tool, message, server, policy, reason, by, title, approve, deny, key] = texts.try_into().unwrap();
        let request = RequestPart {
            approval_id: key.clone(),
            tool_name: Some(tool),
            input: Some(json!({ key: input })),
            message: Some(message),
            policies: vec![policy.clone()],
            expires_at: Some(policy.clone()),
            server: Some(server),
            card: CardLabels { title: Some(title), approve: Some(approve), deny: Some(deny) },
            ..RequestPart::default()
        };
        let resolution = Resolution { kind: ResolutionKind::Edited(json!({ (by.clone()): reason })), by: vec![by], at: None, reason: Some(policy) };
        for card in [Card::pending(&request), Card::resolved(&request, &resolution)] {
            let all = callgate::json::to_value(&card).unwrap();
            assert_texts(&all);
            assert_own_markdown(&card);
            assert_own_html(&card);
            let hidden = |c: char| c != '\n' && (c.is_control() || is_hidden(c));
            prop_assert!(!card.to_text().contains(hidden));
            prop_assert_eq!(card.to_text().lines().filter(|line| line.starts_with("Tool: ")).count(), 1);
        }
    }
}

fn assert_texts(value: &Value) {
    match value {
        Value::String(text) => {
            assert!(
                !text.contains(|c: char| c.is_control() || is_hidden(c) || "<>`*#|^&".contains(c)),
                "{text:?}"
            );
        }
        Value::Array(items) => items.iter().for_each(assert_texts),
        Value::Object(map) => map.values().for_each(assert_texts),
        _ => {}
    }
}

fn assert_own_markdown(card: &Card) {
    let markdown = card.to_markdown();
    let mut text = String::new();
    for event in Parser::new_ext(&markdown, Options::all() - Options::ENABLE_SMART_PUNCTUATION) {
        match event {
            Event::Text(part) => text.push_str(&part),
            Event::Start(Tag::Paragraph | Tag::Strong | Tag::List(None) | Tag::Item)
            | Event::End(TagEnd::Paragraph | TagEnd::Strong | TagEnd::List(false) | TagEnd::Item) => {}
            other => panic!("{other:?} in {markdown}"),
        }
    }
    for field in &card.fields {
        assert!(text.contains(&format!("{}: {}", field.label, field.value)), "{} in {text}", field.value);
    }
}

fn assert_own_html(card: &Card) {
    let html = card.to_html();
    static ELEMENT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"</?(section|h3|p|dl|dt|dd|button)( [a-z-]+="[^"<>]*")*>"#).unwrap());
    let plain = ELEMENT.replace_all(&html, "\n");
    assert!(!plain.contains(['<', '>']), "{html}");
    let text = html_text(&plain);
    for field in &card.fields {
        assert!(text.lines().any(|line| line == field.label), "{} in {text}", field.label);
        assert!(text.contains(&field.value), "{} in {text}", field.value);
    }
}
