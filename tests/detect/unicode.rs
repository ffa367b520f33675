//! Unicode evasion: invisible characters, other forms of digits and imitated labels hide nothing from any detector or pattern, in
//! strings, values and streams. The tests use every such character of the Unicode data.

use std::sync::Arc;

use callgate::json::json;
use callgate::redaction::{Detector, RedactionStyle, Redactor, StreamRedactor};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};
use proptest::prelude::*;
use regex::Regex;

use super::{corpus, every};

/// Invisible characters: default-ignorable, control, format, and line and paragraph separators, except tab, `\n` and `\r`.
fn invisible() -> Vec<char> {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let category = CodePointMapData::<GeneralCategory>::new();
    let is_invisible = |c: &char| {
        ignorable.contains(*c)
            || matches!(
                category.get(*c),
                GeneralCategory::Control
                    | GeneralCategory::Format
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator
            )
    };
    ('\0'..=char::MAX).filter(is_invisible).filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect()
}

/// Returns a string with one match of a detector, and the position of the middle of the match.
fn sample(detector: Detector) -> (String, usize) {
    let (text, finds) =
        corpus(detector).into_iter().find(|(_, finds)| finds.len() == 1).expect("a line with one match");
    let middle = text.floor_char_boundary(finds[0].start.midpoint(finds[0].end));
    (text, middle)
}

fn redact_stream(redactor: &Redactor, pieces: impl IntoIterator<Item = String>) -> String {
    let mut sieve = StreamRedactor::from_redactor(Arc::new(redactor.clone()));
    let mut shown = String::new();
    for piece in pieces {
        sieve.push(&piece, &mut shown).unwrap();
    }
    shown.push_str(&sieve.finish());
    shown
}

#[test]
fn invisible_characters_do_not_hide_values_from_detectors() {
    let invisible = invisible();
    assert!(invisible.len() > 4000, "{}", invisible.len());
    for detector in Detector::ALL {
        let redactor = Redactor::new(vec![detector], Vec::new(), RedactionStyle::Mask);
        let (text, middle) = sample(detector);
        let clean = redactor.redact_text(&text).into_owned();
        for c in &invisible {
            let mut hidden = text.clone();
            hidden.insert(middle, *c);
            assert_eq!(redactor.redact_text(&hidden), clean, "{} with {c:?}", detector.name());
        }
    }
}

#[test]
fn invisible_characters_do_not_hide_values_from_patterns_and_keys() {
    let pattern = Redactor::new(Vec::new(), vec![Regex::new(r"CASE-\d{4}").unwrap()], RedactionStyle::Mask);
    let secrets = Redactor::new(vec![Detector::HighEntropy], Vec::new(), RedactionStyle::Mask);
    for c in invisible() {
        assert_eq!(pattern.redact_text(&format!("see CA{c}SE-12{c}34.")), "see [redacted].", "{c:?}");
        let mut value =
            json!({ (format!("pass{c}word")): "correct horse", "nested": [format!("CASE-{c}1234")] });
        assert_eq!(secrets.redact_value(&mut value), Ok(true), "{c:?}");
        assert_eq!(pattern.redact_value(&mut value), Ok(true), "{c:?}");
        assert!(
            !value.to_string().contains("horse") && !value.to_string().contains("1234"),
            "{c:?}: {value}"
        );
    }
}

#[test]
fn invisible_characters_do_not_hide_streamed_values() {
    let detectors = vec![Detector::Email, Detector::PaymentCard];
    let redactor = Redactor::new(detectors, vec![Regex::new("CASE-[0-9]{4}").unwrap()], RedactionStyle::Mask);
    for c in invisible() {
        let text = format!("to an{c}a@example.com or 4111 1111{c} 1111 1111, CASE{c}-1234 it is.");
        let expected = "to [email] or [payment_card], [redacted] it is.";
        for cut in [5, 33].map(|cut| text.floor_char_boundary(cut)) {
            let (head, tail) = text.split_at(cut);
            let pieces = [head.to_owned(), tail.to_owned()];
            assert_eq!(redact_stream(&redactor, pieces), expected, "{c:?} cut at {cut}");
        }
        let characters = text.chars().map(String::from);
        assert_eq!(redact_stream(&redactor, characters), expected, "{c:?} character by character");
    }
}

#[test]
fn invisible_characters_between_words_hide_no_word() {
    let redactor = Redactor::new(vec![Detector::PaymentCard], Vec::new(), RedactionStyle::Mask);
    for c in invisible() {
        let text = format!("total 12{c}4111111111111111{c}7 paid");
        let redacted = redactor.redact_text(&text);
        assert!(!redacted.contains("4111"), "{c:?}: {redacted}");
    }
}

#[test]
fn decimal_digits_of_every_script_are_digits() {
    let category = CodePointMapData::<GeneralCategory>::new();
    let digits: Vec<char> =
        ('\0'..=char::MAX).filter(|c| category.get(*c) == GeneralCategory::DecimalNumber).collect();
    let redactor =
        Redactor::new(vec![Detector::PaymentCard, Detector::UsSsn], Vec::new(), RedactionStyle::Mask);
    for ten in digits.chunks(10) {
        let written = |number: &str| -> String {
            number.chars().map(|c| c.to_digit(10).map_or(c, |digit| ten[digit as usize])).collect()
        };
        let text = written("card 4111 1111 1111 1111, ssn 536-22-1234");
        assert_eq!(redactor.redact_text(&text), "card [payment_card], ssn [us_ssn]", "{text}");
    }
}

