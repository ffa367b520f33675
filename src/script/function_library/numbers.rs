//! Functions on numbers.

use super::FunctionResult;
use super::arguments::{expect_string, expect_whole_number, wrong_type};
use crate::script::equality::compare;
use crate::script::exact_number::{DIGITS, ExactNumber, NumberView, Rounding};
use crate::script::fuel::{EvalError, Fuel};
use crate::script::value::{ScriptValue, ValueKind};

pub(in crate::script) fn abs<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    match value.kind() {
        ValueKind::Number(number) => Ok(ScriptValue::Number(number.exact()?.abs())),
        other => Err(wrong_type("abs", "a number", other.json_type())),
    }
}

pub(in crate::script) fn max<'r>(_: &Fuel, a: &ScriptValue<'r>, b: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(if compare(a, b)?.is_ge() { a.clone() } else { b.clone() })
}

pub(in crate::script) fn min<'r>(_: &Fuel, a: &ScriptValue<'r>, b: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(if compare(a, b)?.is_le() { a.clone() } else { b.clone() })
}

pub(in crate::script) fn to_number<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let text = expect_string("to_number", value)?;
    let number: crate::json::Number = text.parse().map_err(|_| {
        EvalError::from(format!(
            "`{}` is not a number",
            crate::safe_text::escape_controls(&crate::safe_text::truncate(text))
        ))
    })?;
    Ok(ScriptValue::Number(NumberView::from_json(&number).exact()?))
}

pub(in crate::script) fn round<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    round_with("round", value, places, Rounding::HalfAwayFromZero)
}

pub(in crate::script) fn floor<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    round_with("floor", value, places, Rounding::Floor)
}

pub(in crate::script) fn ceil<'r>(
    _: &Fuel,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    round_with("ceil", value, places, Rounding::Ceiling)
}

fn round_with<'r>(
    name: &str,
    value: &ScriptValue<'r>,
    places: Option<&ScriptValue<'r>>,
    rounding: Rounding,
) -> FunctionResult<'r> {
    let ValueKind::Number(number) = value.kind() else {
        return Err(wrong_type(name, "a number", value.json_type()));
    };
    let places = match places {
        None => 0,
        Some(places) => {
            let places = u8::try_from(expect_whole_number(name, places)?)
                .ok()
                .filter(|places| usize::from(*places) <= DIGITS);
            places.ok_or_else(|| format!("`{name}` takes 0 to {DIGITS} digits after the point"))?
        }
    };
    Ok(ScriptValue::Number(number.exact()?.round(rounding, places)))
}

pub(in crate::script) fn range<'r>(
    work: &Fuel,
    from: &ScriptValue<'r>,
    to: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let (from, to) = (expect_whole_number("range", from)?, expect_whole_number("range", to)?);
    // Checked before allocation.
    let length = usize::try_from(to.saturating_sub(from).max(0)).unwrap_or(usize::MAX);
    work.spend_values(length)?;
    ScriptValue::list(work, (from..to).map(|number| ScriptValue::Number(ExactNumber::from(number))).collect())
}

pub(in crate::script) fn pow<'r>(
    _: &Fuel,
    base: &ScriptValue<'r>,
    exponent: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let power = expect_number("pow", base)?.power(expect_number("pow", exponent)?)?;
    Ok(ScriptValue::Number(power))
}

pub(in crate::script) fn sqrt<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Number(expect_number("sqrt", value)?.square_root()?))
}

pub(in crate::script) fn sign<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let sign = expect_number("sign", value)?.cmp(&ExactNumber::ZERO) as i8;
    Ok(ScriptValue::Number(ExactNumber::from(i64::from(sign))))
}

pub(in crate::script) fn int<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Number(truncate(expect_number("int", value)?)))
}

pub(in crate::script) fn fraction<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    let number = expect_number("fraction", value)?;
    Ok(ScriptValue::Number(number.minus(truncate(number))?))
}

pub(in crate::script) fn is_zero<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_number("is_zero", value)?.is_zero()))
}

pub(in crate::script) fn is_even<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_whole_number("is_even", value)? % 2 == 0))
}

pub(in crate::script) fn is_odd<'r>(_: &Fuel, value: &ScriptValue<'r>) -> FunctionResult<'r> {
    Ok(ScriptValue::Boolean(expect_whole_number("is_odd", value)? % 2 != 0))
}

/// The number without the digits after the point.
fn truncate(number: ExactNumber) -> ExactNumber {
    let rounding = if number < ExactNumber::ZERO { Rounding::Ceiling } else { Rounding::Floor };
    number.round(rounding, 0)
}

fn expect_number(name: &str, value: &ScriptValue<'_>) -> Result<ExactNumber, EvalError> {
    match value.kind() {
        ValueKind::Number(number) => Ok(number.exact()?),
        other => Err(wrong_type(name, "a number", other.json_type())),
    }
}
