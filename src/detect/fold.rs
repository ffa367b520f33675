//! Text as a reader would see it: invisible characters dropped, look-alikes and escapes resolved, with the way back.

use std::borrow::Cow;
use std::ops::Range;

/// A text folded for matching, and the map from its offsets to those of the original.
pub(super) struct Folded<'a> {
    text: Cow<'a, str>,
    /// In ascending order; empty where the text is the original itself.
    steps: Vec<Step>,
}

/// From here on, one folded byte stands for one original byte (`width` 1), or exactly one folded byte stands for
/// `width` original bytes.
struct Step {
    folded: usize,
    original: usize,
    width: usize,
}

/// What becomes of one character, or of one escape.
enum Fold {
    Keep,
    Drop,
    Become(char),
}

impl<'a> Folded<'a> {
    /// Folds a text: full-width and other digits, dashes and spaces become ASCII; zero-width and bidi characters go;
    /// `%40`, `\u0040`, `\n` and `&#64;` become what they stand for. Linear in the text.
    pub(super) fn new(original: &'a str) -> Self {
        if original.is_ascii() && !original.contains(['%', '\\', '&']) {
            return Self { text: Cow::Borrowed(original), steps: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut steps = Vec::new();
        let mut at = 0;
        let mut running = false;
        while let Some((rest, first)) = original.get(at..).and_then(|rest| Some((rest, rest.chars().next()?)))
        {
            let (fold, width) = escape(rest).unwrap_or_else(|| (character(first), first.len_utf8()));
            match fold {
                Fold::Keep => {
                    if !running {
                        steps.push(Step { folded: text.len(), original: at, width: 1 });
                    }
                    text.push(first);
                }
                Fold::Drop => {}
                Fold::Become(replacement) => {
                    steps.push(Step { folded: text.len(), original: at, width });
                    text.push(replacement);
                }
            }
            running = matches!(fold, Fold::Keep);
            at += width;
        }
        Self { text: Cow::Owned(text), steps }
    }

    /// The folded text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether folding changed nothing.
    pub(super) fn is_original(&self) -> bool {
        self.steps.is_empty()
    }

    /// The original bytes that a non-empty range of the folded text stands for.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let last = range.end.saturating_sub(1);
        match (self.step(range.start), self.step(last)) {
            (Some(first), Some(end)) => {
                first.original + (range.start - first.folded)..end.original + (last - end.folded) + end.width
            }
            _ => range.clone(),
        }
    }

    /// The place in the folded text that a place of the original has become, or the next one that is left.
    pub(super) fn folded(&self, original: usize) -> usize {
        let after = self.steps.partition_point(|step| step.original <= original);
        let limit = self.steps.get(after).map_or(self.text.len(), |next| next.folded);
        let step = after.checked_sub(1).and_then(|index| self.steps.get(index));
        match step {
            _ if self.is_original() => original,
            Some(step) if original == step.original => step.folded,
            Some(step) if step.width == 1 => (step.folded + original - step.original).min(limit),
            _ => limit,
        }
    }

    fn step(&self, folded: usize) -> Option<&Step> {
        let after = self.steps.partition_point(|step| step.folded <= folded);
        self.steps.get(after.checked_sub(1)?)
    }
}

/// The escape at the start of a text: what it stands for and how many bytes it takes.
fn escape(rest: &str) -> Option<(Fold, usize)> {
    let (code, width) = match rest.as_bytes() {
        [b'%', high, low, ..] => (hex(&[*high, *low])?, 3),
        // The backslash of `\\n` escapes a backslash, not the letter.
        [b'\\', b'\\', ..] => return Some((Fold::Become('\\'), 2)),
        [b'\\', b'n' | b'r' | b't', ..] => return Some((Fold::Become('\n'), 2)),
        [b'\\', quote @ (b'"' | b'\'' | b'/'), ..] => {
            return Some((Fold::Become(char::from(*quote)), 2));
        }
        [b'\\', b'u', a, b, c, d, ..] => (hex(&[*a, *b, *c, *d])?, 6),
        [b'\\', b'x', high, low, ..] => (hex(&[*high, *low])?, 4),
        [b'&', ..] => entity(rest)?,
        _ => return None,
    };
    let stands_for = char::from_u32(code)?;
    // In a URL these delimit only where they are not escaped: `user:p%2Fw@host` has one authority.
    if rest.starts_with('%') && matches!(stands_for, '/' | '?' | '#' | '%') {
        return None;
    }
    match character(stands_for) {
        Fold::Keep if matches!(stands_for, '\n' | '\r' | '\t' | ' '..='~') => {
            Some((Fold::Become(stands_for), width))
        }
        // Above 0x7F a percent-escape is one byte of UTF-8, not a character.
        Fold::Keep => None,
        _ if rest.starts_with('%') => None,
        fold => Some((fold, width)),
    }
}

fn entity(rest: &str) -> Option<(u32, usize)> {
    let end = rest.bytes().take(10).position(|byte| byte == b';')?;
    let code = match rest.get(1..end)? {
        "amp" => 0x26,
        "quot" => 0x22,
        "nbsp" => 0x20,
        "commat" => 0x40,
        "shy" => 0xAD,
        name => match name.strip_prefix('#')? {
            digits if digits.starts_with(['x', 'X']) => u32::from_str_radix(digits.get(1..)?, 16).ok()?,
            digits => digits.parse().ok()?,
        },
    };
    Some((code, end + 1))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

/// Whether a character stands for itself.
pub(super) fn stands_for_itself(c: char) -> bool {
    matches!(character(c), Fold::Keep)
}

fn character(c: char) -> Fold {
    match c {
        '\0'..='\u{7f}' => Fold::Keep,
        // Soft hyphen, joiners, fillers, bidi marks, variation selectors, tags: nothing to be seen.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' => {
            Fold::Drop
        }
        '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => {
            Fold::Drop
        }
        '\u{e0000}'..='\u{e01ef}' => Fold::Drop,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Fold::Become(' ')
        }
        '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => Fold::Become('-'),
        '\u{2024}' | '\u{fe52}' | '\u{ff61}' | '\u{3002}' => Fold::Become('.'),
        '\u{fe6b}' => Fold::Become('@'),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).map_or(Fold::Keep, Fold::Become),
        _ => digit(c).map_or(Fold::Keep, Fold::Become),
    }
}

