//! Readings of a number: which separators group digits, and which one is the decimal mark.

use smallvec::{SmallVec, smallvec};

use super::boundary::is_group_space;
use super::token_kind::DecimalMark;
use crate::json::Number;

/// The values that a number can have.
#[derive(Clone, Debug)]
pub(super) struct NumberReadings {
    values: SmallVec<[Number; 1]>,
    /// Whether the number is surely one of the values: not if it contradicts the decimal mark of the format.
    is_certain: bool,
}

impl NumberReadings {
    /// Reads digits with separators. Returns `None` if they are not a number: `1.2.3`, `1,2`, `1..2`.
    pub(super) fn parse(text: &str, is_negative: bool, decimal: Option<DecimalMark>) -> Option<Self> {
        let parts = SeparatedDigits::new(text);
        let value = |fraction: usize| parts.value(is_negative, fraction);
        let certain = |values| Some(Self { values, is_certain: true });
        let Some(last) = parts.separators.last().copied() else { return certain(smallvec![value(0)?]) };
        let contradicts = |mark: char| decimal.is_some_and(|decimal| decimal.as_char() != mark);
        let is_mark = matches!(last, '.' | ',');
        let fraction = parts.groups.last().map_or(0, |group| group.len());
        if parts.separators.len() == 1 && is_mark {
            let grouped = parts.are_grouped(last, parts.groups.len());
            return match decimal {
                Some(decimal) if decimal.as_char() == last => certain(smallvec![value(fraction)?]),
                Some(_) if grouped => certain(smallvec![value(0)?]),
                Some(_) => Some(Self { values: smallvec![value(fraction)?], is_certain: false }),
                None if grouped => certain(smallvec![value(0)?, value(fraction)?]),
                None => certain(smallvec![value(fraction)?]),
            };
        }
        if parts.are_grouped(last, parts.groups.len()) {
            let is_certain = decimal.is_none_or(|decimal| decimal.as_char() != last);
            return Some(Self { values: smallvec![value(0)?], is_certain });
        }
        let grouping = parts.separators.first().copied().filter(|first| is_mark && *first != last)?;
        let is_number = parts.are_grouped(grouping, parts.groups.len() - 1);
        is_number.then_some(())?;
        Some(Self { values: smallvec![value(fraction)?], is_certain: !contradicts(last) })
    }

    /// The value. Returns `None` if there are two.
    pub(super) fn single(&self) -> Option<&Number> {
        match self.values.as_slice() {
            [value] if self.is_certain => Some(value),
            _ => None,
        }
    }

    /// The values, and whether the number has the value in each of its readings.
    pub(super) fn into_values(self) -> (SmallVec<[Number; 1]>, bool) {
        let is_single = self.values.iter().all(|value| self.values.first() == Some(value));
        (self.values, self.is_certain && is_single)
    }
}

/// Whether digits with spaces are one number: groups of three, and perhaps a fraction.
pub(super) fn is_grouped(text: &str) -> bool {
    let parts = SeparatedDigits::new(text);
    let spaces = parts.separators.iter().take_while(|separator| **separator == ' ').count();
    let has_fraction = spaces + 1 == parts.separators.len();
    (has_fraction || spaces == parts.separators.len()) && parts.are_grouped(' ', spaces + 1)
}

/// Digits and the separators between them.
struct SeparatedDigits<'t> {
    groups: Vec<&'t str>,
    /// One fewer than groups. Every space is `' '`, every apostrophe `'\''`.
    separators: Vec<char>,
}

impl<'t> SeparatedDigits<'t> {
    fn new(text: &'t str) -> Self {
        let separators = text.chars().filter(|c| !c.is_ascii_digit()).map(|c| match c {
            c if is_group_space(c) => ' ',
            '’' => '\'',
            other => other,
        });
        Self { groups: text.split(|c: char| !c.is_ascii_digit()).collect(), separators: separators.collect() }
    }

    /// Whether a separator is between the first groups, and these have three digits each; with `,` also two, as in `1,00,000`.
    fn are_grouped(&self, separator: char, count: usize) -> bool {
        let separators = self.separators.get(..count.saturating_sub(1)).unwrap_or_default();
        let Some((first, rest)) = self.groups.get(..count).and_then(<[_]>::split_first) else { return false };
        let Some((last, middle)) = rest.split_last() else { return false };
        let threes = (1..=3).contains(&first.len()) && middle.iter().all(|group| group.len() == 3);
        let twos = separator == ','
            && !middle.is_empty()
            && (1..=2).contains(&first.len())
            && middle.iter().all(|group| group.len() == 2);
        separators.iter().all(|found| *found == separator)
            && last.len() == 3
            && !first.starts_with('0')
            && (threes || twos)
    }

    /// The value of all digits, of which the last ones are the fraction, without zeros at its end.
    fn value(&self, is_negative: bool, fraction: usize) -> Option<Number> {
        let digits = self.groups.concat();
        let (whole, fraction) = digits.split_at_checked(digits.len() - fraction)?;
        let fraction = fraction.trim_end_matches('0');
        let exponent = -i64::try_from(fraction.len()).ok()?;
        Number::from_parts(is_negative, &[whole, fraction].concat(), exponent)
    }
}
