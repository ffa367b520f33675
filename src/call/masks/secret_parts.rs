//! Parts of what is redacted, in other form: without separators, in other letter case, backwards, or between other characters.
//!
//! Letters and digits that follow each other in a redacted string, and not in its replacement, are secret.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::FULLY_REDACTED;
use crate::json::Value;
use crate::work_limit::{self, WorkLimitError};

/// Bytes read per work unit.
const READ_PER_UNIT: u64 = 4;
/// Bits of a character in a window.
const BITS_OF_CHAR: u32 = 21;

/// What is secret of a set of redacted strings.
pub(super) struct SecretParts {
    /// The number of letters and digits in a window.
    width: usize,
    windows: HashSet<u128>,
    /// Whether a redacted string is a number, from which others can be computed.
    has_number: bool,
}

/// A letter or digit in lower case, with the bytes of the text that it stands for.
struct FoldedChar {
    folded: char,
    range: Range<usize>,
}

impl SecretParts {
    /// The parts of these strings, each with its replacement, that are at least `width` letters and digits long.
    pub(super) fn new(masks: &BTreeMap<String, String>, width: usize) -> Result<Self, WorkLimitError> {
        let mut parts = Self { width, windows: HashSet::new(), has_number: false };
        for (raw, replacement) in masks {
            work_limit::spend_for(raw.len() + replacement.len(), READ_PER_UNIT)?;
            let shown: HashSet<u128> = parts.windows_of(&fold(replacement)).collect();
            let mut folded = fold(raw);
            parts.has_number |= is_digits(&folded);
            for _ in 0..2 {
                let secret: Vec<u128> =
                    parts.windows_of(&folded).filter(|window| !shown.contains(window)).collect();
                parts.windows.extend(secret);
                folded.reverse();
            }
        }
        Ok(parts)
    }

    fn windows_of(&self, chars: &[FoldedChar]) -> impl Iterator<Item = u128> {
        windows(chars, self.width)
    }

    /// Whether a text has a secret part, or is a number that may be computed from one.
    pub(super) fn occur_in(&self, text: &str) -> bool {
        if work_limit::spend_for(text.len(), READ_PER_UNIT).is_err() {
            return true;
        }
        let chars = fold(text);
        self.has_number && is_digits(&chars)
            || self.windows_of(&chars).any(|window| self.windows.contains(&window))
    }

    /// The text with its secret parts replaced, or `None` if it has none.
    pub(super) fn replace_in(&self, text: &str) -> Option<String> {
        if work_limit::spend_for(text.len(), READ_PER_UNIT).is_err() {
            return Some(FULLY_REDACTED.to_owned());
        }
        let chars = fold(text);
        let mut secret: Vec<Range<usize>> = Vec::new();
        for (index, window) in self.windows_of(&chars).enumerate() {
            let (Some(first), Some(last)) = (chars.get(index), chars.get(index + self.width - 1)) else {
                break;
            };
            if !self.windows.contains(&window) {
                continue;
            }
            match secret.last_mut() {
                Some(before) if first.range.start <= before.end => before.end = last.range.end,
                _ => secret.push(first.range.start..last.range.end),
            }
        }
        if secret.is_empty() {
            return None;
        }
        let (mut replaced, mut rest) = (String::new(), 0);
        for range in secret {
            replaced.push_str(text.get(rest..range.start).unwrap_or_default());
            replaced.push_str(FULLY_REDACTED);
            rest = range.end;
        }
        Some(replaced + text.get(rest..).unwrap_or_default())
    }
}

/// The letters and digits that follow each other in the texts of a value.
pub(super) struct TextWindows {
    width: usize,
    windows: HashSet<u128>,
}

impl TextWindows {
    /// The runs of `width` letters and digits in the strings, numbers and keys of a value.
    pub(super) fn new(value: &Value, width: usize) -> Result<Self, WorkLimitError> {
        let mut found = Self { width, windows: HashSet::new() };
        found.add(value)?;
        Ok(found)
    }

    fn add(&mut self, value: &Value) -> Result<(), WorkLimitError> {
        match value {
            Value::Null | Value::Bool(_) => Ok(()),
            Value::Number(number) => self.add_text(&number.to_string()),
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item)),
            Value::Object(members) => members.iter().try_for_each(|(key, member)| {
                self.add_text(key)?;
                self.add(member)
            }),
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), WorkLimitError> {
        work_limit::spend_for(text.len(), READ_PER_UNIT)?;
        self.windows.extend(windows(&fold(text), self.width));
        Ok(())
    }

    /// Whether they have a part of a redacted string that its replacement does not show, forwards or backwards.
    pub(super) fn has_part_of(&self, raw: &str, replacement: &str) -> bool {
        if work_limit::spend_for(raw.len() + replacement.len(), READ_PER_UNIT).is_err() {
            return true;
        }
        let shown: HashSet<u128> = windows(&fold(replacement), self.width).collect();
        let mut folded = fold(raw);
        let occurs = |folded: &[FoldedChar]| {
            windows(folded, self.width).any(|part| self.windows.contains(&part) && !shown.contains(&part))
        };
        if occurs(&folded) {
            return true;
        }
        folded.reverse();
        occurs(&folded)
    }
}

/// The runs of this many letters and digits.
fn windows(chars: &[FoldedChar], width: usize) -> impl Iterator<Item = u128> {
    let pack = |window: &[FoldedChar]| {
        window.iter().fold(0, |packed, one| packed << BITS_OF_CHAR | u128::from(u32::from(one.folded)))
    };
    chars.windows(width).map(pack)
}

fn fold(text: &str) -> Vec<FoldedChar> {
    let letters = text.char_indices().filter(|(_, letter)| letter.is_alphanumeric());
    letters
        .flat_map(|(start, letter)| {
            let range = start..start + letter.len_utf8();
            letter.to_lowercase().map(move |folded| FoldedChar { folded, range: range.clone() })
        })
        .collect()
}

fn is_digits(chars: &[FoldedChar]) -> bool {
    !chars.is_empty() && chars.iter().all(|one| one.folded.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(masks: &[(&str, &str)], width: usize) -> SecretParts {
        let masks = masks.iter().map(|(raw, shown)| ((*raw).to_owned(), (*shown).to_owned())).collect();
        SecretParts::new(&masks, width).unwrap()
    }

    #[test]
    fn parts_are_found_in_every_form_and_the_rest_is_not() {
        let parts = parts(
            &[("Kx4-9301-QzT", "[pin]"), ("write to ana@example.com soon", "write to [email] soon")],
            4,
        );
        for text in ["kx49301qzt", "x 9301 y", "id_X4 93", "TzQ1039", "EXAMPLE"] {
            assert!(parts.occur_in(text), "{text}");
        }
        for text in ["write soon", "Kx4 and QzT", "[pin]", "12345", ""] {
            assert!(!parts.occur_in(text), "{text}");
        }
        assert_eq!(
            parts.replace_in("id-KX49301 of two, 9301!"),
            Some("id-[redacted] of two, [redacted]!".to_owned())
        );
        assert_eq!(parts.replace_in("write soon"), None);
    }

    #[test]
    fn numbers_may_be_computed_from_a_redacted_number() {
        assert!(parts(&[("4711", "[pin]")], 4).occur_in("9422"));
        assert!(!parts(&[("4711", "[pin]")], 4).occur_in("9422 cars"));
    }
}