/// The zeros of the decimal digits of other scripts; one to nine follow each.
const ZEROS: [u32; 22] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20,
    0x1040, 0x17e0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6,
];

fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let zero = ZEROS.iter().rfind(|zero| **zero <= code)?;
    char::from_digit(code - zero, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_what_a_reader_would_not_tell_apart() {
        for (original, folded) in [
            ("plain", "plain"),
            ("ana%40example.com", "ana@example.com"),
            (r"ana\u0040example.com\nnext", "ana@example.com\nnext"),
            ("ana&#64;example&#x2e;com", "ana@example.com"),
            ("４１１１\u{a0}1\u{200b}1", "4111 11"),
            ("٤١١١", "4111"),
            ("a\u{2011}b\u{ad}c", "a-bc"),
            ("u:p%2Fw", "u:p%2Fw"),
            ("100%", "100%"),
            (r"\\n", r"\n"),
            ("é%C3%A9", "é%C3%A9"),
        ] {
            assert_eq!(Folded::new(original).text(), folded, "{original}");
        }
    }

    #[test]
    fn finds_the_way_back() {
        let original = "é ４１\u{200b}１%40x\u{200b} end";
        let folded = Folded::new(original);
        let start = folded.text().find("411@x").unwrap();
        assert_eq!(original.get(folded.original(&(start..start + 5))), Some("４１\u{200b}１%40x"));
        let end = folded.text().find("end").unwrap();
        assert_eq!(original.get(folded.original(&(end..end + 3))), Some("end"));
    }
}
