//! Parser: JSON text (RFC 8259) → lossless [`Value`]: numbers keep their text, members their order.
//!
//! No input key has a special meaning to the parser. It rejects what parsers interpret differently: duplicate keys, lone
//! surrogates, anything after the value.

use std::borrow::Cow;

use super::number_text::ScannedNumber;
use super::parse_error::{ParseError, ParseErrorKind as Kind, line_and_column};
use super::value::Members;
use super::{MAX_DEPTH, Map, Number, Value};

pub(super) mod value_position;

/// The members that an object has room for at first. With fewer, most objects would be hashed again as they grow.
const USUAL_MEMBERS: usize = 4;

/// The handling of lone surrogates: escaped UTF-16 surrogates that are not part of a pair, such as `\ud83d` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoneSurrogates {
    /// A lone surrogate is an error.
    #[default]
    Reject,
    /// A lone surrogate is read as U+FFFD, the replacement character.
    Replace,
}

/// Parses one JSON value.
///
/// # Errors
///
/// Invalid JSON, a duplicate key, a lone surrogate, nesting deeper than [`MAX_DEPTH`], or text after the value; the error has line
/// and column.
pub fn parse(text: &str) -> Result<Value, ParseError> {
    parse_with_surrogates(text, LoneSurrogates::Reject)
}

/// Parses one JSON value from bytes.
///
/// # Errors
///
/// As [`parse`], or the bytes are not UTF-8.
pub fn parse_bytes(bytes: &[u8]) -> Result<Value, ParseError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let (line, column) = line_and_column(&String::from_utf8_lossy(valid), valid.len());
            Err(ParseError { kind: Kind::InvalidUtf8, line, column })
        }
    }
}

/// Parses one JSON value with an option for lone surrogates.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_with_surrogates(text: &str, surrogates: LoneSurrogates) -> Result<Value, ParseError> {
    JsonParser { text, offset: 0, surrogates }.document(JsonParser::value)
}

/// Parses one JSON value as [`parse`] does, but of an object only the members whose names pass a test: the others are null.
///
/// # Errors
///
/// As [`parse`], also for the values of the other members.
pub(crate) fn parse_members(text: &str, is_kept: impl Fn(&str) -> bool) -> Result<Value, ParseError> {
    let mut parser = JsonParser { text, offset: 0, surrogates: LoneSurrogates::Reject };
    parser.document(|parser, depth| {
        if parser.peek() != Some(b'{') {
            return parser.value(depth);
        }
        let members = parser.members(depth, |parser, name, depth| match is_kept(name) {
            true => parser.value(depth),
            false => parser.skip(depth).map(|()| Value::Null),
        })?;
        Ok(Value::Object(members.map_or_else(Map::new, Map::from_members)))
    })
}

impl std::str::FromStr for Value {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text)
    }
}

struct JsonParser<'t> {
    text: &'t str,
    /// Always on a character boundary.
    offset: usize,
    surrogates: LoneSurrogates,
}

/// A parse error and its byte offset.
struct ErrorAtOffset {
    kind: Kind,
    offset: usize,
}

/// Boxed, so that what every value is returned in is not larger for it.
type Failure = Box<ErrorAtOffset>;

impl<'t> JsonParser<'t> {
    /// Reads the whole text, its value with a function.
    fn document(
        &mut self,
        value: impl FnOnce(&mut Self, usize) -> Result<Value, Failure>,
    ) -> Result<Value, ParseError> {
        let read = self.whole_text(value);
        read.map_err(|failure| {
            let (line, column) = line_and_column(self.text, failure.offset);
            ParseError { kind: failure.kind, line, column }
        })
    }

    fn whole_text(
        &mut self,
        value: impl FnOnce(&mut Self, usize) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        self.skip_space();
        let value = value(self, MAX_DEPTH)?;
        self.skip_space();
        if self.offset < self.text.len() {
            return Err(self.error(Kind::TrailingText));
        }
        Ok(value)
    }

    #[cold]
    fn error(&self, kind: Kind) -> Failure {
        let ended = self.offset >= self.text.len();
        Box::new(ErrorAtOffset { kind: if ended { Kind::UnexpectedEnd } else { kind }, offset: self.offset })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.offset += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Failure> {
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?.into_owned())),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            _ => Err(self.error(Kind::Expected("a value"))),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, Failure> {
        if self.text.get(self.offset..).is_some_and(|rest| rest.starts_with(word)) {
            self.offset += word.len();
            return Ok(value);
        }
        Err(self.error(Kind::Expected("a value")))
    }

