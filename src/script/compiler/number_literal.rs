//! Exact number literals, read from the source text: Rhai's syntax tree holds only the nearest float or a wrapped integer.

use std::collections::BTreeMap;
use std::ops::Range;

use rhai::{Expr, Position};

use super::{CompileResult, Compiler};
use crate::json::{self, Number as JsonNumber, Value};
use crate::script::ScriptCompileError;
use crate::script::exact_number::ExactNumber;
use crate::script::parser::byte_offset;
use crate::script::program::Code;

impl Compiler<'_> {
    /// Reads the exact number at the position of a literal in the syntax tree.
    ///
    /// # Errors
    /// The text at the position is not that number.
    pub(super) fn compile_number(&self, literal: &Expr, position: Position) -> CompileResult<Code> {
        let number = byte_offset(self.text, position)
            .and_then(|start| read_number(self.text, start))
            .filter(|number| is_parsed_as(number, literal))
            .ok_or_else(|| {
                self.error(position, "this number cannot be read exactly")
                    .with_help("write decimal digits, with the sign directly before them".to_owned())
            })?;
        Ok(number_code(number))
    }

    /// The exact number at an offset of the text. Returns `None` if there is none.
    pub(super) fn number_at(&self, offset: usize) -> Option<Code> {
        read_number(self.text, offset).map(number_code)
    }
}

fn number_code(number: JsonNumber) -> Code {
    match ExactNumber::from_json(&number) {
        // A number that prints as its source text needs no text of its own.
        Some(value) if value.to_string() == *number.text() => Code::Number(value),
        _ => Code::Literal(Value::Number(number)),
    }
}

/// The JSON number of the literal at an offset, with its signs.
fn read_number(text: &str, start: usize) -> Option<JsonNumber> {
    let rest = text.get(start..)?;
    let unsigned =
        rest.trim_start_matches(|sign: char| matches!(sign, '-' | '+' | '(') || sign.is_whitespace());
    let signs = rest.get(..rest.len() - unsigned.len())?;
    let negative = signs.matches('-').count() % 2 == 1;
    let token = unsigned.get(literal_range(unsigned)?)?;
    let digits: String = token.chars().filter(|digit| *digit != '_').collect();
    let lower = digits.to_ascii_lowercase();
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, radix)));
    let plain = match radix {
        Some((digits, radix)) => u64::from_str_radix(digits, radix).ok()?.to_string(),
        None => to_json_notation(&lower),
    };
    let text = format!("{}{plain}", if negative && plain != "0" { "-" } else { "" });
    match json::parse(&text).ok()? {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// Converts `007.` and `1.e5` into JSON notation.
fn to_json_notation(digits: &str) -> String {
    let (mantissa, exponent) =
        digits.split_once('e').map_or((digits, None), |(mantissa, exponent)| (mantissa, Some(exponent)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let mut text = if whole.is_empty() { "0".to_owned() } else { whole.to_owned() };
    if mantissa.contains('.') {
        text.push('.');
        text.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    if let Some(exponent) = exponent {
        text.push('e');
        text.push_str(exponent);
    }
    text
}

/// The range of the number at the start of a text.
fn literal_range(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_digit());
    let digits = |from: usize| {
        bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count() + from
    };
    if !is_digit(0) {
        return None;
    }
    if bytes.first() == Some(&b'0') && bytes.get(1).is_some_and(|byte| b"xXoObB".contains(byte)) {
        let hex = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'_';
        return Some(0..bytes.iter().skip(2).take_while(hex).count() + 2);
    }
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.')
        && bytes.get(end + 1) != Some(&b'.')
        && (is_digit(end + 1) || !is_name_start(bytes.get(end + 1)))
    {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if is_digit(end + 1 + sign) {
            end = digits(end + 1 + sign);
        }
    }
    Some(0..end)
}

fn is_name_start(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
}

/// Whether Rhai parsed the same number. A wrong position fails here.
fn is_parsed_as(number: &JsonNumber, literal: &Expr) -> bool {
    match literal {
        Expr::IntegerConstant(value, _) => number.as_i64() == Some(*value),
        Expr::FloatConstant(value, _) => number.text().parse() == Ok(**value),
        _ => false,
    }
}

/// Rejects different numbers that are the same float: Rhai would merge two closures that differ only in these.
///
/// # Errors
/// The text contains two such numbers.
pub(super) fn reject_ambiguous_floats(text: &str) -> CompileResult<()> {
    if !text.contains('|') {
        return Ok(());
    }
    let mut known: BTreeMap<u64, String> = BTreeMap::new();
    let mut at = 0;
    let next = |at: usize| text.get(at..)?.find(|c: char| c.is_ascii_digit()).map(|found| at + found);
    while let Some(start) = next(at) {
        at = text.get(start..).and_then(literal_range).map_or(start + 1, |literal| start + literal.end);
        let Some(number) = read_number(text, start) else { continue };
        let Ok(float) = number.text().parse::<f64>() else { continue };
        let value = number.canonical_text();
        if *known.entry(float.to_bits()).or_insert_with(|| value.clone()) != value {
            return Err(ScriptCompileError {
                is_unknown_name: false,
                message: "two numbers are too close together to be distinguished".to_owned(),
                offset: Some(start),
                help: Some("write them with fewer digits, or compute one of them".to_owned()),
            });
        }
    }
    Ok(())
}
