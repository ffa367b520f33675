//! Writer: value → JSON text, compact with `{}`, indented by two spaces with `{:#}`. Numbers keep their source text.

use std::fmt::{self, Display, Formatter, Write};

use super::{Map, Value};

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let indent = f.alternate().then_some(0);
        write_value(self, indent, f)
    }
}

impl Display for Map {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let indent = f.alternate().then_some(0);
        write_object(self, indent, f)
    }
}

/// Writes a value without spaces, as its `Display` does.
pub(super) fn write_compact(value: &Value, out: &mut impl Write) -> fmt::Result {
    write_value(value, None, out)
}

/// Writes a value; indented if the indent of its line is given.
fn write_value(value: &Value, indent: Option<usize>, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(true) => out.write_str("true"),
        Value::Bool(false) => out.write_str("false"),
        Value::Number(number) => out.write_str(&number.text()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => write_array(items, indent, out),
        Value::Object(members) => write_object(members, indent, out),
    }
}

fn write_array(items: &[Value], indent: Option<usize>, out: &mut impl Write) -> fmt::Result {
    out.write_char('[')?;
    let inner = indent.map(|indent| indent + 1);
    for (index, item) in items.iter().enumerate() {
        write_separator(index, inner, out)?;
        write_value(item, inner, out)?;
    }
    write_closing_line(items.is_empty(), indent, out)?;
    out.write_char(']')
}

fn write_object(members: &Map, indent: Option<usize>, out: &mut impl Write) -> fmt::Result {
    out.write_char('{')?;
    let inner = indent.map(|indent| indent + 1);
    for (index, (key, item)) in members.iter().enumerate() {
        write_separator(index, inner, out)?;
        write_string(key, out)?;
        out.write_str(if indent.is_some() { ": " } else { ":" })?;
        write_value(item, inner, out)?;
    }
    write_closing_line(members.is_empty(), indent, out)?;
    out.write_char('}')
}

fn write_separator(index: usize, indent: Option<usize>, out: &mut impl Write) -> fmt::Result {
    if index > 0 {
        out.write_char(',')?;
    }
    write_new_line(indent, out)
}

fn write_closing_line(is_empty: bool, indent: Option<usize>, out: &mut impl Write) -> fmt::Result {
    if is_empty { Ok(()) } else { write_new_line(indent, out) }
}

fn write_new_line(indent: Option<usize>, out: &mut impl Write) -> fmt::Result {
    let Some(indent) = indent else { return Ok(()) };
    out.write_char('\n')?;
    (0..indent).try_for_each(|_| out.write_str("  "))
}

/// Writes a string with its quotes. Escapes only what JSON requires.
pub fn write_string(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = first_escaped(rest.as_bytes()) {
        out.write_str(rest.get(..at).unwrap_or_default())?;
        match rest.as_bytes().get(at) {
            Some(b'"') => out.write_str("\\\"")?,
            Some(b'\\') => out.write_str("\\\\")?,
            Some(0x08) => out.write_str("\\b")?,
            Some(0x0c) => out.write_str("\\f")?,
            Some(b'\n') => out.write_str("\\n")?,
            Some(b'\r') => out.write_str("\\r")?,
            Some(b'\t') => out.write_str("\\t")?,
            Some(byte) => write!(out, "\\u{byte:04x}")?,
            None => {}
        }
        rest = rest.get(at + 1..).unwrap_or_default();
    }
    out.write_str(rest)?;
    out.write_char('"')
}

/// The position of the first byte that JSON requires to be escaped.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    let (chunks, _) = bytes.as_chunks();
    let clean = chunks.iter().take_while(|chunk| !may_hold_escaped(u64::from_le_bytes(**chunk))).count();
    let from = clean * size_of::<u64>();
    let mut rest = bytes.get(from..).unwrap_or_default().iter();
    rest.position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).map(|at| from + at)
}

/// Whether one of eight bytes may have to be escaped. Tests them at once: subtracting from a byte that is less than the subtrahend
/// sets its highest bit, and so does the borrow, which only makes a byte above one that is found look like one.
const fn may_hold_escaped(bytes: u64) -> bool {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    const fn are_less(bytes: u64, than: u64) -> u64 {
        bytes.wrapping_sub(EACH * than) & !bytes
    }
    let quotes = are_less(bytes ^ (EACH * b'"' as u64), 1);
    let backslashes = are_less(bytes ^ (EACH * b'\\' as u64), 1);
    (are_less(bytes, 0x20) | quotes | backslashes) & HIGHEST != 0
}

#[cfg(test)]
mod tests {
    use crate::json::{json, parse};

    #[test]
    fn characters_are_escaped_wherever_they_are() {
        for length in 0..40 {
            for at in 0..length {
                for character in ['"', '\\', '\n', '\u{1f}', ' ', '\u{7f}', 'é'] {
                    let text: String =
                        (0..length).map(|index| if index == at { character } else { 'a' }).collect();
                    assert_eq!(json!(text).to_string(), serde_json::to_string(&text).unwrap());
                }
            }
        }
    }

    #[test]
    fn both_layouts_match_serde_json() {
        let text = r#"{"a":[],"b":{},"c":[1,[2,{"d":null}],"\u0000\u001f\u007f\b\f\n\r\t\"\\/é😀"],"":true}"#;
        let (ours, theirs) = (parse(text).unwrap(), serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(ours["c"].to_string(), theirs["c"].to_string());
        assert_eq!(format!("{:#}", ours["c"]), format!("{:#}", theirs["c"]));
        assert_eq!(parse(&ours.to_string()).unwrap(), ours);
        assert_eq!(
            format!("{:#}", json!({"a": [], "b": {}, "c": {"d": [1]}})),
            "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": {\n    \"d\": [\n      1\n    ]\n  }\n}"
        );
    }
}
