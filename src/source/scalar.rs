//! What a plain scalar means: the core schema of YAML 1.2, with numbers kept digit by digit.

use crate::json::Number;

/// What an unquoted scalar stands for.
#[derive(Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Number(Number),
    /// `.inf`, `.nan` and the like: a float of YAML that JSON has no word for.
    NotFinite,
    /// A hexadecimal or octal integer of more than 128 bits.
    TooLong,
    String,
}

/// Reads an unquoted scalar.
pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::NotFinite,
        _ => {}
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
    decimal(sign, magnitude).map_or(Plain::String, Plain::Number)
}

fn radix_integer(digits: &str, radix: u32) -> Plain {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Plain::String;
    }
    u128::from_str_radix(digits, radix)
        .ok()
        .and_then(|value| value.to_string().parse().ok())
        .map_or(Plain::TooLong, Plain::Number)
}

/// `[0-9]+(\.[0-9]*)?` or `\.[0-9]+`, then an exponent, rewritten as JSON writes it: no leading zeros, digits on both
/// sides of a point.
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
    fn plain_scalars_mean_what_the_core_schema_says() {
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
            ("017", number("17")),
            ("+12", number("12")),
            ("0o17", number("15")),
            ("0xfF", number("255")),
            ("-0x1", Plain::String),
            ("0x", Plain::String),
            ("0o8", Plain::String),
            ("0b1", Plain::String),
            ("1_000", Plain::String),
            ("1.50", number("1.50")),
            (".5", number("0.5")),
            ("1.", number("1.0")),
            ("00.5", number("0.5")),
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
            ("9007199254740993", number("9007199254740993")),
            ("0.1000000000000000000000001", number("0.1000000000000000000000001")),
            ("123456789012345678901234567890", number("123456789012345678901234567890")),
            (".inf", Plain::NotFinite),
            ("-.INF", Plain::NotFinite),
            (".NaN", Plain::NotFinite),
            ("-.nan", Plain::String),
            ("0x100000000000000000000000000000000", Plain::TooLong),
            ("١", Plain::String),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}
