//! Strings of a JSON text: from the opening to the closing quote, with their escapes.

use std::borrow::Cow;

use super::{ErrorAtOffset, Failure, JsonParser, Kind, LoneSurrogates};

impl<'t> JsonParser<'t> {
    /// Reads a string, from its opening to its closing quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'t, str>, Failure> {
        self.offset += 1;
        let start = self.offset;
        self.offset += self.unescaped_len();
        // Most strings have no escapes.
        if self.consume(b'"') {
            return Ok(Cow::Borrowed(self.text.get(start..self.offset - 1).unwrap_or_default()));
        }
        self.escaped_string(start).map(Cow::Owned)
    }

    /// Reads the rest of a string, from the first character that may end it or be escaped.
    fn escaped_string(&mut self, mut start: usize) -> Result<String, Failure> {
        let mut read = String::new();
        loop {
            read.push_str(self.text.get(start..self.offset).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(read);
                }
                Some(b'\\') => read.push(self.escape()?),
                _ => return Err(self.error(Kind::ControlCharacter)),
            }
            start = self.offset;
            self.offset += self.unescaped_len();
        }
    }

    fn unescaped_len(&self) -> usize {
        unescaped_prefix_len(self.text.as_bytes().get(self.offset..).unwrap_or_default())
    }

    fn escape(&mut self) -> Result<char, Failure> {
        let invalid = |reader: &Self| reader.error(Kind::InvalidEscape);
        let escaped = match self.text.as_bytes().get(self.offset + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) => return Err(invalid(self)),
            None => {
                let offset = self.text.len();
                return Err(Box::new(ErrorAtOffset { kind: Kind::UnexpectedEnd, offset }));
            }
        };
        self.offset += 2;
        Ok(escaped)
    }

    fn unicode_escape(&mut self) -> Result<char, Failure> {
        let unit = self.code_unit(self.offset).ok_or_else(|| self.error(Kind::InvalidEscape))?;
        let second =
            self.code_unit(self.offset + UNICODE_ESCAPE).filter(|_| (0xd800..0xdc00).contains(&unit));
        if let Some(second @ 0xdc00..=0xdfff) = second {
            self.offset += 2 * UNICODE_ESCAPE;
            let code = 0x1_0000 + ((u32::from(unit) - 0xd800) << 10) + (u32::from(second) - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let read = match (char::from_u32(u32::from(unit)), self.surrogates) {
            (Some(read), _) => read,
            (None, LoneSurrogates::Replace) => char::REPLACEMENT_CHARACTER,
            (None, LoneSurrogates::Reject) => return Err(self.error(Kind::LoneSurrogate)),
        };
        self.offset += UNICODE_ESCAPE;
        Ok(read)
    }

    /// The UTF-16 code unit that is escaped at a position.
    fn code_unit(&self, at: usize) -> Option<u16> {
        let digits = self.text.get(at..at + UNICODE_ESCAPE)?.strip_prefix(r"\u")?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    }
}

/// The length of an escape with four hexadecimal digits.
const UNICODE_ESCAPE: usize = r"\uffff".len();

/// The number of leading bytes that need no escape in a string: up to a quote, a backslash or a control character.
fn unescaped_prefix_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // The high bit of each zero byte; the bytes after one may have it set, too.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut length = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = <[u8; 8]>::try_from(chunk).map_or(0, u64::from_le_bytes);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let found =
            control | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = bytes.get(length..).unwrap_or_default();
    length + rest.iter().take_while(|byte| **byte >= 0x20 && !b"\"\\".contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::unescaped_prefix_len;

    #[test]
    fn plain_bytes_stop_at_the_first_byte_that_needs_an_escape() {
        for length in 0..20 {
            for byte in 0..=255_u8 {
                let mut bytes = vec![b'a'; length];
                bytes.push(byte);
                bytes.extend([0x80, b'\\', 0xff, b'"', 0x1f, b'!', b'\\', 0, b'"', 0x80]);
                let expected = bytes.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\');
                assert_eq!(unescaped_prefix_len(&bytes), expected.unwrap(), "{bytes:?}");
            }
        }
    }
}
