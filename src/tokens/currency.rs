//! Currency signs and codes beside a number.

use super::boundary::{char_at, run_start};
use crate::unicode::{is_currency_sign, is_word_char};

/// The codes of ISO 4217 in use, in alphabetical order.
const CODES: [&str; 155] = [
    "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BHD", "BIF", "BMD",
    "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHF", "CLF", "CLP", "CNY", "COP",
    "CRC", "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP",
    "GEL", "GHS", "GIP", "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD",
    "IRR", "ISK", "JMD", "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK",
    "LBP", "LKR", "LRD", "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR",
    "MWK", "MXN", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP",
    "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP",
    "SLE", "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD",
    "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VED", "VES", "VND", "VUV", "WST", "XAF", "XCD", "XCG",
    "XOF", "XPF", "YER", "ZAR", "ZMW",
];

/// Signs of one currency, with its code.
const SIGNS: [(&str, &str); 28] = [
    ("€", "EUR"),
    ("₹", "INR"),
    ("₽", "RUB"),
    ("₺", "TRY"),
    ("₴", "UAH"),
    ("₪", "ILS"),
    ("₫", "VND"),
    ("฿", "THB"),
    ("₦", "NGN"),
    ("₱", "PHP"),
    ("₲", "PYG"),
    ("₡", "CRC"),
    ("₸", "KZT"),
    ("₾", "GEL"),
    ("₼", "AZN"),
    ("₵", "GHS"),
    ("₭", "LAK"),
    ("₮", "MNT"),
    ("֏", "AMD"),
    ("US$", "USD"),
    ("A$", "AUD"),
    ("AU$", "AUD"),
    ("C$", "CAD"),
    ("CA$", "CAD"),
    ("NZ$", "NZD"),
    ("HK$", "HKD"),
    ("S$", "SGD"),
    ("R$", "BRL"),
];

/// A currency as it is written, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CurrencyMark {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The ISO 4217 code, or a sign that several currencies share.
    pub(super) name: String,
}

impl CurrencyMark {
    /// Returns the currency that ends at an offset: a code, or a sign with up to three capital letters before it (`US$`).
    pub(super) fn ending_at(text: &str, end: usize) -> Option<Self> {
        let before = text.get(..end)?;
        let is_capital = |c: char| c.is_ascii_uppercase();
        let start = match before.chars().next_back()? {
            sign if is_currency_sign(sign) => run_start(text, end - sign.len_utf8(), is_capital),
            _ => end.checked_sub(3)?,
        };
        let mark = Self::new(text, start, end)?;
        let is_bounded = !before.get(..start)?.chars().next_back().is_some_and(is_word_char);
        is_bounded.then_some(mark)
    }

    /// Returns the currency that begins at an offset: a code or a sign.
    pub(super) fn starting_at(text: &str, start: usize) -> Option<Self> {
        let end = match char_at(text, start)? {
            sign if is_currency_sign(sign) => start + sign.len_utf8(),
            _ => start + 3,
        };
        let mark = Self::new(text, start, end)?;
        let is_bounded = !char_at(text, end).is_some_and(is_word_char);
        is_bounded.then_some(mark)
    }

    fn new(text: &str, start: usize, end: usize) -> Option<Self> {
        let written = text.get(start..end)?;
        let has_sign = written.chars().next_back().is_some_and(is_currency_sign);
        let letters = written.bytes().filter(u8::is_ascii_uppercase).count();
        if letters > 3 || !has_sign && CODES.binary_search(&written).is_err() {
            return None;
        }
        let code = SIGNS.iter().find(|(sign, _)| *sign == written).map_or(written, |(_, code)| code);
        Some(Self { start, end, name: code.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order() {
        assert!(CODES.is_sorted());
        assert!(SIGNS.iter().all(|(_, code)| CODES.contains(code)));
    }
}
