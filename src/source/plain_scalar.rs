//! Plain scalars: the core schema of YAML 1.2, with numbers in their exact notation.

use crate::json::Number;

/// The value of an unquoted scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Plain {
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
pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::NotFinite,
        _ => {}
    }
    if has_leading_zero(text) {
        return Plain::LeadingZero;
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
        return Plain::NotFinite;
    }
    match decimal(sign, magnitude) {
        Some(number) => Plain::Number(number),
        None if is_foreign_number(magnitude) => Plain::ForeignNumber,
        None => Plain::String,
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

fn radix_integer(digits: &str, radix: u32) -> Plain {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return if is_foreign_number(&format!("0{}{digits}", if radix == 16 { 'x' } else { 'o' })) {
            Plain::ForeignNumber
        } else {
            Plain::String
        };
    }
    u128::from_str_radix(digits, radix)
        .ok()
        .and_then(|value| value.to_string().parse().ok())
        .map_or(Plain::TooLong, Plain::Number)
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
        let number = |text: &str| Plain::Number(text.parse().unwrap());
        for (text, expected) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("NULL", Plain::Null),
            ("nUll", Plain::String),
            ("True", Plain::Bool(true)),
            ("tRue", Plain::String),
            ("no", Plain::String),
            ("yes", Plain::String),
            ("on", Plain::String),
            ("y", Plain::String),
            ("0", number("0")),
            ("-0", number("-0")),
            ("017", Plain::LeadingZero),
            ("0777", Plain::LeadingZero),
            ("-0010", Plain::LeadingZero),
            ("+08", Plain::LeadingZero),
            ("00", Plain::LeadingZero),
            ("00.5", Plain::LeadingZero),
            ("0_7", Plain::LeadingZero),
            ("01e3", Plain::LeadingZero),
            ("0.5", number("0.5")),
            ("0e5", number("0e5")),
            ("01:30", Plain::String),
            ("00:30:00", Plain::String),
            ("007-a", Plain::String),
            ("0.0.0.0", Plain::String),
            ("01.02.03", Plain::String),
            ("+12", number("12")),
            ("0o17", number("15")),
            ("0xfF", number("255")),
            ("-0x1", Plain::ForeignNumber),
            ("0x", Plain::String),
            ("0o8", Plain::ForeignNumber),
            ("0b1", Plain::ForeignNumber),
            ("0X1F", Plain::ForeignNumber),
            ("0O17", Plain::ForeignNumber),
            ("0x1_0", Plain::ForeignNumber),
            ("0xzz", Plain::String),
            ("1_000.50", Plain::ForeignNumber),
            ("-1_0e3", Plain::ForeignNumber),
            ("1_", Plain::ForeignNumber),
            ("1_a", Plain::String),
            ("a_1", Plain::String),
            ("_1", Plain::String),
            ("NaN", Plain::ForeignNumber),
            ("-Infinity", Plain::ForeignNumber),
            ("nan", Plain::String),
            ("1_000", Plain::ForeignNumber),
            ("1.50", number("1.50")),
            (".5", number("0.5")),
            ("1.", number("1.0")),
            ("1e3", number("1e3")),
            ("1e", Plain::String),
            ("e3", Plain::String),
            (".", Plain::String),
            ("+", Plain::String),
            ("-", Plain::String),
            ("--1", Plain::String),
            ("1.2.3", Plain::String),
            ("12:30", Plain::String),
            ("2026-01-01", Plain::String),
            ("2026-01-01T10:00:00Z", Plain::String),
            ("9007199254740993", number("9007199254740993")),
            ("0.1000000000000000000000001", number("0.1000000000000000000000001")),
            ("123456789012345678901234567890", number("123456789012345678901234567890")),
            (".inf", Plain::NotFinite),
            ("-.INF", Plain::NotFinite),
            (".NaN", Plain::NotFinite),
            ("-.nan", Plain::ForeignNumber),
            ("0x100000000000000000000000000000000", Plain::TooLong),
            ("١", Plain::String),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}
