//! Amounts of money in a text: numbers with a currency beside them.

use super::TokenError;
use super::boundary::{char_at, char_before, is_group_space};
use super::currency::CurrencyMark;
use super::number::NumberToken;
use crate::json::Number;

/// A number with its currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyAmount {
    /// The number.
    pub value: Number,
    /// The ISO 4217 code, or the sign if several currencies share it (`$`, `£`, `¥`).
    pub currency: String,
}

/// Returns the numbers that have a currency beside them: touching, or after one space. A currency between two numbers belongs to the
/// first one that has none before it.
pub(super) fn find(text: &str, numbers: &[NumberToken]) -> Result<Vec<MoneyAmount>, TokenError> {
    let mut amounts = Vec::new();
    let mut used_until = 0;
    for number in numbers {
        let mark = || {
            let before = mark_before(text, number.range.start).filter(|mark| mark.start >= used_until);
            before.or_else(|| mark_after(text, number.range.end))
        };
        let (currency, end) = match &number.currency {
            Some(currency) => (Some(currency.clone()), number.range.end),
            None => mark().map_or((None, 0), |mark| (Some(mark.name), mark.end)),
        };
        if let Some(currency) = currency {
            used_until = end.max(number.range.end);
            let value = number.single_reading().ok_or(TokenError::AmbiguousNumber)?.clone();
            amounts.push(MoneyAmount { value, currency });
        }
    }
    Ok(amounts)
}

fn mark_before(text: &str, start: usize) -> Option<CurrencyMark> {
    let space = char_before(text, start).filter(|c| is_group_space(*c))?;
    CurrencyMark::ending_at(text, start - space.len_utf8())
}

fn mark_after(text: &str, end: usize) -> Option<CurrencyMark> {
    let space = char_at(text, end).filter(|c| is_group_space(*c))?;
    CurrencyMark::starting_at(text, end + space.len_utf8())
}
