//! Payment detectors: card numbers and IBANs.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::checksum::luhn;
use super::detector_input::{DetectorInput, compile_pattern, compile_words, is_word};
use crate::tokens::{iban_length, is_valid_iban};

static CARD_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_words(r"cards?|credit|debit|visa|maestro|cc|ccn|pan|payment|card[ _]?(?:number|no)")
});

/// Finds card numbers: a known issuer's prefix and length, the Luhn check, unformatted or in even groups. Numbers of twelve and
/// thirteen digits are often something else (an EAN), so they need a word such as `card` nearby.
pub(super) fn payment_card(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let groups = digit_groups(subject.text);
    let context = LazyLock::new(|| subject.find_context_words(&CARD_WORDS));
    let mut found: Vec<Range<usize>> = Vec::new();
    for (index, first) in groups.iter().enumerate() {
        if found.last().is_some_and(|last| first.start < last.end)
            || !has_isolated_start(subject, first.start)
        {
            continue;
        }
        let mut number = String::new();
        let mut lengths = Vec::new();
        let mut longest = None;
        let mut previous_end = first.start;
        for group in groups.iter().skip(index) {
            let digits = subject.text.get(group.clone()).unwrap_or_default();
            let separator = subject.text.get(previous_end..group.start).unwrap_or_default();
            let joined = matches!(separator, "" | " " | "-" | "." | "  " | " - ");
            if !joined || number.len() + digits.len() > 19 {
                break;
            }
            number.push_str(digits);
            lengths.push(digits.len());
            previous_end = group.end;
            let range = first.start..group.end;
            if number.len() >= 12
                && is_evenly_grouped(&lengths)
                && has_known_issuer(&number)
                && luhn(&number)
                && has_isolated_end(subject, group.end)
                && (number.len() > 13 || context.is_near(&range, 40, 20))
            {
                longest = Some(range);
            }
        }
        found.extend(longest);
    }
    found
}

/// The maximal runs of ASCII digits.
fn digit_groups(text: &str) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match groups.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

fn has_isolated_start(subject: &DetectorInput<'_>, at: usize) -> bool {
    match subject.chars_before(at) {
        (Some('-' | '.' | '/' | ':'), Some(beyond)) => !beyond.is_ascii_digit(),
        (Some(near), _) => !is_word(near),
        (None, _) => true,
    }
}

fn has_isolated_end(subject: &DetectorInput<'_>, at: usize) -> bool {
    match subject.chars_after(at) {
        // Some programs write whole numbers with `.0`.
        (Some('.'), Some('0')) => !subject
            .text
            .get(at + 1..)
            .unwrap_or_default()
            .trim_start_matches('0')
            .starts_with(|c: char| c.is_ascii_digit()),
        (Some('-' | '.'), Some(beyond)) => !beyond.is_ascii_digit(),
        (Some(near), _) => !is_word(near),
        (None, _) => true,
    }
}

fn is_evenly_grouped(lengths: &[usize]) -> bool {
    match lengths {
        [_] | [4, 6, 4 | 5] => true,
        [first, .., last] => last <= first && lengths.iter().rev().skip(1).all(|length| length == first),
        [] => false,
    }
}

fn has_known_issuer(number: &str) -> bool {
    let prefix = |digits: usize| number.get(..digits).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let length = number.len();
    match (prefix(1), prefix(2), prefix(3), prefix(4)) {
        (4, ..) => matches!(length, 13 | 16 | 19),
        (_, 51..=55, ..) | (.., 2221..=2720) => length == 16,
        (_, 34 | 37, ..) => length == 15,
        (.., 300..=305, _) | (_, 36 | 38 | 39, ..) | (.., 3095) => matches!(length, 14 | 16..=19),
        (.., 3528..=3589) | (.., 6011) | (.., 644..=649, _) | (_, 65, ..) => (16..=19).contains(&length),
        (_, 62 | 81, ..) | (.., 2200..=2204) => (16..=19).contains(&length),
        (_, 60 | 82, ..) | (.., 508, _) | (.., 9792) => length == 16,
        (.., 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763) => (12..=19).contains(&length),
        _ => false,
    }
}

static IBAN_START: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"(?i-u:\b[A-Z]{2}[0-9]{2})"));

/// Finds IBANs: the country's length and the mod 97 checksum, unformatted or in groups.
pub(super) fn iban(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    IBAN_START
        .find_iter(subject.text)
        .filter_map(|start| {
            let length = iban_length(&start.as_str().get(..2)?.to_ascii_uppercase())?;
            let mut compact = String::new();
            let mut end = start.start();
            let mut separators = 0;
            for c in subject.text.get(start.start()..)?.chars() {
                match c {
                    ' ' | '-' if separators == 0 => separators = 1,
                    c if c.is_ascii_alphanumeric() => {
                        compact.push(c.to_ascii_uppercase());
                        end += separators;
                        separators = 0;
                        end += 1;
                    }
                    _ => break,
                }
                if compact.len() == length {
                    break;
                }
            }
            let range = start.start()..end;
            let alone = !subject.chars_after(end).0.is_some_and(is_word)
                && !subject.chars_before(start.start()).0.is_some_and(is_word);
            (alone && is_valid_iban(&compact)).then_some(range)
        })
        .collect()
}
