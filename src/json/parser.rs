//! Parser: JSON text (RFC 8259) → lossless [`Value`]: numbers keep their text, members their order.
//!
//! No input key has a special meaning to the parser. It rejects what parsers interpret differently: duplicate keys, lone
//! surrogates, anything after the value.

use super::number_text::{self, ScannedNumber};
use super::parse_error::{ParseError, ParseErrorKind as Kind, line_and_column};
use super::value::Members;
use super::{MAX_DEPTH, Map, Number, Value};
use seen_names::SeenNames;

mod seen_names;
mod strings;
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
        if let Some((integer, length)) = number_text::short_integer(rest.as_bytes()) {
            self.offset += length;
            return Ok(Value::Number(integer.into()));
        }
        let scanned = ScannedNumber::read(rest).ok_or_else(|| self.error(Kind::InvalidNumber))?;
        let text = rest.get(..scanned.length).unwrap_or_default();
        // `01`, `1.5.2` and `1x` are invalid numbers, not numbers with trailing text.
        if number_text::continues_number(rest.as_bytes().get(scanned.length)) {
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
        let (mut members, mut seen) = (Members::with_capacity(USUAL_MEMBERS), SeenNames::default());
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error(Kind::Expected("a key in double quotes")));
            }
            let at = self.offset;
            let key = self.string()?;
            if seen.may_repeat(&key) && members.position(&key).is_some() {
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
}

#[cfg(test)]
mod tests;
