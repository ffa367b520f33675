//! Approval cards, the routing of clicks back to their requests, and timelines, as hosts use them to show approvals to people.

#[path = "cards/clicks.rs"]
mod clicks;
#[path = "cards/commitment.rs"]
mod commitment;
#[path = "cards/escaping.rs"]
mod escaping;
#[path = "cards/payloads.rs"]
mod payloads;
#[path = "cards/timelines.rs"]
mod timelines;

use std::fs;
use std::path::PathBuf;

use callgate::card::{
    Card, CardLabels, FieldKind, MAX_ARGUMENTS, MAX_BUTTON, MAX_CARD, MAX_NOTES, Payload, Resolution,
    ResolutionKind,
};
use callgate::json::{self, Value, json};
use callgate::message::{RequestPart, ResponsePart};
use proptest::prelude::*;

fn cases(folder: &str) -> Vec<(String, Value)> {
    let folder = crate::fixtures::root().join("tests/cards").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let case = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, json::parse(&fs::read_to_string(path).unwrap()).unwrap())
    };
    paths.iter().map(case).collect()
}

fn record(shown: &str, name: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(format!("cards__{name}"), shown));
}

fn everything(card: &Card) -> String {
    let json = json::to_string_pretty(&json::to_value(card).unwrap()).unwrap();
    format!("{json}\n\n{}\n{}\n{}", card.to_text(), card.to_markdown(), card.to_html())
}

#[test]
fn pending_cards_match_snapshots() {
    for (name, case) in cases("pending") {
        let payload = Payload::from_json(&case).unwrap();
        let card = Card::pending(&payload.request);
        record(&everything(&card), &format!("pending__{name}"));
    }
}

#[test]
fn resolved_cards_match_snapshots() {
    for (name, case) in cases("resolved") {
        let payload = Payload::from_json(&case).unwrap();
        let text = |key: &str| case["resolution"].get(key).map(|text| text.as_str().unwrap().to_owned());
        let member = |key: &str| case["resolution"][key].clone();
        let resolved = match case["resolution"]["resolved"].as_str().unwrap() {
            "approved" => ResolutionKind::Approved,
            "edited" => ResolutionKind::Edited(member("input")),
            "answered" => ResolutionKind::Answered(member("output")),
            "denied" => ResolutionKind::Denied,
            "cancelled" => ResolutionKind::Cancelled,
            "expired" => ResolutionKind::Expired,
            other => panic!("{other}"),
        };
        let resolution = Resolution {
            kind: resolved,
            by: text("by").into_iter().collect(),
            at: text("at"),
            reason: text("reason"),
        };
        let card = Card::resolved(&payload.request, &resolution);
        record(&everything(&card), &format!("resolved__{name}"));
    }
}

fn request(input: Value) -> RequestPart {
    RequestPart {
        approval_id: "approval_c1".to_owned(),
        tool_call_id: "c1".to_owned(),
        tool_name: Some("refund".to_owned()),
        input: Some(input),
        ..RequestPart::default()
    }
}

fn pending(input: Value) -> Card {
    Card::pending(&request(input))
}

fn values(card: &Card, kind: FieldKind) -> Vec<&str> {
    card.fields.iter().filter(|field| field.kind == kind).map(|field| field.value.as_str()).collect()
}

#[test]
fn calls_that_differ_only_in_truncated_text_have_different_cards() {
    let long = |middle: &str| json!({"note": format!("{}{middle}{}", "a".repeat(2500), "z".repeat(2500))});
    let (one, other) = (pending(long("b")), pending(long("c")));
    assert!(one.incomplete && other.incomplete);
    assert_eq!(values(&one, FieldKind::Argument), values(&other, FieldKind::Argument));
    assert_ne!(values(&one, FieldKind::Digest), values(&other, FieldKind::Digest));
    let key = |middle: &str| json!({ (format!("{}{middle}{}", "k".repeat(200), "l".repeat(200))): 1 });
    assert_ne!(pending(key("b")).to_text(), pending(key("c")).to_text());
}

#[test]
fn truncation_keeps_the_end_and_counts_omitted_characters() {
    let url = format!("https://bank.example/{}@evil.example/pay", "a".repeat(1000));
    let card = pending(json!({ "url": url }));
    let shown = values(&card, FieldKind::Argument)[0];
    let (beginning, rest) = shown.split_once("…[").unwrap();
    let (count, end) = rest.split_once(" characters not shown]…").unwrap();
    assert!(
        beginning.starts_with("\"https\\u003a//bank.example/") && end.ends_with("@evil.example/pay\""),
        "{shown}"
    );
    let escaped = r"\u003a".len() - 1;
    let written = shown.chars().count() - "…[ characters not shown]…".chars().count() - count.len();
    assert_eq!(written - escaped + count.parse::<usize>().unwrap(), url.chars().count() + 2);
}

#[test]
fn card_reports_arguments_that_are_not_shown() {
    let many = |count: usize| Value::Object((0..count).map(|n| (format!("a{n}"), n.into())).collect());
    let card = pending(many(MAX_ARGUMENTS + 7));
    assert_eq!(values(&card, FieldKind::Argument).len(), MAX_ARGUMENTS);
    assert_eq!(values(&card, FieldKind::LeftOut), [format!("7 of {} arguments", MAX_ARGUMENTS + 7)]);
    assert!(card.incomplete);
    assert!(!pending(many(MAX_ARGUMENTS)).incomplete);
    let silent = RequestPart { input: None, ..request(Value::Null) };
    let card = Card::pending(&silent);
    assert!(card.incomplete && card.to_text().contains("the request does not contain them"), "{card:?}");
}

