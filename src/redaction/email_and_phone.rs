//! Contact data detectors: email addresses and telephone numbers.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::checksum::digits;
use super::detector_input::{DetectorInput, compile_pattern, compile_words, is_word};

static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"([\p{L}\p{N}._%+'-]+)@((?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+(?:xn--[A-Za-z0-9-]+|\p{L}{2,24}))",
    )
});

/// Endings of file names and system units that are not domains: `icon@2x.png`, `getty@tty1.service`.
static NOT_A_DOMAIN: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)\.(?:png|jpe?g|gif|svg|webp|avif|ico|css|html?|js|mjs|cjs|tsx?|json|ya?ml|toml|lock|tgz|gz|whl|jar|service|socket|timer|target)$",
    )
});

/// Finds email addresses.
pub(super) fn email(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for captures in EMAIL.captures_iter(subject.text) {
        let (Some(whole), Some(local), Some(domain)) = (captures.get(0), captures.get(1), captures.get(2))
        else {
            continue;
        };
        let person = local.as_str().trim_start_matches(['.', '\'', '-', '%', '+']);
        // `git@github.com:team/project.git` is a repository address.
        let remote = person == "git" && subject.chars_after(whole.end()).0 == Some(':');
        if !person.is_empty() && !remote && !NOT_A_DOMAIN.is_match(domain.as_str()) {
            found.push(local.end() - person.len()..whole.end());
        }
    }
    found
}

/// A plus sign or the international prefix 00, and the possible rest of the number.
static INTERNATIONAL: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?:\+|(?-u:\b)00)[ (]?[1-9][0-9 .\-/()]{5,30}"));

/// Unambiguous national formats: North American, French, British and similar.
static NATIONAL: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(concat!(
        r"(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[.-])[2-9][0-9]{2}[ .-][0-9]{4}",
        r"|0[1-9](?:(?: [0-9]{2}){4}|(?:\.[0-9]{2}){4}|(?:-[0-9]{2}){4})",
        r"|\(0[0-9]{1,4}\) ?[0-9]{3,4}[ -]?[0-9]{3,4}",
        r"|0[0-9]{2,4} [0-9]{3,4} [0-9]{3,4}|0[0-9]{2,3}-[0-9]{3,4}-[0-9]{4}",
    ))
});

/// Digits that are a telephone number only after a context word.
static LABELED_NUMBER: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"\(?[0-9](?:[ .\-/()]{0,2}[0-9]){6,14}"));

static PHONE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_words(concat!(
        r"(?:tele)?phone(?:[ _]?(?:number|no|nr))?|tel|mobile|cell(?:ular|phone)?|fax|whatsapp|sms|hotline|landline|msisdn",
        r"|call (?:me|us|him|her|them)(?: (?:at|on|back))?|reach (?:me|us) (?:at|on)|text me|dial(?:ed)?",
        r"|handy|telefon(?:nummer)?|t[ée]l[ée]phone|t[ée]l[ée]fono|m[óo]vil|celular|cellulare",
    ))
});

/// Finds telephone numbers: international ones, well-known national formats, and other digits only directly after a word such as
/// `phone` or `tel`.
pub(super) fn phone(subject: &DetectorInput<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let context = subject.find_context_words(&PHONE_WORDS);
    for candidate in INTERNATIONAL.find_iter(subject.text) {
        let plus = candidate.as_str().starts_with('+');
        let free = !subject
            .chars_before(candidate.start())
            .0
            .is_some_and(|c| is_word(c) || matches!(c, '+' | '.' | '-'));
        if let Some(length) = international_length(candidate.as_str()).filter(|_| free) {
            let range = candidate.start()..candidate.start() + length;
            let grouped = candidate.as_str().get(..length).is_some_and(|text| text.contains([' ', '-', '(']));
            if has_isolated_end(subject, range.end) && (plus || grouped || context.is_near(&range, 16, 0)) {
                found.push(range);
            }
        }
    }
    let national = NATIONAL.find_iter(subject.text).map(|candidate| candidate.range());
    let labeled = LABELED_NUMBER.find_iter(subject.text).map(|candidate| candidate.range());
    found.extend(national.filter(|range| {
        (10..=11).contains(&digit_count(subject, range))
            && has_isolated_start(subject, range)
            && has_isolated_end(subject, range.end)
    }));
    found.extend(labeled.filter(|range| {
        context.is_near(range, 12, 0)
            && has_isolated_start(subject, range)
            && has_isolated_end(subject, range.end)
            && !is_date(subject.text.get(range.clone()).unwrap_or_default())
    }));
    found
}

fn digit_count(subject: &DetectorInput<'_>, range: &Range<usize>) -> usize {
    digits(subject.text.get(range.clone()).unwrap_or_default()).count()
}

fn has_isolated_start(subject: &DetectorInput<'_>, range: &Range<usize>) -> bool {
    match subject.chars_before(range.start) {
        (Some('-' | '.' | '/' | '+'), Some(beyond)) => !beyond.is_alphanumeric(),
        (Some(near), _) => !is_word(near) && !matches!(near, '$' | '€' | '£' | '#' | '+'),
        (None, _) => true,
    }
}

fn has_isolated_end(subject: &DetectorInput<'_>, end: usize) -> bool {
    match subject.chars_after(end) {
        (Some('-' | '.' | '/' | ':'), Some(beyond)) => !beyond.is_ascii_digit(),
        // An extension may follow: `x123`.
        (Some('x'), Some(beyond)) => beyond.is_ascii_digit(),
        (Some(near), _) => !is_word(near),
        (None, _) => true,
    }
}

fn is_date(text: &str) -> bool {
    static DATE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^(?:19|20)[0-9]{2}[-./][01]?[0-9][-./][0-3]?[0-9]|^[0-3]?[0-9][-./][0-3]?[0-9][-./](?:19|20)[0-9]{2}",
        )
    });
    DATE.is_match(text)
}

/// Returns the length in bytes of the international number at the start of a candidate: whole groups of digits, up to the maximum
/// length of a number, at least eight digits.
fn international_length(candidate: &str) -> Option<usize> {
    let number = candidate.strip_prefix("00").unwrap_or(candidate);
    let north_american = digits(number).next() == Some(1);
    // `+44 (0)20 …`: the trunk zero is written but not dialed.
    let limit = if north_american {
        11
    } else if number.contains("(0)") {
        16
    } else {
        15
    };
    // An arithmetic expression such as `+268.77 - 235.13`.
    let is_sum = number.contains('.') && [" - ", " / "].iter().any(|sign| number.contains(sign));
    let (mut count, mut length, mut gap) = (0, None, 0);
    let mut bytes = number.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        if !byte.is_ascii_digit() {
            gap += 1;
            if gap > 3 {
                break;
            }
            continue;
        }
        (count, gap) = (count + 1, 0);
        let group_ends = bytes.peek().is_none_or(|(_, next)| !next.is_ascii_digit());
        if count > limit {
            break;
        }
        let enough = if north_american { count == 11 } else { count >= 8 };
        if group_ends && enough {
            length = Some(at + 1 + candidate.len() - number.len());
        }
    }
    let area = digits(number).nth(1);
    length.filter(|_| !is_sum).filter(|_| !north_american || area.is_some_and(|area| area >= 2))
}
