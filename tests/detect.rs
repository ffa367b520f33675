//! Detectors and redaction: precision and recall on the corpora in `tests/detect/`; redaction is complete, idempotent and linear.
//!
//! A corpus line is `+ text «match»` with every match marked, or `- text` without matches. `~` is removed first: it keeps secret
//! scanners from reporting the fictitious keys. `\n` is a line break.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use callgate::json::{Value, json};
use callgate::redaction::{Detector, RedactionStyle, Redactor};
use callgate::seal::Keys;
use proptest::prelude::*;

mod unicode;

fn corpus(detector: Detector) -> Vec<(String, Vec<Range<usize>>)> {
    let path = format!("{}/tests/detect/{}.txt", crate::fixtures::root().display(), detector.name());
    let lines = std::fs::read_to_string(&path).unwrap_or_default();
    lines.lines().filter(|line| !line.is_empty()).map(read_line).collect()
}

fn read_line(line: &str) -> (String, Vec<Range<usize>>) {
    let marked = line.get(2..).unwrap_or_default().replace('~', "").replace("\\n", "\n");
    let (mut text, mut finds) = (String::new(), Vec::new());
    for (index, part) in marked.split(['«', '»']).enumerate() {
        let start = text.len();
        text.push_str(part);
        if index % 2 == 1 {
            finds.push(start..text.len());
        }
    }
    assert_eq!(finds.is_empty(), line.starts_with("- "), "{line}");
    (text, finds)
}

/// Finds matches and merges overlapping ones, as redaction does.
fn found(detector: Detector, text: &str) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in detector.find(text) {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[test]
fn precision_and_recall_on_the_corpora() {
    let mut table = String::from("detector            lines  finds  precision  recall\n");
    let mut misses = String::new();
    for detector in Detector::ALL {
        let lines = corpus(detector);
        assert!(lines.len() >= 30, "{} has a corpus of {} lines", detector.name(), lines.len());
        let (mut right, mut wrong, mut wanted) = (0u32, 0u32, 0u32);
        for (text, finds) in &lines {
            let found = found(detector, text);
            let hits = found.iter().filter(|range| finds.contains(range)).count() as u32;
            right += hits;
            wrong += found.len() as u32 - hits;
            wanted += finds.len() as u32;
            if found != *finds {
                let shown: Vec<_> = found.iter().map(|range| text.get(range.clone()).unwrap()).collect();
                writeln!(misses, "{}: {text:?}: found {shown:?}", detector.name()).unwrap();
            }
        }
        let percent = |part: u32, whole: u32| f64::from(part) * 100.0 / f64::from(whole.max(1));
        let (precision, recall) = (percent(right, right + wrong), percent(right, wanted));
        let (name, lines) = (detector.name(), lines.len());
        writeln!(table, "{name:<18} {lines:>6} {wanted:>6} {precision:>9.1}% {recall:>6.1}%").unwrap();
    }
    println!("{misses}");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("detect", format!("{table}\nmisses\n{misses}")));
}

fn every(style: RedactionStyle) -> Redactor {
    Redactor::new(Detector::ALL.to_vec(), Vec::new(), style)
}

#[test]
fn detector_names_round_trip() {
    for detector in Detector::ALL {
        assert_eq!(Detector::from_name(detector.name()), Some(detector));
        assert!(!detector.description().is_empty());
    }
}

#[test]
fn each_style_redacts_as_documented() {
    let text = "ana@example.com paid with 4111 1111 1111 1111, CASE-77";
    let with = |style| {
        let patterns = vec![regex::Regex::new(r"CASE-\d+").unwrap()];
        Redactor::new(vec![Detector::Email, Detector::PaymentCard], patterns, style)
            .redact_text(text)
            .into_owned()
    };
    assert_eq!(with(RedactionStyle::Mask), "[email] paid with [payment_card], [redacted]");
    assert_eq!(with(RedactionStyle::Remove), " paid with , ");
    assert_eq!(with(RedactionStyle::KeepLast(4)), "***********.com paid with ***************1111, ****-77");
    assert_eq!(with(RedactionStyle::KeepLast(99)), "********ple.com paid with **********1111 1111, ****-77");
}