#[test]
fn edited_arguments_come_first_and_are_always_shown() {
    let many: Value = (0..100).map(|n| (format!("a{n}"), Value::from(n))).collect::<json::Map>().into();
    let mut edited = many.clone();
    edited["a99"] = json!("changed");
    let resolution =
        Resolution { kind: ResolutionKind::Edited(edited), by: Vec::new(), at: None, reason: None };
    let card = Card::resolved(&request(many), &resolution);
    let changed = card.fields.iter().find(|field| field.kind.is_argument()).unwrap();
    assert_eq!(
        (changed.kind, changed.value.as_str(), changed.was.as_deref()),
        (FieldKind::Changed, "\"changed\"", Some("99"))
    );
}

#[test]
fn reformatted_number_is_not_an_edit() {
    let resolution = Resolution {
        kind: ResolutionKind::Edited(json!({"amount": 250.0})),
        by: Vec::new(),
        at: None,
        reason: None,
    };
    let card = Card::resolved(&request(json!({"amount": 250})), &resolution);
    assert!(values(&card, FieldKind::Changed).is_empty(), "{card:?}");
}

#[test]
fn response_with_several_decisions_resolves_to_the_strictest() {
    let response = |approved, cancel| ResponsePart {
        approved,
        cancel,
        output: Some(json!(1)),
        edited_input: Some(json!({})),
        ..ResponsePart::default()
    };
    for (response, resolved) in [
        (response(true, true), ResolutionKind::Cancelled),
        (response(false, false), ResolutionKind::Denied),
        (response(true, false), ResolutionKind::Answered(json!(1))),
    ] {
        assert_eq!(Resolution::from(&response).kind, resolved);
    }
}

#[test]
fn names_and_addresses_with_mixed_scripts_are_flagged() {
    let note = |tool: &str, input: Value| {
        let request = RequestPart { tool_name: Some(tool.to_owned()), ..request(input) };
        values(&Card::pending(&request), FieldKind::Note).join("; ")
    };
    assert!(
        note("s\u{435}nd", json!({}))
            .contains(r#"the tool name "s\u0435nd" mixes Latin and Cyrillic letters"#)
    );
    for (input, noted) in [
        (json!({"to": "ana@ex\u{430}mple.com"}), r"ana@ex\u0430mple.com"),
        (json!({"deep": [{"url": "see https://p\u{430}ypal.com/x now"}]}), r"https\u003a//p\u0430ypal.com/x"),
        (json!({"\u{430}mount": 1}), r"\u0430mount"),
        (
            json!({"cc": "a", "\u{441}\u{441}": "b"}),
            r#""\u0441\u0441" has Cyrillic letters that look like Latin ones"#,
        ),
    ] {
        assert!(note("send", input.clone()).contains(noted), "{input}: {}", note("send", input.clone()));
    }
    for input in [
        json!({"to": "ana@example.com", "text": "Привет, Ana! Größe 3.5"}),
        json!({"to": "почта@россия.рф", "n": 1.5}),
        json!({"to": "東京tower.jp"}),
    ] {
        assert_eq!(note("send", input.clone()), "", "{input}");
    }
    let many: Vec<String> = (0..50).map(|n| format!("a{n}@ex\u{430}mple.com")).collect();
    let noted = note("send", json!({ "to": many }));
    assert!(
        noted
            .ends_with(&format!("{} more names or addresses may not be what they look like", 50 - MAX_NOTES)),
        "{noted}"
    );
}

#[test]
fn arguments_cannot_imitate_card_lines() {
    let card = pending(json!({"x": "1\n\nTool: harmless", "Tool": "harmless"}));
    let lines: Vec<String> = card.to_text().lines().map(str::to_owned).collect();
    assert!(lines.contains(&"Tool: refund".to_owned()));
    assert!(!lines.contains(&"Tool: harmless".to_owned()), "{lines:?}");
    assert!(lines.contains(&"  \"Tool\": \"harmless\"".to_owned()), "{lines:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn cards_never_exceed_their_length_limit(texts in prop::collection::vec("\\PC{0,40}|[<a\u{202e}\u{e0041}]{0,3000}", 8), many in 0..60usize) {
        let [title, question, approve, deny, tool, server, principal, value] = texts.try_into().unwrap();
        let input: Value = (0..many).map(|n| (format!("{value}{n}"), Value::from(value.clone()))).collect::<json::Map>().into();
        let edited: Value = (0..many).map(|n| (format!("{value}{n}"), Value::from(format!("{value}!")))).collect::<json::Map>().into();
        let request = RequestPart {
            message: Some(question), tool_name: Some(tool), policies: vec![value.clone(); 9], expires_at: Some(value), server: Some(server),
            card: CardLabels { title: Some(title), approve: Some(approve), deny: Some(deny) }, ..request(input)
        };
        let resolution = Resolution {
            kind: ResolutionKind::Edited(edited), by: vec![principal.clone(); 12], at: Some(principal.clone()), reason: Some(principal),
        };
        for card in [Card::pending(&request), Card::resolved(&request, &resolution)] {
            let texts = card.fields.iter().flat_map(|field| [Some(&field.label), Some(&field.value), field.was.as_ref()]).flatten();
            let texts = texts.chain([&card.title, &card.text]).chain(card.actions.iter().map(|action| &action.label));
            let length: usize = texts.map(|text| text.chars().count()).sum();
            prop_assert!(length <= MAX_CARD, "{length}");
            // The label itself and the note that it was truncated.
            prop_assert!(card.actions.iter().all(|action| action.label.chars().count() < MAX_BUTTON + 100));
        }
    }
}
