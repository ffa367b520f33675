//! Shapes of identifiers: `ord_8f3a` → `ord_` and letters or digits. A shape determines a regular expression but for the lengths.

use regex_syntax::escape;

/// How much of a string its shape keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShapeLevel {
    /// Letters before digits, and words before something else; the class of each other run.
    Prefix,
    /// The class of each run: digits, lower-case or upper-case letters, or a mixture.
    Classes,
    /// Only the separators between runs.
    Separators,
}

impl ShapeLevel {
    /// The strictest first.
    pub(super) const ALL: [Self; 3] = [Self::Prefix, Self::Classes, Self::Separators];
}

/// A part of a shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShapePart {
    Literal(String),
    Digits,
    Lower,
    Upper,
    Alphanumeric,
}

/// The shape of an identifier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StringShape(Vec<ShapePart>);

/// The most bytes of an identifier.
const MAX_BYTES: usize = 80;
/// The most letters of a run that are part of a shape.
const MAX_KEPT: usize = 12;
/// The most runs of an identifier.
const MAX_RUNS: usize = 12;

impl StringShape {
    /// Returns the shape of an identifier, and the length of each run whose characters it does not keep. Returns `None` for any other
    /// text: with white space or characters that are not ASCII, empty, or too long.
    pub(super) fn read(text: &str, level: ShapeLevel) -> Option<(Self, Vec<u64>)> {
        if text.is_empty() || text.len() > MAX_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let (mut parts, mut lengths) = (Vec::new(), Vec::new());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_run = first.is_ascii_alphanumeric();
            let end = rest.find(|c: char| c.is_ascii_alphanumeric() != is_run).unwrap_or(rest.len());
            let (run, after) = rest.split_at_checked(end)?;
            if !is_run {
                parts.push(ShapePart::Literal(run.to_owned()));
            } else {
                let kept = if level == ShapeLevel::Prefix { kept_letters(run, !after.is_empty()) } else { 0 };
                let (letters, variable) = run.split_at_checked(kept)?;
                parts.extend((!letters.is_empty()).then(|| ShapePart::Literal(letters.to_owned())));
                if !variable.is_empty() {
                    parts.push(class_of(variable, level));
                    lengths.push(variable.len() as u64);
                }
            }
            rest = after;
        }
        (parts.len() <= MAX_RUNS).then_some((Self(parts), lengths))
    }

    /// The regular expression of the whole string. `lengths` are the shortest and longest of each run.
    pub(super) fn pattern(&self, lengths: &[(u64, u64)]) -> String {
        let mut lengths = lengths.iter();
        let parts = self.0.iter().map(|part| {
            let class = match part {
                ShapePart::Literal(text) => return escape(text),
                ShapePart::Digits => "[0-9]",
                ShapePart::Lower => "[a-z]",
                ShapePart::Upper => "[A-Z]",
                ShapePart::Alphanumeric => "[A-Za-z0-9]",
            };
            match lengths.next() {
                Some((1, 1)) => class.to_owned(),
                Some((shortest, longest)) if shortest == longest => format!("{class}{{{longest}}}"),
                Some((shortest, longest)) => format!("{class}{{{shortest},{longest}}}"),
                None => class.to_owned(),
            }
        });
        format!("^{}$", parts.collect::<String>())
    }

    /// A string of this shape, of its shortest length.
    pub(super) fn example(&self, lengths: &[(u64, u64)]) -> String {
        let mut lengths = lengths.iter();
        let parts = self.0.iter().map(|part| {
            let letter = match part {
                ShapePart::Literal(text) => return text.clone(),
                ShapePart::Digits => "0",
                ShapePart::Lower | ShapePart::Alphanumeric => "a",
                ShapePart::Upper => "A",
            };
            let length = lengths.next().map_or(1, |(shortest, _)| *shortest);
            letter.repeat(usize::try_from(length).unwrap_or(1))
        });
        parts.collect()
    }

    /// The characters that the shape keeps.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            ShapePart::Literal(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

/// The number of letters at the beginning of a run that are part of the shape: those before digits alone, and a whole word before
/// something else.
fn kept_letters(run: &str, is_followed: bool) -> usize {
    let letters = run.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_number = run.bytes().skip(letters).all(|byte| byte.is_ascii_digit());
    let is_word = letters == run.len();
    if letters <= MAX_KEPT && (is_word && is_followed || !is_word && is_number) { letters } else { 0 }
}

fn class_of(run: &str, level: ShapeLevel) -> ShapePart {
    let all = |is: fn(&u8) -> bool| run.bytes().all(|byte| is(&byte));
    match level {
        ShapeLevel::Separators => ShapePart::Alphanumeric,
        _ if all(u8::is_ascii_digit) => ShapePart::Digits,
        _ if all(u8::is_ascii_lowercase) => ShapePart::Lower,
        _ if all(u8::is_ascii_uppercase) => ShapePart::Upper,
        _ => ShapePart::Alphanumeric,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, level: ShapeLevel) -> String {
        let (shape, lengths) = StringShape::read(text, level).unwrap();
        let lengths: Vec<_> = lengths.into_iter().map(|length| (length, length + 1)).collect();
        shape.pattern(&lengths)
    }

    #[test]
    fn shapes_keep_prefixes_classes_and_separators() {
        for (text, level, expected) in [
            ("ord_8f3a", ShapeLevel::Prefix, "^ord_[A-Za-z0-9]{4,5}$"),
            ("ord_8f3a", ShapeLevel::Classes, "^[a-z]{3,4}_[A-Za-z0-9]{4,5}$"),
            ("PRJ-12", ShapeLevel::Prefix, "^PRJ\\-[0-9]{2,3}$"),
            ("1a-22", ShapeLevel::Separators, "^[A-Za-z0-9]{2,3}\\-[A-Za-z0-9]{2,3}$"),
            ("abc", ShapeLevel::Prefix, "^[a-z]{3,4}$"),
            ("#W12", ShapeLevel::Prefix, "^\\#W[0-9]{2,3}$"),
            ("8f3a", ShapeLevel::Prefix, "^[A-Za-z0-9]{4,5}$"),
            ("a.b(", ShapeLevel::Prefix, "^a\\.b\\($"),
        ] {
            assert_eq!(pattern(text, level), expected);
        }
        for text in ["", "two words", "é", "line\n"] {
            assert_eq!(StringShape::read(text, ShapeLevel::Prefix), None, "{text:?}");
        }
    }
}
