//! Numbers of expressions and scripts: exact decimals of up to 34 significant digits.
//!
//! Every operation gives the exact result or an error. Only a quotient is rounded, half to even, as in IEEE 754's decimal128.

use std::cmp::Ordering;

use dashu_float::Context;
use dashu_float::round::mode::{HalfEven, Zero};
use dashu_float::round::{Round, Rounded};

use crate::json::{self, Value};

type Repr = dashu_float::Repr<10>;
type FpResult<R> = dashu_float::FpResult<dashu_float::FBig<R, 10>>;

/// The maximum number of significant digits.
pub(super) const DIGITS: usize = 34;
/// The maximum absolute power of ten of a number's first digit.
const MAX_MAGNITUDE: i64 = 6144;
/// The maximum number of zeros that are written instead of an exponent.
const MAX_ZEROS: usize = 34;

/// An exact decimal: `coefficient × 10^exponent`. The coefficient has at most 34 digits and does not end in a zero, so one value
/// has one representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExactNumber {
    coefficient: i128,
    exponent: i32,
}

/// A number as it is read from a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberView<'v> {
    Exact(ExactNumber),
    /// A JSON number out of range for arithmetic: it can only be compared.
    OutOfRange(&'v json::Number),
}

/// The rounding mode for fewer digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest; a half is rounded away from zero.
    HalfAwayFromZero,
    Floor,
    Ceiling,
}

impl ExactNumber {
    pub(super) const ZERO: Self = Self { coefficient: 0, exponent: 0 };

    /// Returns `None` if the value has more than 34 significant digits or is out of range.
    fn new(coefficient: i128, exponent: i64) -> Option<Self> {
        if coefficient == 0 {
            return Some(Self::ZERO);
        }
        let (mut coefficient, mut exponent) = (coefficient, exponent);
        while coefficient % 10 == 0 {
            coefficient /= 10;
            exponent += 1;
        }
        let digits = digit_count(coefficient);
        let magnitude = exponent.saturating_add(digits as i64 - 1);
        let is_representable = digits <= DIGITS && magnitude.abs() <= MAX_MAGNITUDE;
        Some(Self { coefficient, exponent: i32::try_from(exponent).ok()? }).filter(|_| is_representable)
    }

    /// The value of a JSON number. Returns `None` if it has more than 34 significant digits or is out of range.
    pub(super) fn from_json(number: &json::Number) -> Option<Self> {
        if let Some(whole) = number.as_i64() {
            return Some(Self::from(whole));
        }
        let (coefficient, exponent) = number.decimal().coefficient()?;
        Self::new(coefficient, exponent)
    }

    /// The number as JSON: without an exponent unless that would take too many zeros, and without trailing zeros after the point.
    pub(super) fn to_json(self) -> Value {
        if let Some(whole) = self.to_i64() {
            return whole.into();
        }
        self.json_number().map_or(Value::Null, Value::Number)
    }

