//! Text of a number: scanned once during parsing, written without allocating.

use std::fmt;
use std::ops::Deref;

use super::exponent::Exponent;

/// The parts of a JSON number at the beginning of a text.
pub(super) struct ScannedNumber<'t> {
    pub(super) negative: bool,
    whole: &'t str,
    fraction: &'t str,
    exponent: Option<&'t str>,
    /// The length of the number, in bytes.
    pub(super) length: usize,
}

/// The maximum number of digits of a plain coefficient with a scale.
const MAX_PLAIN_DIGITS: usize = 18;

impl<'t> ScannedNumber<'t> {
    /// Scans the number at the beginning of a text. Returns `None` if there is none, or a digit is missing or misplaced in it.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let negative = text.starts_with('-');
        let mut rest = NumberScanner { text, at: usize::from(negative) };
        let whole = rest.digits();
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let mut fraction = "";
        if rest.consume_any(b".") {
            fraction = rest.digits();
            if fraction.is_empty() {
                return None;
            }
        }
        let mut exponent = None;
        if rest.consume_any(b"eE") {
            let start = rest.at;
            rest.consume_any(b"+-");
            if rest.digits().is_empty() {
                return None;
            }
            exponent = text.get(start..rest.at);
        }
        Some(Self { negative, whole, fraction, exponent, length: rest.at })
    }

    /// Coefficient and scale of a number. Returns `None` if it does not fit these, or has another notation.
    pub(super) fn plain(&self) -> Option<(i64, u8)> {
        if self.exponent.is_some() {
            return None;
        }
        let scale = self.fraction.len();
        let coefficient = if scale == 0 && self.whole.len() > MAX_PLAIN_DIGITS {
            // Negated first: the smallest integer has no positive counterpart.
            let digit = |byte: u8| i64::from(byte.wrapping_sub(b'0'));
            let negative = self
                .whole
                .bytes()
                .try_fold(0_i64, |sum, byte| sum.checked_mul(10)?.checked_sub(digit(byte)))?;
            if self.negative { Some(negative) } else { negative.checked_neg() }?
        } else if self.whole.len() + scale <= MAX_PLAIN_DIGITS {
            let digits = self.whole.bytes().chain(self.fraction.bytes());
            let magnitude = digits.fold(0_i64, |sum, byte| sum * 10 + i64::from(byte.wrapping_sub(b'0')));
            if self.negative { -magnitude } else { magnitude }
        } else {
            return None;
        };
        if coefficient == 0 && self.negative {
            return None;
        }
        Some((coefficient, u8::try_from(scale).ok()?))
    }

    /// The significant digits, without leading and trailing zeros.
    pub(super) fn digits(&self) -> String {
        let mut digits = String::with_capacity(self.whole.len() + self.fraction.len());
        digits.push_str(self.whole);
        digits.push_str(self.fraction);
        digits.truncate(digits.trim_end_matches('0').len());
        let leading = digits.len() - digits.trim_start_matches('0').len();
        digits.drain(..leading);
        digits
    }

    /// The power of ten of the significant digits in the form `0.digits × 10^magnitude`.
    pub(super) fn magnitude(&self) -> Exponent {
        let whole = self.whole.trim_start_matches('0');
        let significant = self.fraction.trim_start_matches('0');
        let shift = match (whole.is_empty(), significant.is_empty()) {
            (true, true) => return Exponent::ZERO,
            (true, false) => -((self.fraction.len() - significant.len()) as i64),
            (false, _) => whole.len() as i64,
        };
        Exponent::parse(self.exponent.unwrap_or("0"), shift)
    }
}

/// A whole number of few digits at the beginning of a text, and its length. Returns `None` for any other text.
pub(super) fn short_integer(text: &[u8]) -> Option<(i64, usize)> {
    let (first, _) = text.split_first().filter(|(first, _)| matches!(first, b'1'..=b'9'))?;
    let (mut integer, mut length) = (i64::from(first - b'0'), 1);
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        if length == MAX_PLAIN_DIGITS {
            return None;
        }
        integer = integer * 10 + i64::from(digit - b'0');
        length += 1;
    }
    (!continues_number(text.get(length))).then_some((integer, length))
}

/// Whether a byte after a number would be read as part of it.
pub(super) fn continues_number(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b".+-_".contains(byte))
}

struct NumberScanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> NumberScanner<'t> {
    fn digits(&mut self) -> &'t str {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn consume_any(&mut self, any_of: &[u8]) -> bool {
        let matches = self.text.as_bytes().get(self.at).is_some_and(|byte| any_of.contains(byte));
        self.at += usize::from(matches);
        matches
    }
}

/// The text of a [`Number`](super::Number). Dereferences to `str`.
#[derive(Clone)]
pub struct NumberText<'a>(NumberTextRepr<'a>);

#[derive(Clone)]
enum NumberTextRepr<'a> {
    Borrowed(&'a str),
    Buffered(DigitBuffer),
}

impl<'a> NumberText<'a> {
    pub(super) fn from_str(text: &'a str) -> Self {
        Self(NumberTextRepr::Borrowed(text))
    }

    pub(super) fn from_plain(coefficient: i64, scale: u8) -> Self {
        let mut digits = DigitBuffer::default();
        let mut rest = coefficient.unsigned_abs();
        let mut written = 0;
        // At least one digit comes before the point.
        while rest > 0 || written <= u32::from(scale) {
            if written > 0 && written == u32::from(scale) {
                digits.push_front(b'.');
            }
            digits.push_front(b'0' + (rest % 10) as u8);
            rest /= 10;
            written += 1;
        }
        if coefficient < 0 {
            digits.push_front(b'-');
        }
        Self(NumberTextRepr::Buffered(digits))
    }
}

impl Deref for NumberText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            NumberTextRepr::Borrowed(text) => text,
            NumberTextRepr::Buffered(digits) => digits.as_str(),
        }
    }
}

impl fmt::Display for NumberText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for NumberText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// A stack buffer for ASCII text, filled from its end.
#[derive(Clone)]
pub(super) struct DigitBuffer {
    /// Large enough for a sign, nineteen digits and a point.
    bytes: [u8; 24],
    start: u8,
}

impl Default for DigitBuffer {
    fn default() -> Self {
        Self { bytes: [0; 24], start: 24 }
    }
}

impl DigitBuffer {
    pub(super) fn push_front(&mut self, byte: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(slot) = self.bytes.get_mut(usize::from(self.start)) {
            *slot = byte;
        }
    }

    pub(super) fn as_str(&self) -> &str {
        let written = self.bytes.get(usize::from(self.start)..).unwrap_or_default();
        std::str::from_utf8(written).unwrap_or_default()
    }
}
