//! How much a call takes of a limit.

use crate::json::Number;

/// How much a call takes of a limit: a decimal number that is not negative, kept exactly in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Millionths in one.
    const ONE: u64 = 1_000_000;

    /// A whole number; beyond 18 trillion the largest amount there is.
    pub const fn whole(number: u64) -> Self {
        Self(number.saturating_mul(Self::ONE))
    }

    /// A JSON number. What is finer than a millionth is rounded up, what is larger than the largest amount is that. Nothing
    /// for a negative number.
    pub fn of(number: &Number) -> Option<Self> {
        number.scaled_up(6).map(Self)
    }

    /// Both together; the largest amount there is, if that is less.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left of it without the other; nothing, if that is more.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// In millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// That many millionths.
    pub const fn of_millionths(millionths: u64) -> Self {
        Self(millionths)
    }
}