    fn number(&mut self) -> Result<Value, Failure> {
        let rest = self.text.get(self.offset..).unwrap_or_default();
        if let Some((integer, length)) = short_integer(rest.as_bytes()) {
            self.offset += length;
            return Ok(Value::Number(integer.into()));
        }
        let scanned = ScannedNumber::read(rest).ok_or_else(|| self.error(Kind::InvalidNumber))?;
        let text = rest.get(..scanned.length).unwrap_or_default();
        // `01`, `1.5.2` and `1x` are invalid numbers, not numbers with trailing text.
        if continues_number(rest.as_bytes().get(scanned.length)) {
            return Err(self.error(Kind::InvalidNumber));
        }
        self.offset += scanned.length;
        Ok(Value::Number(Number::from_scanned(text, &scanned)))
    }

    fn array(&mut self, depth: usize) -> Result<Value, Failure> {
        let mut items = Vec::new();
        self.items(depth, |parser, depth| {
            items.push(parser.value(depth)?);
            Ok(())
        })?;
        Ok(Value::Array(items))
    }

    /// Reads an array, each item with a function.
    fn items(
        &mut self,
        depth: usize,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let depth = self.enter(depth)?;
        if self.consume(b']') {
            return Ok(());
        }
        loop {
            item(self, depth)?;
            self.skip_space();
            if self.consume(b']') {
                return Ok(());
            }
            self.expect(b',', "`,` or `]`")?;
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Failure> {
        let members = self.members(depth, |parser, _, depth| parser.value(depth))?;
        Ok(Value::Object(members.map_or_else(Map::new, Map::from_members)))
    }

    /// Reads an object, the value of each key with a function. Returns `None` if it has no members.
    fn members(
        &mut self,
        depth: usize,
        mut value: impl FnMut(&mut Self, &str, usize) -> Result<Value, Failure>,
    ) -> Result<Option<Members>, Failure> {
        let depth = self.enter(depth)?;
        if self.consume(b'}') {
            return Ok(None);
        }
        let mut members = Members::with_capacity(USUAL_MEMBERS);
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error(Kind::Expected("a key in double quotes")));
            }
            let at = self.offset;
            let key = self.string()?;
            if members.position(&key).is_some() {
                return Err(Box::new(ErrorAtOffset {
                    kind: Kind::DuplicateKey(key.into_owned()),
                    offset: at,
                }));
            }
            self.skip_space();
            self.expect(b':', "`:`")?;
            self.skip_space();
            let value = value(self, &key, depth)?;
            members.push(key.into(), value);
            self.skip_space();
            if self.consume(b'}') {
                return Ok(Some(members));
            }
            self.expect(b',', "`,` or `}`")?;
            self.skip_space();
        }
    }

    /// Reads a value that is not kept, and rejects what [`value`](Self::value) rejects.
    fn skip(&mut self, depth: usize) -> Result<(), Failure> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'[') => self.items(depth, Self::skip),
            Some(b'{') => {
                let skip = |parser: &mut Self, _: &str, depth| parser.skip(depth).map(|()| Value::Null);
                self.members(depth, skip).map(drop)
            }
            _ => self.value(depth).map(drop),
        }
    }

    /// Reads the bracket that opens an array or an object, and the space after it.
    fn enter(&mut self, depth: usize) -> Result<usize, Failure> {
        let depth = depth.checked_sub(1).ok_or_else(|| self.error(Kind::TooDeep))?;
        self.offset += 1;
        self.skip_space();
        Ok(depth)
    }

    fn consume(&mut self, byte: u8) -> bool {
        let matches = self.peek() == Some(byte);
        self.offset += usize::from(matches);
        matches
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Failure> {
        if self.consume(byte) { Ok(()) } else { Err(self.error(Kind::Expected(expected))) }
    }

    /// Reads a string, from its opening to its closing quote.
    #[inline]
    fn string(&mut self) -> Result<Cow<'t, str>, Failure> {
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

/// A whole number of few digits at the beginning of a text, and its length. Returns `None` for any other text.
fn short_integer(text: &[u8]) -> Option<(i64, usize)> {
    const MAX_DIGITS: usize = 18;
    let (first, _) = text.split_first().filter(|(first, _)| matches!(first, b'1'..=b'9'))?;
    let (mut integer, mut length) = (i64::from(first - b'0'), 1);
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        if length == MAX_DIGITS {
            return None;
        }
        integer = integer * 10 + i64::from(digit - b'0');
        length += 1;
    }
    (!continues_number(text.get(length))).then_some((integer, length))
}

/// Whether a byte after a number would be read as part of it.
fn continues_number(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b".+-_".contains(byte))
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
mod tests;
