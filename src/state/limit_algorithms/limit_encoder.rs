//! Writes and reads the numbers of limits as varints (LEB128).

use std::time::Duration;

use super::Micros;
use crate::host::{Allowance, Amount};

/// Whether a time or duration is in the valid range, in which the sum of two never overflows.
pub fn is_in_range(micros: Micros) -> bool {
    micros.unsigned_abs() <= 1 << 61
}

/// Writes numbers one after the other, after a byte that names the format.
pub struct LimitEncoder(Vec<u8>);

/// Reads what a [`LimitEncoder`] wrote. Its methods return `None` if there is no such number.
pub struct LimitDecoder<'a>(&'a [u8]);

impl LimitEncoder {
    pub fn new(format: u8) -> Self {
        Self(vec![format])
    }

    pub fn number(&mut self, number: impl Into<u128>) {
        let mut rest: u128 = number.into();
        loop {
            // The lowest seven bits, and a continuation bit if more follow.
            let low = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }

    /// Encodes the sign in the lowest bit, so that numbers near zero are short on both sides.
    pub fn micros(&mut self, time: Micros) {
        self.number((time.unsigned_abs() << 1) | u64::from(time < 0));
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn allowance(&mut self, allowance: &Allowance) {
        match allowance {
            Allowance::Gcra { limit, per, burst } => {
                self.number(0_u8);
                self.number(limit.millionths());
                self.number(per.as_nanos());
                self.number(burst.millionths());
            }
            Allowance::FixedWindow { limit, per } => self.limit_with_period(1, *limit, *per),
            Allowance::SlidingWindow { limit, per } => self.limit_with_period(2, *limit, *per),
            Allowance::Total { limit, keep } => self.limit_with_period(3, *limit, *keep),
            Allowance::Slots { max } => {
                self.number(4_u8);
                self.number(*max);
            }
        }
    }

    fn limit_with_period(&mut self, kind: u8, limit: Amount, span: Duration) {
        self.number(kind);
        self.number(limit.millionths());
        self.number(span.as_nanos());
    }
}

impl<'a> LimitDecoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn number<T: TryFrom<u128>>(&mut self) -> Option<T> {
        let mut number = 0_u128;
        for shift in (0..u128::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let group = u128::from(byte & 0x7f);
            let shifted = group << shift;
            if shifted >> shift != group {
                return None;
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                return T::try_from(number).ok();
            }
        }
        None
    }

    pub fn micros(&mut self) -> Option<Micros> {
        let written: u64 = self.number()?;
        let distance = Micros::try_from(written >> 1).ok().filter(|distance| is_in_range(*distance))?;
        Some(if written & 1 == 1 { -distance } else { distance })
    }

    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn amount(&mut self) -> Option<Amount> {
        self.number().map(Amount::from_millionths)
    }

    fn span(&mut self) -> Option<Duration> {
        const SECOND: u128 = 1_000_000_000;
        let nanos: u128 = self.number()?;
        Some(Duration::new(u64::try_from(nanos / SECOND).ok()?, u32::try_from(nanos % SECOND).ok()?))
    }

    pub fn allowance(&mut self) -> Option<Allowance> {
        Some(match self.number::<u8>()? {
            0 => Allowance::Gcra { limit: self.amount()?, per: self.span()?, burst: self.amount()? },
            1 => Allowance::FixedWindow { limit: self.amount()?, per: self.span()? },
            2 => Allowance::SlidingWindow { limit: self.amount()?, per: self.span()? },
            3 => Allowance::Total { limit: self.amount()?, keep: self.span()? },
            4 => Allowance::Slots { max: self.number()? },
            _ => return None,
        })
    }
}
