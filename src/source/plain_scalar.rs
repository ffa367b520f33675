//! Plain scalars: the core schema of YAML 1.2, with numbers in their exact notation.

use crate::json::Number;

/// The value of an unquoted scalar.
#[derive(Debug, PartialEq)]
pub(super) enum PlainScalar {
    Null,
    Bool(bool),
    Number(Number),
    /// `.inf`, `.nan` and the like: a YAML float without JSON counterpart.
    NotFinite,
    /// A hexadecimal or octal integer of more than 128 bits.
    TooLong,
    /// `0777`: ambiguous between an octal number, a decimal number and a string.
    LeadingZero,
    /// `1_000`, `0b11`, `NaN`: a number in other languages or versions of YAML, a string in YAML 1.2.
    ForeignNumber,
    String,
}

/// Resolves an unquoted scalar.
pub(super) fn resolve_plain(text: &str) -> PlainScalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return PlainScalar::Null,
        "true" | "True" | "TRUE" => return PlainScalar::Bool(true),
        "false" | "False" | "FALSE" => return PlainScalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return PlainScalar::NotFinite,
        _ => {}
    }
    // Most scalars are words. All numbers but these two begin with a digit, a sign or a point.
    let may_be_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.');
    if !text.as_bytes().first().is_some_and(may_be_number) {
        return match text {
            "NaN" | "Infinity" => PlainScalar::ForeignNumber,
            _ => PlainScalar::String,
        };
    }
    if has_leading_zero(text) {
        return PlainScalar::LeadingZero;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return radix_integer(digits, radix);
        }
    }
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if matches!(magnitude, ".inf" | ".Inf" | ".INF") {
        return PlainScalar::NotFinite;
    }
    match decimal(sign, magnitude) {
        Some(number) => PlainScalar::Number(number),
        None if is_foreign_number(magnitude) => PlainScalar::ForeignNumber,
        None => PlainScalar::String,
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

/// `0777`, `-010`, `00.5`, `0_7`: digits with a leading zero.
fn has_leading_zero(text: &str) -> bool {
    let magnitude = unsigned(text);
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'));
    let is_number = digits(mantissa) && digits(unsigned(exponent)) && mantissa.matches('.').count() <= 1;
    let mut bytes = mantissa.bytes();
    is_number && bytes.next() == Some(b'0') && bytes.next().is_some_and(|next| next != b'.')
}

/// Whether people or other YAML parsers read this as a number although the core schema does not.
fn is_foreign_number(magnitude: &str) -> bool {
    if matches!(magnitude, "NaN" | "Infinity")
        || magnitude.eq_ignore_ascii_case(".nan")
        || magnitude.eq_ignore_ascii_case(".inf")
    {
        return true;
    }
    let prefixed = |prefixes: &[&str], is_digit: fn(char) -> bool| {
        let digits = prefixes.iter().find_map(|prefix| magnitude.strip_prefix(prefix));
        digits.is_some_and(|digits| {
            digits.contains(is_digit) && digits.chars().all(|c| is_digit(c) || c == '_')
        })
    };
    if prefixed(&["0o", "0O", "0b", "0B"], |c| c.is_ascii_digit())
        || prefixed(&["0x", "0X"], |c| c.is_ascii_hexdigit())
    {
        return true;
    }
    // `1_000`, `1_000.50`, `1_0e3`.
    let starts_with_digit = magnitude.starts_with(|c: char| c.is_ascii_digit());
    let plain: String = magnitude.chars().filter(|c| *c != '_').collect();
    starts_with_digit && plain.len() < magnitude.len() && decimal("", &plain).is_some()
}

fn radix_integer(digits: &str, radix: u32) -> PlainScalar {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return if is_foreign_number(&format!("0{}{digits}", if radix == 16 { 'x' } else { 'o' })) {
            PlainScalar::ForeignNumber
        } else {
            PlainScalar::String
        };
    }
    u128::from_str_radix(digits, radix)
        .ok()
        .and_then(|value| value.to_string().parse().ok())
        .map_or(PlainScalar::TooLong, PlainScalar::Number)
}