#[test]
fn compatibility_forms_marks_and_escapes_hide_nothing() {
    let redactor =
        Redactor::new(vec![Detector::PaymentCard, Detector::Email], Vec::new(), RedactionStyle::Mask);
    let number = "4111 1111 1111 1111";
    let each = |to: &dyn Fn(char) -> String| number.chars().map(to).collect::<String>();
    let circled = |c: char| match c {
        '4' => "④".to_owned(),
        '1' => "①".to_owned(),
        c => c.to_string(),
    };
    for (text, redacted) in [
        (each(&circled), "[payment_card]"),
        (each(&|c| format!("{c}\u{332}")), "[payment_card]\u{332}"),
        (each(&|c| format!("{c}\u{fe0f}\u{20e3}")), "[payment_card]\u{fe0f}\u{20e3}"),
        (each(&|c| format!("\u{1b}[1;31m{c}\u{1b}[0m")), "\u{1b}[1;31m[payment_card]\u{1b}[0m"),
        (each(&|c| format!("{c}%E2%80%8B")), "[payment_card]%E2%80%8B"),
        (each(&|c| format!("{c}\\udb40\\uddf0")), "[payment_card]\\udb40\\uddf0"),
        (each(&|c| format!("{c}\\u{{200b}}")), "[payment_card]\\u{200b}"),
        (each(&|c| format!("{c}&#x000200b;&zwj;")), "[payment_card]&#x000200b;&zwj;"),
        ("**4111 1111 1111 1111**".to_owned(), "**[payment_card]**"),
        ("ju\u{308}rgen@mu\u{308}ller.example".to_owned(), "[email]"),
        ("ⓐⓝⓐ@ⓔⓧample.𝐜𝐨𝐦".to_owned(), "[email]"),
    ] {
        assert_eq!(redactor.redact_text(&text), redacted, "{text:?}");
    }
}

#[test]
fn text_that_imitates_a_label_hides_nothing() {
    for (text, redacted) in [
        ("[email] 4111 1111 1111 1111 [payment_card]", "[email] [payment_card] [payment_card]"),
        ("[4111 1111 1111 1111]", "[[payment_card]]"),
        ("[ana@example.com]", "[[email]]"),
        ("[phone:+1 212 555 0123]", "[phone:[phone]]"),
        ("password=\"[email]hunter2\"", "password=\"[high_entropy]\""),
        ("https://u:[email]hunter2@db.io/x", "https://[url_credentials]/x"),
        ("password: *hunter2x", "password: [high_entropy]"),
    ] {
        assert_eq!(every(RedactionStyle::Mask).redact_text(text), redacted, "{text}");
    }
    for (value, redacted) in [
        (json!({ "password": "[email] hunter2" }), json!({ "password": "[high_entropy]" })),
        (json!({ "password": "[redacted" }), json!({ "password": "[high_entropy]" })),
        (json!({ "authorization": "[api_key]abcdef123" }), json!({ "authorization": "[api_key]" })),
        (json!({ "password": "[email]" }), json!({ "password": "[email]" })),
    ] {
        let mut actual = value.clone();
        assert!(every(RedactionStyle::Mask).redact_value(&mut actual).is_ok());
        assert_eq!(actual, redacted, "{value}");
    }
    let words =
        Redactor::new(Vec::new(), vec![Regex::new("(?i)email|[0-9a-f]{12}").unwrap()], RedactionStyle::Mask);
    assert_eq!(words.redact_text("[email]"), "[[redacted]]");
    assert_eq!(words.redact_text("[phone:hmac-0123456789ab]"), "[phone:hmac-[redacted]]");
}

fn invisible_text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(invisible()), 0..3).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn invisible_characters_inside_a_match_change_nothing(
        between in prop::collection::vec(invisible_text(), 64),
        cuts in prop::collection::vec(any::<bool>(), 200),
    ) {
        // A character that counts as a space in the last line of a private key extends the match to the end of the text.
        for detector in Detector::ALL.into_iter().filter(|detector| *detector != Detector::PrivateKey) {
            let redactor = Redactor::new(vec![detector], Vec::new(), RedactionStyle::Mask);
            let (text, finds) = corpus(detector).into_iter().find(|(_, finds)| finds.len() == 1).unwrap();
            let inside = |at: usize| at > finds[0].start && at < finds[0].end;
            let hidden: String = text
                .char_indices()
                .zip(between.iter().cycle())
                .map(|((at, c), invisible)| if inside(at) { format!("{invisible}{c}") } else { c.to_string() })
                .collect();
            let clean = redactor.redact_text(&text).into_owned();
            prop_assert_eq!(&redactor.redact_text(&hidden), &clean, "{}: {:?}", detector.name(), hidden);
            let mut pieces = vec![String::new()];
            for (c, cut) in hidden.chars().zip(cuts.iter().cycle()) {
                pieces.last_mut().unwrap().push(c);
                if *cut {
                    pieces.push(String::new());
                }
            }
            prop_assert_eq!(&redact_stream(&redactor, pieces), &clean, "{} in pieces: {:?}", detector.name(), hidden);
        }
    }
}
