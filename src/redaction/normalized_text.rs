//! Text normalization for detectors: drops invisible characters, resolves escapes and variants of ASCII characters, and maps
//! offsets back to the original.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use crate::unicode;

/// Normalized text, and the map from its offsets to those of the original.
pub(super) struct NormalizedText<'a> {
    text: Cow<'a, str>,
    /// In ascending order; empty if the text equals the original.
    mappings: Vec<OffsetMapping>,
    /// Whether the original has invisible characters.
    has_invisible: bool,
}

/// From this offset on, one normalized byte maps to one original byte (`width` 1), or exactly one normalized byte maps to
/// `width` original bytes.
struct OffsetMapping {
    folded: usize,
    original: usize,
    width: usize,
}

/// The replacement of one character or escape.
#[derive(Clone, Copy)]
enum CharMapping {
    Keep,
    Drop,
    /// An invisible character: dropped, or replaced by a space.
    Invisible,
    Replace(char),
}

impl<'a> NormalizedText<'a> {
    /// Normalizes a text: decimal digits of all scripts, compatibility forms, dashes and spaces become ASCII; invisible characters,
    /// control characters, terminal escapes and script-independent combining marks are dropped; the escapes `%40`, `\u0040`, `\n` and
    /// `&#64;` are decoded. Linear time.
    pub(super) fn new(original: &'a str) -> Self {
        Self::with_invisible_as(CharMapping::Drop, original)
    }

    /// Returns all normalizations of a text. An invisible character may split one word in two, or may join two words that look
    /// separate. Both cases look the same, so detectors run on both readings.
    pub(super) fn readings(original: &'a str) -> impl Iterator<Item = Self> {
        let joined = Self::new(original);
        let spaced =
            joined.has_invisible.then(|| Self::with_invisible_as(CharMapping::Replace(' '), original));
        iter::once(joined).chain(spaced)
    }

    fn with_invisible_as(invisible: CharMapping, original: &'a str) -> Self {
        if original.bytes().all(is_unchanged_ascii) {
            return Self { text: Cow::Borrowed(original), mappings: Vec::new(), has_invisible: false };
        }
        let mut text = String::with_capacity(original.len());
        let mut steps = Vec::new();
        let mut at = 0;
        let mut running = false;
        let mut has_invisible = false;
        while let Some((rest, first)) = original.get(at..).and_then(|rest| Some((rest, rest.chars().next()?)))
        {
            let (mut fold, width) = read_unit(rest, first);
            if matches!(fold, CharMapping::Invisible) {
                has_invisible = true;
                fold = invisible;
            }
            match fold {
                CharMapping::Keep => {
                    if !running {
                        steps.push(OffsetMapping { folded: text.len(), original: at, width: 1 });
                    }
                    text.push(first);
                }
                CharMapping::Drop | CharMapping::Invisible => {}
                CharMapping::Replace(replacement) => {
                    steps.push(OffsetMapping { folded: text.len(), original: at, width });
                    text.push(replacement);
                }
            }
            running = matches!(fold, CharMapping::Keep);
            at += width;
        }
        Self { text: Cow::Owned(text), mappings: steps, has_invisible }
    }

    /// The normalized text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether normalization changed nothing.
    pub(super) fn is_original(&self) -> bool {
        self.mappings.is_empty()
    }

    /// Returns the original byte range of a non-empty range of the normalized text.
    pub(super) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        let last = range.end.saturating_sub(1);
        match (self.mapping_at(range.start), self.mapping_at(last)) {
            (Some(first), Some(end)) => {
                first.original + (range.start - first.folded)..end.original + (last - end.folded) + end.width
            }
            _ => range.clone(),
        }
    }

    /// Returns the normalized offset of an original offset, or of the next character that is not dropped.
    pub(super) fn normalized_offset(&self, original: usize) -> usize {
        let after = self.mappings.partition_point(|step| step.original <= original);
        let limit = self.mappings.get(after).map_or(self.text.len(), |next| next.folded);
        let step = after.checked_sub(1).and_then(|index| self.mappings.get(index));
        match step {
            _ if self.is_original() => original,
            Some(step) if original == step.original => step.folded,
            Some(step) if step.width == 1 => (step.folded + original - step.original).min(limit),
            _ => limit,
        }
    }

    fn mapping_at(&self, folded: usize) -> Option<&OffsetMapping> {
        let after = self.mappings.partition_point(|step| step.folded <= folded);
        self.mappings.get(after.checked_sub(1)?)
    }
}

