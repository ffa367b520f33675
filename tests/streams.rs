//! What a model streams, filtered: however a text is cut, what is passed on is what filtering of the whole would have left.

use std::sync::Arc;

use callgate::detect::{Detector, Redactor, Sieve, Style};
use proptest::prelude::*;
use regex::Regex;

/// What one text becomes, and what was passed on after each piece.
fn sieved(redactor: &Redactor, pieces: &[&str]) -> (String, Vec<usize>) {
    let mut sieve = Sieve::redacting(Arc::new(redactor.clone()));
    let mut shown = String::new();
    let mut lengths = Vec::new();
    for piece in pieces {
        shown.push_str(&sieve.push(piece).unwrap());
        lengths.push(shown.len());
    }
    shown.push_str(&sieve.finish());
    (shown, lengths)
}

/// A text cut after each of these characters.
fn cut<'t>(text: &'t str, places: &[prop::sample::Index]) -> Vec<&'t str> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut cuts: Vec<usize> =
        if starts.is_empty() { Vec::new() } else { places.iter().map(|place| starts[place.index(starts.len())]).collect() };
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

const WORDS: &[&str] = &[
    "the", "a", "customer", "wrote", "that", "his", "ssn", "SSN", "social security number", "phone", "call me at", "card", "visa",
    "patient", "nhs", "order", "number:", "is", "password", "password:", "secret =", "token", "bearer", "Authorization: Bearer", "don't",
    "(see", "below).", "well-known", "naïve", "日本語", "\u{200b}", "%20", "&nbsp;", "\\n", "aws secret access key", "-u", "key",
];

const SECRETS: &[&str] = &[
    "078-05-1120", "078 05 1120", "078051120", "ana@example.com", "ana%40example.com", "ana\\u0040example.com", "a.very.long.name.of@sub.domain.example.org",
    "4111 1111 1111 1111", "4111-1111-1111-1111", "4111\u{200b}111111111111", "４１１１ １１１１ １１１１ １１１１", "5555555555554444", "DE89 3704 0044 0532 0130 00",
    "GB82WEST12345698765432", "+1 415 555 2671", "(415) 555-2671", "020 7946 0958", "192.168.10.20", "2001:db8::8a2e:370:7334", "00:1a:2b:3c:4d:5e",
    "postgres://user:hunter2secret@db/x", "9434765919", "943 476 5919", "RSSMRA 85T10 A562S", "RSSMRA85T10A562S", "12345678Z", "X 1234567L",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "hunter2!x", "correcthorse7", "Zk8Qw2Lm9Xc4Vb7Nq1Rt5Yp3",
    "CASE-1234", "CASE-1", "CASE-77777777", "1234", "12", "99.50", "2026-11-21", "10:30", "v1.2.3.4",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
];

fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        5 => prop::sample::select(WORDS).prop_map(str::to_owned),
        3 => prop::sample::select(SECRETS).prop_map(str::to_owned),
        1 => "[0-9]{1,9}",
        1 => "[a-zA-Z]{1,18}",
        1 => "[ -~]{1,6}",
    ];
    let space = prop_oneof![8 => Just(" "), 1 => Just("\n"), 1 => Just(""), 1 => Just(", "), 1 => Just(". "), 1 => Just("  ")];
    prop::collection::vec((word, space), 0..60)
        .prop_map(|words| words.into_iter().map(|(word, space)| word + space).collect())
}

fn redactors() -> impl Strategy<Value = Redactor> {
    let some = |style| {
        (
            prop::sample::subsequence(Detector::ALL.to_vec(), 0..Detector::ALL.len()),
            prop::sample::subsequence(vec![r"CASE-[0-9]{1,4}", r"CASE-\d+", "wrote .*his", r"(?i)\bsecret\b"], 0..3),
        )
            .prop_map(move |(detectors, patterns)| {
                let patterns = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
                Redactor::new(detectors, patterns, style)
            })
    };
    prop_oneof![some(Style::Mask), some(Style::Hash), some(Style::Remove), some(Style::KeepLast(4))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_text_in_pieces_becomes_what_the_whole_becomes(
        redactor in redactors(),
        text in texts(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let whole = redactor.redact_text(&text).into_owned();
        prop_assert_eq!(sieved(&redactor, &cut(&text, &places)).0, whole);
    }
}
