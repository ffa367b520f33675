//! Numeric keywords with exact decimal comparison: `minimum`, `maximum`, their exclusive forms, `multipleOf`.
//!
//! The library itself compares floats: 0.1000000000000000000001 would pass a maximum of 0.1.

use std::cmp::Ordering;
use std::sync::Arc;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Map as LibraryMap, Value as LibraryValue};

use super::library_adapter::ExactJson;
use super::message_fragments::format_value;
use crate::json::{Number, Value};

/// The maximum number of significant digits of a divisor.
const MAX_DIVISOR_DIGITS: usize = 37;

#[derive(Clone, Copy)]
enum NumericKeyword {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf,
}

const CHECKS: [(&str, NumericKeyword); 5] = [
    ("minimum", NumericKeyword::Minimum),
    ("maximum", NumericKeyword::Maximum),
    ("exclusiveMinimum", NumericKeyword::ExclusiveMinimum),
    ("exclusiveMaximum", NumericKeyword::ExclusiveMaximum),
    ("multipleOf", NumericKeyword::MultipleOf),
];

/// The source of a schema's exact numbers.
#[derive(Clone)]
pub(super) enum NumberSource {
    /// The library's form of the schema, which has all of them.
    Library,
    /// The schema itself, by path.
    Schema(Arc<Value>),
}

/// Replaces the library's numeric keywords by exact ones.
pub(super) fn with_exact_numbers<'o, R>(
    options: ValidationOptions<'o, R, ExactJson>,
    numbers: &NumberSource,
) -> ValidationOptions<'o, R, ExactJson> {
    CHECKS.into_iter().fold(options, |options, (keyword, check)| {
        let numbers = numbers.clone();
        options
            .with_keyword(keyword, move |parent, value, path| compile(check, parent, value, &path, &numbers))
    })
}

fn compile<'s>(
    check: NumericKeyword,
    parent: &'s LibraryMap<String, LibraryValue>,
    value: &'s LibraryValue,
    path: &Location,
    numbers: &NumberSource,
) -> Result<Box<dyn for<'i> Keyword<'i, ExactJson>>, ValidationError<'s>> {
    // Draft 4: `exclusiveMaximum: true` next to `maximum`.
    let excludes = |keyword: &str| parent.get(keyword) == Some(&LibraryValue::Bool(true));
    let check = match check {
        NumericKeyword::ExclusiveMinimum | NumericKeyword::ExclusiveMaximum if value.is_boolean() => {
            return Ok(Box::new(AcceptAll));
        }
        NumericKeyword::Minimum if excludes("exclusiveMinimum") => NumericKeyword::ExclusiveMinimum,
        NumericKeyword::Maximum if excludes("exclusiveMaximum") => NumericKeyword::ExclusiveMaximum,
        check => check,
    };
    let limit = match numbers {
        NumberSource::Library => value.as_number().and_then(|number| Number::try_from(number).ok()),
        NumberSource::Schema(schema) => schema.pointer(path.as_str()).and_then(Value::as_number).cloned(),
    };
    let limit = limit.ok_or_else(|| ValidationError::schema("the number can't be represented exactly"))?;
    if matches!(check, NumericKeyword::MultipleOf) {
        let decimal = limit.decimal();
        if decimal.is_negative() || decimal.is_zero() || decimal.digits().len() > MAX_DIVISOR_DIGITS {
            let message =
                format!("`multipleOf` must be more than 0 and have at most {MAX_DIVISOR_DIGITS} digits");
            return Err(ValidationError::schema(message));
        }
    }
    Ok(Box::new(NumericLimit { check, limit }))
}

struct NumericLimit {
    check: NumericKeyword,
    limit: Number,
}

impl NumericLimit {
    fn holds(&self, number: &Number) -> bool {
        let ordering = || number.cmp(&self.limit);
        match self.check {
            NumericKeyword::Minimum => ordering() != Ordering::Less,
            NumericKeyword::Maximum => ordering() != Ordering::Greater,
            NumericKeyword::ExclusiveMinimum => ordering() == Ordering::Greater,
            NumericKeyword::ExclusiveMaximum => ordering() == Ordering::Less,
            NumericKeyword::MultipleOf => is_multiple(number, &self.limit),
        }
    }
}

impl<'i> Keyword<'i, ExactJson> for NumericLimit {
    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_number().is_none_or(|number| self.holds(number))
    }

    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if Keyword::is_valid(self, instance) {
            return Ok(());
        }
        let requirement = match self.check {
            NumericKeyword::Minimum => "at least",
            NumericKeyword::Maximum => "at most",
            NumericKeyword::ExclusiveMinimum => "more than",
            NumericKeyword::ExclusiveMaximum => "less than",
            NumericKeyword::MultipleOf => "a multiple of",
        };
        let limit = format_value(&Value::Number(self.limit.clone()));
        Err(ValidationError::custom(format!(
            "must be {requirement} {limit}, it is {}",
            format_value(instance)
        )))
    }
}

/// The keyword for `exclusiveMaximum: true` without `maximum`: accepts everything.
struct AcceptAll;

impl<'i> Keyword<'i, ExactJson> for AcceptAll {
    fn is_valid(&self, _: &'i Value) -> bool {
        true
    }

    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Ok(())
    }
}

/// Whether a number is a multiple of a positive one of at most [`MAX_DIVISOR_DIGITS`] digits. Returns `false` if its exponent is
/// beyond 2^62.
fn is_multiple(number: &Number, of: &Number) -> bool {
    let (number, of) = (number.decimal(), of.decimal());
    if number.is_zero() {
        return true;
    }
    let (Some(exponent), Some(unit), Ok(divisor)) =
        (number.exponent(), of.exponent(), of.digits().parse::<u128>())
    else {
        return false;
    };
    // Its digits do not end in zero, so they are not a multiple of ten.
    let Some(zeros) = exponent.checked_sub(unit).and_then(|zeros| u64::try_from(zeros).ok()) else {
        return false;
    };
    let digits = number.digits().bytes().map(|byte| u128::from(byte.wrapping_sub(b'0')));
    let remainder = digits.fold(0, |remainder: u128, digit| (remainder * 10 + digit) % divisor);
    // After as many zeros as the divisor has factors of two and of five, more change nothing.
    let zeros = zeros.min(u64::from(u128::BITS));
    (0..zeros).fold(remainder, |remainder, _| remainder * 10 % divisor) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_multiples_exactly() {
        for (number, of, expected) in [
            ("0", "7", true),
            ("-0.0", "0.01", true),
            ("19.99", "0.01", true),
            ("1070468.14", "0.01", true),
            ("0.1", "0.01", true),
            ("0.30", "0.1", true),
            ("0.001", "0.01", false),
            ("19.990000000000000000000000001", "0.01", false),
            ("-4.5", "1.5", true),
            ("1e300", "0.01", true),
            ("1e300", "3", false),
            ("1e-400", "1e-401", true),
            ("1e-401", "1e-400", false),
            ("12345678901234567890123456789", "3", true),
            ("12345678901234567890123456790", "3", false),
            ("9007199254740993", "2", false),
            ("18446744073709551616", "18446744073709551616", true),
            ("100", "1000", false),
            ("1e1000", "5316911983139663491615228241121378304e-37", true),
            ("1e99999999999999999999", "1", false),
        ] {
            let (number, of) = (number.parse().unwrap(), of.parse().unwrap());
            assert_eq!(is_multiple(&number, &of), expected, "{number} of {of}");
        }
    }
}