#[test]
fn digests_depend_on_the_value_and_the_key() {
    let plain = Redactor::new(vec![Detector::PaymentCard], Vec::new(), RedactionStyle::Hash);
    let [one, other] = ["5a", "6b"].map(|digits| Keys::parse(&digits.repeat(32)).unwrap());
    let with = |keys: &Keys, text: &str| plain.with_keys(keys).redact_text(text).into_owned();
    let spaced = with(&one, "4111 1111 1111 1111");
    assert_eq!(spaced, with(&one, "4111-1111-1111-1111"));
    assert!(spaced.starts_with("[payment_card:hmac-"), "{spaced}");
    assert_eq!(spaced.len(), "[payment_card:hmac-0123456789ab]".len());
    assert_ne!(spaced, with(&other, "4111 1111 1111 1111"));
    assert_eq!(with(&one, &spaced), spaced, "a digest is not redacted again");
    // Without a key there is no digest, because anyone could compute it.
    assert_eq!(plain.redact_text("4111 1111 1111 1111"), "[payment_card]");
}

#[test]
fn overlapping_matches_merge_under_the_longest() {
    let redactor =
        Redactor::new(vec![Detector::Email, Detector::UrlCredentials], Vec::new(), RedactionStyle::Mask);
    assert_eq!(
        redactor.redact_text("https://administrator:hunter2hunter2@db.io/x"),
        "https://[url_credentials]/x"
    );
}

