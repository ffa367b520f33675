//! International bank account numbers (IBAN) in a text.

use super::Token;
use super::boundary::{chars_at, chars_before, is_hidden};
use crate::unicode::{ascii_form, is_word_char};

/// Returns the valid IBANs of a composed text, without separators and in upper case.
pub(super) fn find(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut next = 0;
    let starts = text.as_bytes().windows(4).enumerate().filter(|(_, window)| is_start(window));
    for (start, _) in starts {
        if start < next || !is_isolated(chars_before(text, start)) {
            continue;
        }
        if let Some(token) = read(text, start) {
            next = token.range.end;
            tokens.push(token);
        }
    }
    tokens
}

fn is_start(window: &[u8]) -> bool {
    matches!(window, [a, b, c, d] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && c.is_ascii_digit() && d.is_ascii_digit())
}

/// Reads the IBAN at an offset.
fn read(text: &str, start: usize) -> Option<Token> {
    let length = iban_length(&text.get(start..start + 2)?.to_ascii_uppercase())?;
    let mut compact = String::with_capacity(length);
    let mut end = start;
    let mut separator = None;
    let mut was_separator = true;
    for c in text.get(start..)?.chars() {
        if c.is_ascii_alphanumeric() {
            compact.push(c.to_ascii_uppercase());
            was_separator = false;
        } else {
            // No-break spaces are spaces; a second style of grouping is not part of the number.
            let style = if ascii_form(c) == Some(' ') { ' ' } else { c };
            if was_separator || !matches!(style, ' ' | '-') || *separator.get_or_insert(style) != style {
                return None;
            }
            was_separator = true;
        }
        end += c.len_utf8();
        if compact.len() == length {
            break;
        }
    }
    (is_valid_iban(&compact) && is_isolated(chars_at(text, end))).then(|| Token::new(start..end, compact))
}

/// Whether the two characters beside an IBAN, the nearer one first, leave it alone.
fn is_isolated(beside: (Option<char>, Option<char>)) -> bool {
    match beside {
        (Some('-' | '.' | '/' | '\'' | '@'), beyond) => {
            !beyond.is_some_and(|beyond| is_word_char(beyond) || is_hidden(beyond))
        }
        (Some(near), _) => !is_word_char(near) && !is_hidden(near) && near != '\\',
        (None, _) => true,
    }
}

/// Whether a string without separators, in upper case, is an IBAN: the country's length and the check digits.
pub(crate) fn is_valid_iban(compact: &str) -> bool {
    compact.get(..2).and_then(iban_length) == Some(compact.len()) && has_valid_check_digits(compact)
}

/// Whether the check digits of an IBAN are valid: ISO 7064 mod 97-10 with the first four characters at the end.
fn has_valid_check_digits(iban: &str) -> bool {
    let rotated = iban.chars().skip(4).chain(iban.chars().take(4));
    let remainder = rotated.fold(0, |remainder, c| match c.to_digit(36) {
        Some(value @ 0..=9) => (remainder * 10 + value) % 97,
        Some(value) => (remainder * 100 + value) % 97,
        None => remainder,
    });
    remainder == 1
}

/// The length of an IBAN of a country, in characters.
pub(crate) fn iban_length(country: &str) -> Option<usize> {
    Some(match country {
        "NO" => 15,
        "BE" => 16,
        "DK" | "FI" | "FK" | "FO" | "GL" | "NL" | "SD" => 18,
        "MK" | "SI" => 19,
        "AT" | "BA" | "EE" | "KZ" | "LT" | "LU" | "MN" | "XK" => 20,
        "CH" | "CR" | "HR" | "LI" | "LV" => 21,
        "BG" | "BH" | "DE" | "GB" | "GE" | "IE" | "ME" | "RS" | "VA" => 22,
        "AE" | "GI" | "IL" | "IQ" | "OM" | "SO" | "TL" => 23,
        "AD" | "CZ" | "ES" | "MD" | "PK" | "RO" | "SA" | "SE" | "SK" | "TN" | "VG" => 24,
        "LY" | "PT" | "ST" => 25,
        "IS" | "TR" => 26,
        "BI" | "DJ" | "FR" | "GR" | "IT" | "MC" | "MR" | "SM" => 27,
        "AL" | "AZ" | "BY" | "CY" | "DO" | "GT" | "HN" | "HU" | "LB" | "NI" | "PL" | "SV" => 28,
        "BR" | "EG" | "PS" | "QA" | "UA" => 29,
        "JO" | "KW" | "MU" | "YE" => 30,
        "MT" | "SC" => 31,
        "LC" => 32,
        "RU" => 33,
        _ => return None,
    })
}
