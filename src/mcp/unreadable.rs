//! Answers that can't be read strictly, as far as it can be told whose they were: whoever waits for them waits in vain.

use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::Value;

use super::frame::Id;

/// The requests that a text was meant to answer, of whatever is no message: text that is cut off, with what JSON has no place for, a batch.
///
/// Only the members of the message itself are looked at. A message that has a method answers nothing.
pub(super) fn answered_by(text: &str) -> Vec<Id> {
    let mut answered = Vec::new();
    let mut message = Message::default();
    let outermost = if text.trim_start().starts_with('[') { 2 } else { 1 };
    let (mut depth, mut key) = (0_usize, None);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => {
                if depth == outermost {
                    answered.append(&mut std::mem::take(&mut message).answers(true));
                }
                depth = depth.saturating_sub(1);
            }
            ',' => key = None,
            '"' => {
                let string = text.get(at..end_of_string(&mut chars, text.len())).unwrap_or_default();
                if depth != outermost {
                    continue;
                }
                match key {
                    Some("id") => message.ids.extend(id(string)),
                    Some(_) => {}
                    None => {
                        key = string.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                        message.note(key);
                    }
                }
            }
            '-' | '0'..='9' if depth == outermost && key == Some("id") => {
                while chars.next_if(|(_, c)| c.is_ascii_alphanumeric() || ".+-".contains(*c)).is_some() {}
                let end = chars.peek().map_or(text.len(), |(end, _)| *end);
                message.ids.extend(id(text.get(at..end).unwrap_or_default()));
            }
            _ => {}
        }
    }
    answered.append(&mut message.answers(false));
    answered
}

/// What is seen of a message.
#[derive(Default)]
struct Message {
    ids: Vec<Id>,
    has_method: bool,
    has_outcome: bool,
}

impl Message {
    fn note(&mut self, key: Option<&str>) {
        self.has_method |= key == Some("method");
        self.has_outcome |= matches!(key, Some("result" | "error"));
    }

    /// What it answers. One that is cut off may still have become a question.
    fn answers(self, is_whole: bool) -> Vec<Id> {
        match !self.has_method && (is_whole || self.has_outcome) {
            true => self.ids,
            false => Vec::new(),
        }
    }
}

/// Reads to the end of a string; where the next character is.
fn end_of_string(chars: &mut Peekable<CharIndices<'_>>, length: usize) -> usize {
    while let Some((_, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => break,
            _ => {}
        }
    }
    chars.peek().map_or(length, |(end, _)| *end)
}

fn id(text: &str) -> Option<Id> {
    Id::of(&serde_json::from_str::<Value>(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_an_answer_was_is_told_from_what_is_left_of_it() {
        let cases: [(&str, &[&str]); 14] = [
            (r#"{"id":1,"result":{"mean":NaN}}"#, &["1"]),
            (r#"{"id" : "a\"b" , "error":{"id":9}}"#, &[r#""a\"b""#]),
            (r#"{"result":{"id":9,"list":[{"id":8}]},"id":-7}"#, &["-7"]),
            (r#"{"id":1,"result":{},"id":2}"#, &["1", "2"]),
            (r#"[{"id":1,"result":{}},{"id":2,"method":"x"},{"id":3,"error":{}}]"#, &["1", "3"]),
            (r#"{"id":1,"result":{"content":[{"te"#, &["1"]),
            (r#"{"id":1,"result":"\"#, &["1"]),
            (r#"{"note":"id","x":"id","id":4}"#, &["4"]),
            (r#"{"id":1,"resu"#, &[]),
            (r#"{"id":1,"method":"x","result":{}}"#, &[]),
            (r#"{"id":1.5,"result":{}}"#, &[]),
            (r#"{"id":null,"error":{}}"#, &[]),
            ("started with id: 5", &[]),
            ("]]}}\"", &[]),
        ];
        for (text, expected) in cases {
            let found: Vec<String> = answered_by(text).iter().map(Id::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
