//! JSON texts for JavaScript: whether `JSON.parse` reads one without rounding a number.

use callgate::json::{self, append_json};
use serde::Serialize;

/// The first character of a text that `JSON.parse` reads exactly.
const EXACT: char = '=';
/// The first character of a text with a number that JavaScript might round.
const ROUNDED: char = '#';

/// The digits that a double always keeps.
const SAFE_DIGITS: usize = 15;

/// Adds the text to a message, after the character that says how to read it.
pub fn append_flagged(message: &mut String, text: &str) {
    message.push(if has_long_number(text) { ROUNDED } else { EXACT });
    message.push_str(text);
}

/// Adds the JSON of a value to a message, after the character that says how to read it. After an error the message is incomplete.
pub fn append_flagged_json(message: &mut String, value: &impl Serialize) -> Result<(), json::Error> {
    let start = message.len();
    message.push(EXACT);
    append_json(message, value)?;
    if message.get(start..).is_some_and(has_long_number) {
        message.replace_range(start..=start, ROUNDED.encode_utf8(&mut [0; 4]));
    }
    Ok(())
}

/// The text after the character that says how to read it.
pub fn flagged(text: &str) -> String {
    let mut message = String::with_capacity(text.len().saturating_add(1));
    append_flagged(&mut message, text);
    message
}

/// Whether a JSON text has a number with an exponent, or with more digits than a double always keeps.
fn has_long_number(text: &str) -> bool {
    let mut digits = 0_usize;
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => {
                digits = 0;
                rest = after_string(after);
            }
            b'0'..=b'9' => {
                digits = digits.saturating_add(1);
                if digits > SAFE_DIGITS {
                    return true;
                }
            }
            b'.' => {}
            b'e' | b'E' if digits > 0 => return true,
            _ => digits = 0,
        }
    }
    false
}

/// What follows a string, whose content the bytes begin with.
fn after_string(mut bytes: &[u8]) -> &[u8] {
    loop {
        // Most bytes are in strings, and a quote is found faster in eight bytes at once.
        let (chunks, _) = bytes.as_chunks::<8>();
        let without = chunks.iter().take_while(|chunk| !chunk.contains(&b'"')).count().saturating_mul(8);
        let tail = bytes.get(without..).unwrap_or_default().iter().position(|byte| *byte == b'"');
        let Some(quote) = tail.map(|tail| tail.saturating_add(without)) else { return &[] };
        let content = bytes.get(..quote).unwrap_or_default();
        bytes = bytes.get(quote.saturating_add(1)..).unwrap_or_default();
        if content.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0 {
            return bytes;
        }
    }
}