/// ASCII bytes that never need normalization.
fn is_unchanged_ascii(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') && !matches!(byte, b'%' | b'\\' | b'&')
}

/// Reads the escape or character at the start of `rest`, whose first character is `first`: its replacement and its length in bytes.
fn read_unit(rest: &str, first: char) -> (CharMapping, usize) {
    let plain = (map_character(first), first.len_utf8());
    let (fold, width, is_escape_character) = match parse_escape(rest) {
        Some((stands_for, width)) => match map_escape(rest, stands_for) {
            Some(fold) => (fold, width, stands_for == ESCAPE),
            None => return plain,
        },
        None => (plain.0, plain.1, first == ESCAPE),
    };
    let sequence = if is_escape_character { control_sequence_length(rest.get(width..)) } else { 0 };
    (fold, width + sequence)
}

const ESCAPE: char = '\u{1b}';

/// The maximum length of a terminal control sequence, in bytes.
const MAX_SEQUENCE: usize = 24;

/// The length in bytes of the control sequence after the escape character (`[1;31m`); a terminal does not display it.
fn control_sequence_length(rest: Option<&str>) -> usize {
    let Some(parameters) = rest.and_then(|rest| rest.strip_prefix('[')) else { return 0 };
    let mut bytes = parameters.bytes().take(MAX_SEQUENCE);
    match bytes.position(|byte| !matches!(byte, b'!'..=b'?')) {
        Some(end) if parameters.as_bytes().get(end).is_some_and(|last| matches!(last, b'@'..=b'~')) => {
            end + 2
        }
        _ => 0,
    }
}

/// Returns the replacement of an escape for this character. Returns `None` if the escape stays as written.
fn map_escape(rest: &str, stands_for: char) -> Option<CharMapping> {
    let fold = match map_character(stands_for) {
        CharMapping::Keep if stands_for.is_ascii() => CharMapping::Replace(stands_for),
        CharMapping::Keep => return None,
        fold => fold,
    };
    // In a URL these characters are delimiters only if they are not escaped: `user:p%2Fw@host` has one authority.
    let delimits = matches!(fold, CharMapping::Replace('/' | '?' | '#' | '%'));
    (!(rest.starts_with('%') && delimits)).then_some(fold)
}

/// Reads the escape at the start of a text: its character and its length in bytes.
fn parse_escape(rest: &str) -> Option<(char, usize)> {
    let (code, width) = match rest.as_bytes() {
        [b'%', ..] => return parse_percent(rest.as_bytes()),
        // The backslash of `\\n` escapes a backslash, not the letter.
        [b'\\', b'\\', ..] => (0x5c, 2),
        [b'\\', b'n' | b'r' | b't', ..] => (0x0a, 2),
        [b'\\', b'b' | b'f', ..] => (0x08, 2),
        [b'\\', quote @ (b'"' | b'\'' | b'/'), ..] => (u32::from(*quote), 2),
        [b'\\', b'u', b'{', ..] => {
            let end = rest.bytes().take(12).position(|byte| byte == b'}')?;
            (parse_hex(rest.as_bytes().get(3..end)?)?, end + 1)
        }
        [b'\\', b'u', a, b, c, d, more @ ..] => match (parse_hex(&[*a, *b, *c, *d])?, more) {
            (high @ 0xd800..=0xdbff, [b'\\', b'u', a, b, c, d, ..]) => {
                let low = parse_hex(&[*a, *b, *c, *d])?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                (0x10000 + ((high - 0xd800) << 10) + low, 12)
            }
            (code, _) => (code, 6),
        },
        [b'\\', b'U', a, b, c, d, e, f, g, h, ..] => (parse_hex(&[*a, *b, *c, *d, *e, *f, *g, *h])?, 10),
        [b'\\', b'x', high, low, ..] => (parse_hex(&[*high, *low])?, 4),
        [b'&', ..] => parse_entity(rest)?,
        _ => return None,
    };
    Some((char::from_u32(code)?, width))
}