/// Normalizes `[0-9]+(\.[0-9]*)?` or `\.[0-9]+`, with an optional exponent, to JSON notation: no leading zeros, digits on both
/// sides of the point.
fn decimal(sign: &str, magnitude: &str) -> Option<Number> {
    let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (magnitude, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction.unwrap_or("")) {
        return None;
    }
    if whole.is_empty() && fraction.unwrap_or("").is_empty() {
        return None;
    }
    let mut json = format!("{sign}{}", whole.trim_start_matches('0'));
    if whole.trim_start_matches('0').is_empty() {
        json.push('0');
    }
    if let Some(fraction) = fraction {
        json.push('.');
        json.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    if let Some(exponent) = exponent {
        let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if unsigned.is_empty() || !digits(unsigned) {
            return None;
        }
        json.push('e');
        json.push_str(exponent);
    }
    json.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_plain_scalars_by_the_core_schema() {
        let number = |text: &str| PlainScalar::Number(text.parse().unwrap());
        for (text, expected) in [
            ("", PlainScalar::Null),
            ("~", PlainScalar::Null),
            ("NULL", PlainScalar::Null),
            ("nUll", PlainScalar::String),
            ("True", PlainScalar::Bool(true)),
            ("tRue", PlainScalar::String),
            ("no", PlainScalar::String),
            ("yes", PlainScalar::String),
            ("on", PlainScalar::String),
            ("y", PlainScalar::String),
            ("0", number("0")),
            ("-0", number("-0")),
            ("017", PlainScalar::LeadingZero),
            ("0777", PlainScalar::LeadingZero),
            ("-0010", PlainScalar::LeadingZero),
            ("+08", PlainScalar::LeadingZero),
            ("00", PlainScalar::LeadingZero),
            ("00.5", PlainScalar::LeadingZero),
            ("0_7", PlainScalar::LeadingZero),
            ("01e3", PlainScalar::LeadingZero),
            ("0.5", number("0.5")),
            ("0e5", number("0e5")),
            ("01:30", PlainScalar::String),
            ("00:30:00", PlainScalar::String),
            ("007-a", PlainScalar::String),
            ("0.0.0.0", PlainScalar::String),
            ("01.02.03", PlainScalar::String),
            ("+12", number("12")),
            ("0o17", number("15")),
            ("0xfF", number("255")),
            ("-0x1", PlainScalar::ForeignNumber),
            ("0x", PlainScalar::String),
            ("0o8", PlainScalar::ForeignNumber),
            ("0b1", PlainScalar::ForeignNumber),
            ("0X1F", PlainScalar::ForeignNumber),
            ("0O17", PlainScalar::ForeignNumber),
            ("0x1_0", PlainScalar::ForeignNumber),
            ("0xzz", PlainScalar::String),
            ("1_000.50", PlainScalar::ForeignNumber),
            ("-1_0e3", PlainScalar::ForeignNumber),
            ("1_", PlainScalar::ForeignNumber),
            ("1_a", PlainScalar::String),
            ("a_1", PlainScalar::String),
            ("_1", PlainScalar::String),
            ("NaN", PlainScalar::ForeignNumber),
            ("-Infinity", PlainScalar::ForeignNumber),
            ("nan", PlainScalar::String),
            ("1_000", PlainScalar::ForeignNumber),
            ("1.50", number("1.50")),
            (".5", number("0.5")),
            ("1.", number("1.0")),
            ("1e3", number("1e3")),
            ("1e", PlainScalar::String),
            ("e3", PlainScalar::String),
            (".", PlainScalar::String),
            ("+", PlainScalar::String),
            ("-", PlainScalar::String),
            ("--1", PlainScalar::String),
            ("1.2.3", PlainScalar::String),
            ("12:30", PlainScalar::String),
            ("2026-01-01", PlainScalar::String),
            ("2026-01-01T10:00:00Z", PlainScalar::String),
            ("9007199254740993", number("9007199254740993")),
            ("0.1000000000000000000000001", number("0.1000000000000000000000001")),
            ("123456789012345678901234567890", number("123456789012345678901234567890")),
            (".inf", PlainScalar::NotFinite),
            ("-.INF", PlainScalar::NotFinite),
            (".NaN", PlainScalar::NotFinite),
            ("-.nan", PlainScalar::ForeignNumber),
            ("0x100000000000000000000000000000000", PlainScalar::TooLong),
            ("١", PlainScalar::String),
        ] {
            assert_eq!(resolve_plain(text), expected, "{text}");
        }
    }
}