#[test]
fn finds_values_hidden_by_unicode_or_escapes() {
    for (text, redacted) in [
        ("４１１１ １１１１ １１１１ １１１１", "[payment_card]"),
        ("4111\u{2011}1111\u{a0}1111\u{2009}1111", "[payment_card]"),
        ("41\u{200b}11 11\u{ad}11 1111 11\u{feff}11!", "[payment_card]!"),
        ("ana\u{200d}@exam\u{202e}ple.com", "[email]"),
        ("?to=ana%40example.com&x", "?to=[email]&x"),
        (r#"log: {"to":"ana\u0040example.com"} end"#, r#"log: {"to":"[email]"} end"#),
        ("jürgen@müller.example", "[email]"),
    ] {
        let redactor =
            Redactor::new(vec![Detector::Email, Detector::PaymentCard], Vec::new(), RedactionStyle::Mask);
        assert_eq!(redactor.redact_text(text), redacted);
    }
}

#[test]
fn redacts_keys_numbers_and_embedded_json() {
    for (value, redacted) in [
        (json!({"to": ["ana@example.com", 1, null]}), json!({"to": ["[email]", 1, null]})),
        (json!({"ana@example.com": 1, "bo@example.com": 2}), json!({"[email]": 1, "[email]~2": 2})),
        (json!({"card": 4111111111111111u64}), json!({"card": "[payment_card]"})),
        (json!({"ssn": 536221234, "count": 536221234}), json!({"ssn": "[us_ssn]", "count": 536221234})),
        (json!({"customerSsn": "536221234"}), json!({"customerSsn": "[us_ssn]"})),
        (json!({"password": "hunter2"}), json!({"password": "[high_entropy]"})),
        (
            json!({"name": "DB_PASSWORD", "value": "hunter2"}),
            json!({"name": "DB_PASSWORD", "value": "[high_entropy]"}),
        ),
        (json!({"password": {"type": "string"}}), json!({"password": {"type": "string"}})),
        (
            json!({"next_page_token": "Q2FuYWRhMTIzNDU2Nzg5"}),
            json!({"next_page_token": "Q2FuYWRhMTIzNDU2Nzg5"}),
        ),
        (
            json!({"headers": {"Authorization": "Token abcdef123"}}),
            json!({"headers": {"Authorization": "Token [api_key]"}}),
        ),
        (
            json!(r#"{"to":"ana\u0040example.com","n":4111111111111111}"#),
            json!(r#"{"to":"[email]","n":"[payment_card]"}"#),
        ),
        (json!(r#"["[\"ana@example.com\"]"]"#), json!(r#"["[\"[email]\"]"]"#)),
        (json!(r#"{"a":"ana@example.com","a":1}"#), json!(r#"{"a":"[email]","a":1}"#)),
    ] {
        let mut actual = value.clone();
        assert!(every(RedactionStyle::Mask).redact_value(&mut actual).is_ok());
        assert_eq!(actual.to_string(), redacted.to_string(), "{value}");
    }
    let mut exponent: Value = callgate::json::from_str("4.111111111111111e15").unwrap();
    assert_eq!(every(RedactionStyle::Mask).redact_value(&mut exponent), Ok(true));
    assert_eq!(exponent, json!("[payment_card]"));
}

#[test]
fn redacts_structured_and_text_content_alike() {
    let structured = json!({"customer": {"email": "ana@example.com", "card": "4111111111111111"}});
    let mut result = json!({"content": [{"type": "text", "text": structured.to_string()}], "structuredContent": structured});
    assert_eq!(every(RedactionStyle::Remove).redact_value(&mut result), Ok(true));
    assert!(!result.to_string().contains("ana@") && !result.to_string().contains("4111"), "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(callgate::json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
}

#[test]
fn too_deep_value_is_rejected_and_left_unchanged() {
    let nested = |levels| (0..levels).fold(json!("ana@example.com"), |inner, _| json!([inner]));
    let mut deepest = nested(callgate::json::MAX_DEPTH);
    assert_eq!(every(RedactionStyle::Mask).redact_value(&mut deepest), Ok(true));
    let mut too_deep = nested(callgate::json::MAX_DEPTH + 1);
    let error = every(RedactionStyle::Mask).redact_value(&mut too_deep).unwrap_err();
    assert!(error.to_string().contains("nested deeper than 128 levels"), "{error}");
    assert!(too_deep.to_string().contains("ana@example.com"));
}

/// Quadratic algorithms would take minutes on any of these.
#[test]
fn hostile_megabytes_are_redacted_in_linear_time() {
    let patterns = [
        "@",
        "a@b.",
        "1 ",
        "1111 ",
        "+1 ",
        "12.",
        "1:",
        "-----BEGIN PRIVATE KEY-----\n",
        "://a:",
        "eyJ.",
        "password=",
        "ssn 111111111 ",
        "aB1",
        "DE89",
        "\u{200b}1",
        "[email] a@b.co ",
        "1.2.3.4-a",
        "[",
        "{\"a\":",
    ];
    for pattern in patterns {
        let text = pattern.repeat(1_000_000 / pattern.len());
        let redactor = every(RedactionStyle::Remove);
        let mut value = Value::from(text);
        assert!(redactor.redact_value(&mut value).is_ok());
    }
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("ana@example.com".to_owned()),
        Just("4111 1111 1111 1111".to_owned()),
        Just("+49 30 1234567".to_owned()),
        Just("password=hunter2hunter2".to_owned()),
        Just("DE89370400440532013000".to_owned()),
        Just("203.0.113.9".to_owned()),
        Just("ssn 536-22-1234".to_owned()),
        Just("https://u:p4ss@h.io".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        Just("phone".to_owned()),
        "[ -~]{0,12}",
        "\\PC{0,8}",
        "[0-9 .-]{1,24}",
        "[@.:/a-z]{0,6}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn styles() -> impl Strategy<Value = RedactionStyle> {
    prop_oneof![
        Just(RedactionStyle::Mask),
        Just(RedactionStyle::Hash),
        Just(RedactionStyle::Remove),
        (0usize..20).prop_map(RedactionStyle::KeepLast)
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        texts().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((texts(), inner.clone()), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            inner.prop_map(|inner| Value::from(inner.to_string())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn redaction_is_idempotent(text in texts(), style in styles()) {
        let redactor = every(style);
        let once = redactor.redact_text(&text).into_owned();
        prop_assert!(matches!(redactor.redact_text(&once), Cow::Borrowed(_)), "{text:?} became {once:?}");
    }

    #[test]
    fn overlapping_matches_leave_no_remainder(pieces in prop::collection::vec(prop::sample::select(vec![
        "4111 1111 1111 1111", "+49 30 1234567", "ana@example.com", " 1111", "5", "-",
    ]), 1..24)) {
        let redactor = every(RedactionStyle::Mask);
        let once = redactor.redact_text(&pieces.concat()).into_owned();
        prop_assert!(matches!(redactor.redact_text(&once), Cow::Borrowed(_)), "{pieces:?} became {once:?}");
    }

    #[test]
    fn text_without_matches_is_borrowed(text in texts()) {
        for detector in Detector::ALL {
            if detector.find(&text).is_empty() {
                let redactor = Redactor::new(vec![detector], Vec::new(), RedactionStyle::Remove);
                prop_assert!(matches!(redactor.redact_text(&text), Cow::Borrowed(_)));
            }
        }
    }

    #[test]
    fn redact_value_reports_whether_it_changed_anything(value in values(), style in styles()) {
        let mut redacted = value.clone();
        let changed = every(style).redact_value(&mut redacted).unwrap();
        prop_assert_eq!(changed, redacted != value);
    }
}