/// Reads a percent-encoded character with all bytes of its UTF-8 sequence.
fn parse_percent(rest: &[u8]) -> Option<(char, usize)> {
    let mut bytes = rest.chunks_exact(3).map_while(|chunk| match chunk {
        [b'%', high, low] => u8::try_from(parse_hex(&[*high, *low])?).ok(),
        _ => None,
    });
    let first = bytes.next()?;
    let length = match first {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let encoded: Vec<u8> = iter::once(first).chain(bytes.take(length - 1)).collect();
    Some((std::str::from_utf8(&encoded).ok()?.chars().next()?, 3 * length))
}

fn parse_entity(rest: &str) -> Option<(u32, usize)> {
    let end = rest.bytes().take(20).position(|byte| byte == b';')?;
    let code = match rest.get(1..end)? {
        "amp" => 0x26,
        "quot" => 0x22,
        "nbsp" | "ensp" | "emsp" | "thinsp" => 0x20,
        "commat" => 0x40,
        "period" => 0x2e,
        "shy" => 0xad,
        "ZeroWidthSpace" | "zwnj" | "zwj" | "lrm" | "rlm" | "NoBreak" => 0x200b,
        name => match name.strip_prefix('#')? {
            digits if digits.starts_with(['x', 'X']) => u32::from_str_radix(digits.get(1..)?, 16).ok()?,
            digits => digits.parse().ok()?,
        },
    };
    Some((code, end + 1))
}

fn parse_hex(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0u32, |code, digit| Some((code.checked_mul(16)?) + char::from(*digit).to_digit(16)?))
}

/// Whether normalization keeps a character.
pub(super) fn is_unchanged(c: char) -> bool {
    matches!(map_character(c), CharMapping::Keep)
}

fn map_character(c: char) -> CharMapping {
    match c {
        '\t' | '\n' | '\r' | ' '..='~' => CharMapping::Keep,
        _ if c.is_control() || unicode::is_invisible(c) => CharMapping::Invisible,
        _ if unicode::is_shared_mark(c) => CharMapping::Drop,
        _ => unicode::ascii_form(c).map_or(CharMapping::Keep, CharMapping::Replace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_indistinguishable_characters() {
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
            ("4\u{17b4}1\u{2028}1\0\u{7}1\u{e01f0}", "4111"),
            ("4\u{fe0f}\u{20e3}1\u{332}1\u{332}", "411"),
            ("4\u{1b}[1;31m1\u{1b}[0m1\\u001b[m1", "4111"),
            ("4\u{1b}[é \u{1b}[12", "4[é [12"),
            (r"ana\u{200b}@\udb40\uddf0example\U000e0041.com\b\f", "ana@example.com"),
            ("ana%E2%80%8B%EF%BC%A0example.com%00%E2%80", "ana@example.com%E2%80"),
            ("4&#x0000200B;1&zwnj;1&shy;1", "4111"),
            ("ju\u{308}rgen ⓐⓝⓐ", "jurgen ana"),
        ] {
            assert_eq!(NormalizedText::new(original).text(), folded, "{original}");
        }
    }

    #[test]
    fn reads_invisible_characters_as_nothing_and_as_a_space() {
        let read = |text| -> Vec<String> {
            NormalizedText::readings(text).map(|one| one.text().to_owned()).collect()
        };
        assert_eq!(read("plain"), ["plain"]);
        assert_eq!(read("a\u{301}%40"), ["a@"]);
        assert_eq!(read("9\u{200b}4\x0b1"), ["941", "9 4 1"]);
    }

    #[test]
    fn maps_ranges_back_to_the_original() {
        let original = "é ４１\u{200b}１%40x\u{200b} end";
        let folded = NormalizedText::new(original);
        let start = folded.text().find("411@x").unwrap();
        assert_eq!(original.get(folded.original_range(&(start..start + 5))), Some("４１\u{200b}１%40x"));
        let end = folded.text().find("end").unwrap();
        assert_eq!(original.get(folded.original_range(&(end..end + 3))), Some("end"));
    }
}
