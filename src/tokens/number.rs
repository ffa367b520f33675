//! Numbers in a text.

use std::ops::Range;

use smallvec::SmallVec;

use super::boundary::{ascii_look, char_at, char_before, chars_at, chars_before, is_group_space, is_hidden};
use super::currency::CurrencyMark;
use super::number_reading::{NumberReadings, is_grouped};
use super::token_kind::DecimalMark;
use crate::json::Number;
use crate::unicode::{is_punctuation, is_word_char};

/// A number of a text, with its location and all its readings.
#[derive(Clone, Debug)]
pub(super) struct NumberToken {
    /// Includes the sign, and a currency that touches the digits.
    pub(super) range: Range<usize>,
    /// The currency that touches the digits.
    pub(super) currency: Option<String>,
    readings: NumberReadings,
}

impl NumberToken {
    /// The value. Returns `None` if there are two readings.
    pub(super) fn single_reading(&self) -> Option<&Number> {
        self.readings.single()
    }

    /// The values of all readings, and whether they are one value.
    pub(super) fn into_values(self) -> (SmallVec<[Number; 1]>, bool) {
        self.readings.into_values()
    }
}

/// Returns the numbers of a composed text. A number is not part of a word, date, time, version, range or percentage.
pub(super) fn find(text: &str, decimal: Option<DecimalMark>) -> Vec<NumberToken> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(|c: char| c.is_ascii_digit())) {
        let groups = spaced_groups(text, at + offset);
        at = groups.last().map_or(text.len(), |group| group.end);
        let whole = groups.first().map_or(at, |group| group.start)..at;
        if groups.len() > 1 && text.get(whole.clone()).is_some_and(is_grouped) {
            tokens.extend(read(text, whole, decimal));
        } else {
            tokens.extend(groups.into_iter().filter_map(|group| read(text, group, decimal)));
        }
    }
    tokens
}

/// Returns the runs of digits and separators from an offset on that single spaces separate.
fn spaced_groups(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut next = Some(start);
    while let Some(start) = next {
        let rest = text.get(start..).unwrap_or_default();
        let run = rest.len() - rest.trim_start_matches(is_number_char).len();
        let end = start + rest.get(..run).unwrap_or_default().trim_end_matches(is_separator).len();
        groups.push(start..end);
        let space = char_at(text, end).filter(|c| is_group_space(*c));
        next = space
            .map(|space| end + space.len_utf8())
            .filter(|start| char_at(text, *start).is_some_and(|c| c.is_ascii_digit()));
    }
    groups
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | ',' | '\'' | '’')
}

fn is_number_char(c: char) -> bool {
    c.is_ascii_digit() || is_separator(c)
}

/// Reads the number with digits and separators in a range. Returns `None` if it is part of something else.
fn read(text: &str, digits: Range<usize>, decimal: Option<DecimalMark>) -> Option<NumberToken> {
    let Range { mut start, mut end } = digits;
    let prefix = CurrencyMark::ending_at(text, start);
    if let Some(mark) = &prefix {
        start = mark.start;
    }
    let suffix = CurrencyMark::starting_at(text, end);
    if let Some(mark) = &suffix {
        end = mark.end;
    }
    let mut is_negative = false;
    if let Some(sign) = char_before(text, start).filter(|c| matches!(c, '+' | '-' | '\u{2212}')) {
        start -= sign.len_utf8();
        is_negative = sign != '+';
        let can_precede = |c: char| c.is_whitespace() && !is_hidden(c) || "([{\"'".contains(c);
        if !char_before(text, start).is_none_or(can_precede) {
            return None;
        }
    } else if !can_stand_before(chars_before(text, start)) {
        return None;
    }
    if !can_stand_after(chars_at(text, end)) {
        return None;
    }
    let currency = match (prefix, suffix) {
        (Some(_), Some(_)) => return None,
        (prefix, suffix) => prefix.or(suffix).map(|mark| mark.name),
    };
    let readings = NumberReadings::parse(text.get(digits)?, is_negative, decimal)?;
    Some(NumberToken { range: start..end, currency, readings })
}

/// Whether the two characters before a number, the nearer one first, leave it alone.
fn can_stand_before((near, beyond): (Option<char>, Option<char>)) -> bool {
    let Some(c) = near else { return true };
    if is_hidden(c) || is_word_char(c) {
        return false;
    }
    let separates = beyond.is_none_or(|beyond| !beyond.is_numeric() && !is_hidden(beyond));
    match ascii_look(c) {
        _ if c.is_whitespace() => true,
        '(' | '[' | '{' | '"' => true,
        '\'' => beyond.is_none_or(|beyond| !is_word_char(beyond) && !is_hidden(beyond)),
        '<' | '>' | '=' | ':' | ';' | '|' | '*' | '#' => separates,
        look => !look.is_ascii() && separates && is_neutral(c),
    }
}

/// Whether the two characters after a number leave it alone.
fn can_stand_after((near, beyond): (Option<char>, Option<char>)) -> bool {
    let Some(c) = near else { return true };
    if is_hidden(c) || is_word_char(c) {
        return false;
    }
    let separates = beyond.is_none_or(|beyond| !beyond.is_numeric() && !is_hidden(beyond));
    match ascii_look(c) {
        _ if c.is_whitespace() => !beyond.is_some_and(is_percent),
        ')' | ']' | '}' | '"' => true,
        '\'' | '’' | '.' | ',' => beyond.is_none_or(|beyond| !is_word_char(beyond) && !is_hidden(beyond)),
        '<' | '>' | '=' | ':' | ';' | '|' | '*' | '!' | '?' => separates,
        look => !look.is_ascii() && separates && is_neutral(c) && !is_percent(c),
    }
}

fn is_percent(c: char) -> bool {
    matches!(c, '%' | '％' | '﹪' | '٪' | '‰' | '‱')
}

/// Whether a character without an ASCII form is punctuation that has no meaning in a number.
fn is_neutral(c: char) -> bool {
    // Middle dot, Arabic decimal and thousands separators.
    is_punctuation(c) && !matches!(c, '\u{b7}' | '\u{66b}' | '\u{66c}' | '‰' | '‱' | '٪')
}
