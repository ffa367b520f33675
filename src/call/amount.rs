//! Amounts that a call uses of a limit, in millionths.

use crate::json::Number;

/// How much a call uses of a limit: a non-negative decimal number, exact to millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// Millionths in one.
    const MILLIONTHS_PER_UNIT: u64 = 1_000_000;

    /// A whole number; saturates at 18 trillion.
    pub const fn from_whole(number: u64) -> Self {
        Self(number.saturating_mul(Self::MILLIONTHS_PER_UNIT))
    }

    /// Converts a JSON number. Rounds up to a millionth, and saturates at the largest amount. Returns `None` for a negative number.
    pub fn from_number(number: &Number) -> Option<Self> {
        number.scaled_ceil(6).map(Self)
    }

    /// The sum, saturating at the largest amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, saturating at zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The amount in millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// An amount of this many millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }
}

/// As a decimal number without trailing zeros.
impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / Self::MILLIONTHS_PER_UNIT, self.0 % Self::MILLIONTHS_PER_UNIT);
        match rest {
            0 => write!(f, "{whole}"),
            rest => f.write_str(format!("{whole}.{rest:06}").trim_end_matches('0')),
        }
    }
}
