//! Characters that cannot be seen, other forms of digits and labels that only look like ours hide nothing from any detector or pattern, in
//! texts, values and streams. The characters come from the data of Unicode, all of them.

use std::sync::Arc;

use callgate::detect::{Detector, Redactor, Sieve, Style};
use callgate::json::json;
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};
use proptest::prelude::*;
use regex::Regex;

use super::{corpus, every};

/// Default-ignorable characters, controls, formats, and separators of lines and paragraphs; but no tab and no ordinary line break.
fn unseen() -> Vec<char> {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let category = CodePointMapData::<GeneralCategory>::new();
    let unseen = |c: &char| {
        ignorable.contains(*c)
            || matches!(
                category.get(*c),
                GeneralCategory::Control
                    | GeneralCategory::Format
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator
            )
    };
    ('\0'..=char::MAX).filter(unseen).filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect()
}

/// A text with one find of a detector, and the place in the middle of it.
fn sample(detector: Detector) -> (String, usize) {
    let (text, finds) =
        corpus(detector).into_iter().find(|(_, finds)| finds.len() == 1).expect("a line with one find");
    let middle = text.floor_char_boundary(finds[0].start.midpoint(finds[0].end));
    (text, middle)
}

fn sieved(redactor: &Redactor, pieces: impl IntoIterator<Item = String>) -> String {
    let mut sieve = Sieve::redacting(Arc::new(redactor.clone()));
    let mut shown = String::new();
    for piece in pieces {
        sieve.push(&piece, &mut shown).unwrap();
    }
    shown.push_str(&sieve.finish());
    shown
}

#[test]
fn no_unseen_character_hides_what_a_detector_finds() {
    let unseen = unseen();
    assert!(unseen.len() > 4000, "{}", unseen.len());
    for detector in Detector::ALL {
        let redactor = Redactor::new(vec![detector], Vec::new(), Style::Mask);
        let (text, middle) = sample(detector);
        let clean = redactor.redact_text(&text).into_owned();
        for c in &unseen {
            let mut hidden = text.clone();
            hidden.insert(middle, *c);
            assert_eq!(redactor.redact_text(&hidden), clean, "{} with {c:?}", detector.name());
        }
    }
}

#[test]
fn no_unseen_character_hides_what_a_pattern_finds_or_what_a_key_says() {
    let pattern = Redactor::new(Vec::new(), vec![Regex::new(r"CASE-\d{4}").unwrap()], Style::Mask);
    let secrets = Redactor::new(vec![Detector::HighEntropy], Vec::new(), Style::Mask);
    for c in unseen() {
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
fn no_unseen_character_hides_what_is_streamed_wherever_it_is_cut() {
    let detectors = vec![Detector::Email, Detector::PaymentCard];
    let redactor = Redactor::new(detectors, vec![Regex::new("CASE-[0-9]{4}").unwrap()], Style::Mask);
    for c in unseen() {
        let text = format!("to an{c}a@example.com or 4111 1111{c} 1111 1111, CASE{c}-1234 it is.");
        let expected = "to [email] or [payment_card], [redacted] it is.";
        for cut in [5, 33].map(|cut| text.floor_char_boundary(cut)) {
            let (head, tail) = text.split_at(cut);
            let pieces = [head.to_owned(), tail.to_owned()];
            assert_eq!(sieved(&redactor, pieces), expected, "{c:?} cut at {cut}");
        }
        let characters = text.chars().map(String::from);
        assert_eq!(sieved(&redactor, characters), expected, "{c:?} character by character");
    }
}

#[test]
fn an_unseen_character_between_words_hides_no_word() {
    let redactor = Redactor::new(vec![Detector::PaymentCard], Vec::new(), Style::Mask);
    for c in unseen() {
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
    let redactor = Redactor::new(vec![Detector::PaymentCard, Detector::UsSsn], Vec::new(), Style::Mask);
    for ten in digits.chunks(10) {
        let written = |number: &str| -> String {
            number.chars().map(|c| c.to_digit(10).map_or(c, |digit| ten[digit as usize])).collect()
        };
        let text = written("card 4111 1111 1111 1111, ssn 536-22-1234");
        assert_eq!(redactor.redact_text(&text), "card [payment_card], ssn [us_ssn]", "{text}");
    }
}

#[test]
fn forms_marks_and_escapes_hide_nothing() {
    let redactor = Redactor::new(vec![Detector::PaymentCard, Detector::Email], Vec::new(), Style::Mask);
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
fn text_that_looks_like_a_label_hides_nothing() {
    for (text, redacted) in [
        ("[email] 4111 1111 1111 1111 [payment_card]", "[email] [payment_card] [payment_card]"),
        ("[4111 1111 1111 1111]", "[[payment_card]]"),
        ("[ana@example.com]", "[[email]]"),
        ("[phone:+1 212 555 0123]", "[phone:[phone]]"),
        ("password=\"[email]hunter2\"", "password=\"[high_entropy]\""),
        ("https://u:[email]hunter2@db.io/x", "https://[url_credentials]/x"),
        ("password: *hunter2x", "password: [high_entropy]"),
    ] {
        assert_eq!(every(Style::Mask).redact_text(text), redacted, "{text}");
    }
    for (value, redacted) in [
        (json!({ "password": "[email] hunter2" }), json!({ "password": "[high_entropy]" })),
        (json!({ "password": "[redacted" }), json!({ "password": "[high_entropy]" })),
        (json!({ "authorization": "[api_key]abcdef123" }), json!({ "authorization": "[api_key]" })),
        (json!({ "password": "[email]" }), json!({ "password": "[email]" })),
    ] {
        let mut actual = value.clone();
        assert!(every(Style::Mask).redact_value(&mut actual).is_ok());
        assert_eq!(actual, redacted, "{value}");
    }
    let words = Redactor::new(Vec::new(), vec![Regex::new("(?i)email|[0-9a-f]{12}").unwrap()], Style::Mask);
    assert_eq!(words.redact_text("[email]"), "[[redacted]]");
    assert_eq!(words.redact_text("[phone:hmac-0123456789ab]"), "[phone:hmac-[redacted]]");
}

fn unseen_text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(unseen()), 0..3).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn unseen_characters_anywhere_in_a_find_change_nothing(
        between in prop::collection::vec(unseen_text(), 64),
        cuts in prop::collection::vec(any::<bool>(), 200),
    ) {
        // A key goes on to the end of the text if its last line is cut by what may be a space.
        for detector in Detector::ALL.into_iter().filter(|detector| *detector != Detector::PrivateKey) {
            let redactor = Redactor::new(vec![detector], Vec::new(), Style::Mask);
            let (text, finds) = corpus(detector).into_iter().find(|(_, finds)| finds.len() == 1).unwrap();
            let inside = |at: usize| at > finds[0].start && at < finds[0].end;
            let hidden: String = text
                .char_indices()
                .zip(between.iter().cycle())
                .map(|((at, c), unseen)| if inside(at) { format!("{unseen}{c}") } else { c.to_string() })
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
            prop_assert_eq!(&sieved(&redactor, pieces), &clean, "{} in pieces: {:?}", detector.name(), hidden);
        }
    }
}