    fn json_number(self) -> Option<json::Number> {
        match json::parse(&self.to_string()) {
            Ok(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// Returns `None` if the value has a fraction or does not fit.
    pub(super) fn to_i64(self) -> Option<i64> {
        let scale = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        self.coefficient.checked_mul(scale)?.try_into().ok()
    }

    pub(super) fn is_zero(self) -> bool {
        self.coefficient == 0
    }

    #[must_use]
    pub(super) fn negate(self) -> Self {
        Self { coefficient: -self.coefficient, ..self }
    }

    #[must_use]
    pub(super) fn abs(self) -> Self {
        Self { coefficient: self.coefficient.abs(), ..self }
    }

    /// # Errors
    /// The sum has more than 34 significant digits.
    pub(super) fn plus(self, other: Self) -> Result<Self, String> {
        self.require_exact("+", other, CONTEXT.add(&self.repr(), &other.repr()))
    }

    /// # Errors
    /// The difference has more than 34 significant digits.
    pub(super) fn minus(self, other: Self) -> Result<Self, String> {
        self.require_exact("-", other, CONTEXT.sub(&self.repr(), &other.repr()))
    }

    /// # Errors
    /// The product has more than 34 significant digits, or is out of range.
    pub(super) fn times(self, other: Self) -> Result<Self, String> {
        self.require_exact("*", other, CONTEXT.mul(&self.repr(), &other.repr()))
    }

    /// The quotient, rounded half to even at 34 significant digits.
    ///
    /// # Errors
    /// The divisor is zero, or the quotient is out of range.
    pub(super) fn divided_by(self, other: Self) -> Result<Self, String> {
        if other.is_zero() {
            return Err("division by zero".to_owned());
        }
        let quotient = CONTEXT.div(&self.repr(), &other.repr()).ok().map(Rounded::value);
        quotient
            .and_then(|quotient| from_repr(quotient.repr()))
            .ok_or_else(|| format!("{self} / {other} is too large or too small for a number"))
    }

    /// The remainder of a truncated division; it has the sign of the dividend.
    ///
    /// # Errors
    /// The divisor is zero.
    pub(super) fn remainder(self, other: Self) -> Result<Self, String> {
        if other.is_zero() {
            return Err("division by zero".to_owned());
        }
        self.require_exact("%", other, Context::<Zero>::new(DIGITS).rem(&self.repr(), &other.repr()))
    }

    /// # Errors
    /// The exponent is not a whole number from 0, or the power has more than 34 significant digits.
    pub(super) fn power(self, exponent: Self) -> Result<Self, String> {
        let mut left = exponent.to_i64().and_then(|whole| u64::try_from(whole).ok()).ok_or_else(|| {
            format!("an exponent must be a whole number of at least 0, this is {exponent}: write `1 / x ** n` for a negative one")
        })?;
        let too_long = |_| precision_error(&format!("{self} ** {exponent}"));
        let (mut power, mut square) = (Self::from(1), self);
        while left > 0 {
            if left & 1 == 1 {
                power = power.times(square).map_err(too_long)?;
            }
            left >>= 1;
            // If a square is too long, so is every power that needs it.
            if left > 0 {
                square = square.times(square).map_err(too_long)?;
            }
        }
        Ok(power)
    }

    /// The square root, rounded half to even at 34 significant digits.
    ///
    /// # Errors
    /// The number is negative.
    pub(super) fn square_root(self) -> Result<Self, String> {
        if self.coefficient < 0 {
            return Err(format!("{self} is negative and has no square root"));
        }
        let root = CONTEXT.sqrt(&self.repr()).ok().map(Rounded::value);
        root.and_then(|root| from_repr(root.repr())).ok_or_else(|| format!("{self} has no square root"))
    }

    /// The number with this many digits after the point.
    #[must_use]
    pub(super) fn round(self, rounding: Rounding, places: u8) -> Self {
        let dropped = i64::from(-self.exponent) - i64::from(places);
        let Ok(dropped) = u32::try_from(dropped) else { return self };
        if dropped == 0 {
            return self;
        }
        // If the power does not fit, all digits are dropped and the rest is less than a half.
        let (quotient, rest, half) = match 10_i128.checked_pow(dropped) {
            Some(power) => {
                let rest = self.coefficient % power;
                (self.coefficient / power, rest, rest.abs() >= power / 2)
            }
            None => (0, self.coefficient, false),
        };
        let step = match rounding {
            Rounding::HalfAwayFromZero if half => rest.signum(),
            Rounding::Floor if rest < 0 => -1,
            Rounding::Ceiling if rest > 0 => 1,
            _ => 0,
        };
        // Never longer than before: at least one digit was dropped.
        Self::new(quotient + step, -i64::from(places)).unwrap_or(self)
    }

    fn repr(self) -> Repr {
        Repr::new(self.coefficient.into(), self.exponent as isize)
    }

    fn require_exact<R: Round>(self, symbol: &str, other: Self, result: FpResult<R>) -> Result<Self, String> {
        match result {
            Ok(Rounded::Exact(value)) => from_repr(value.repr()),
            _ => None,
        }
        .ok_or_else(|| {
            format!(
                "{}: shorten a number with `round(x, 10)`",
                precision_error(&format!("{self} {symbol} {other}"))
            )
        })
    }
}

const CONTEXT: Context<HalfEven> = Context::new(DIGITS);

fn from_repr(repr: &Repr) -> Option<ExactNumber> {
    let coefficient = i128::try_from(repr.significand().clone()).ok()?;
    ExactNumber::new(coefficient, i64::try_from(repr.exponent()).ok()?)
}

fn precision_error(subject: &str) -> String {
    format!("{subject} has more than {DIGITS} significant digits or is out of range")
}

fn digit_count(coefficient: i128) -> usize {
    coefficient.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1)
}

impl From<i64> for ExactNumber {
    fn from(whole: i64) -> Self {
        // Never out of range.
        Self::new(whole.into(), 0).unwrap_or(Self::ZERO)
    }
}

impl Ord for ExactNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.coefficient.signum().cmp(&other.coefficient.signum());
        if signs.is_ne() || self.is_zero() {
            return signs;
        }
        let magnitude = |number: &Self| i64::from(number.exponent) + digit_count(number.coefficient) as i64;
        let larger = magnitude(self).cmp(&magnitude(other)).then_with(|| {
            // Of the same magnitude: aligned, neither has more than 34 digits.
            let (a, b) = (self.coefficient.abs(), other.coefficient.abs());
            let aligned = |coefficient: i128, by: i32| {
                u32::try_from(by)
                    .ok()
                    .and_then(|by| coefficient.checked_mul(10_i128.checked_pow(by)?))
                    .unwrap_or(coefficient)
            };
            let (a_by, b_by) = (self.exponent - other.exponent, other.exponent - self.exponent);
            aligned(a, a_by).cmp(&aligned(b, b_by))
        });
        if self.coefficient < 0 { larger.reverse() } else { larger }
    }
}

impl PartialOrd for ExactNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for ExactNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.coefficient < 0 { "-" } else { "" };
        let digits = self.coefficient.unsigned_abs().to_string();
        let point = i64::from(self.exponent) + digits.len() as i64;
        let zeros = |count: i64| {
            usize::try_from(count).ok().filter(|count| *count <= MAX_ZEROS).map(|count| "0".repeat(count))
        };
        match (zeros(self.exponent.into()), zeros(-point), usize::try_from(point)) {
            (Some(zeros), _, _) => write!(f, "{sign}{digits}{zeros}"),
            (None, Some(zeros), _) => write!(f, "{sign}0.{zeros}{digits}"),
            (None, None, Ok(point)) if point < digits.len() => {
                let (whole, fraction) = digits.split_at_checked(point).unwrap_or((&digits, "0"));
                write!(f, "{sign}{whole}.{fraction}")
            }
            _ => {
                let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
                let point_and = if rest.is_empty() { "" } else { "." };
                write!(f, "{sign}{first}{point_and}{rest}e{}", point - 1)
            }
        }
    }
}

impl<'v> NumberView<'v> {
    pub(super) fn from_json(number: &'v json::Number) -> Self {
        ExactNumber::from_json(number).map_or(Self::OutOfRange(number), Self::Exact)
    }

    /// The number for arithmetic.
    ///
    /// # Errors
    /// It has more than 34 significant digits, or is out of range.
    pub(super) fn exact(self) -> Result<ExactNumber, String> {
        match self {
            Self::Exact(number) => Ok(number),
            Self::OutOfRange(number) => {
                let text = number.text();
                let cut: String = text.chars().take(20).collect();
                let dots = if cut.len() < text.len() { "…" } else { "" };
                Err(format!(
                    "{}: it can be compared, but not used in arithmetic",
                    precision_error(&format!("the number {cut}{dots}"))
                ))
            }
        }
    }

    /// Returns `None` if the value has a fraction or does not fit.
    pub(super) fn to_i64(self) -> Option<i64> {
        self.exact().ok()?.to_i64()
    }

    /// Orders by exact value, whatever the size.
    pub(super) fn compare(self, other: Self) -> Ordering {
        let large = |number: ExactNumber| number.json_number().unwrap_or_else(|| 0.into());
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.cmp(&b),
            (Self::OutOfRange(a), Self::OutOfRange(b)) => a.cmp(b),
            (Self::OutOfRange(a), Self::Exact(b)) => a.cmp(&large(b)),
            (Self::Exact(a), Self::OutOfRange(b)) => large(a).cmp(b),
        }
    }
}
