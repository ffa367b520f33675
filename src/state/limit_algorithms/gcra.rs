//! The generic cell rate algorithm, implemented as a leaky bucket: exact, because only the reported wait is divided and
//! rounded.

use super::limit_encoder::{LimitDecoder, LimitEncoder};
use super::{LimitAnswer, Micros};
use crate::host::Amount;

/// The bucket. In every `per` an amount of `limit` drains, and the level never exceeds `burst`, except by debt.
#[derive(Debug)]
pub struct Gcra {
    /// The level in millionths times `per`: in this unit exactly `limit` drains in each microsecond. Below 2^125.
    level: u128,
    /// How far the level may exceed `burst`, because calls cost more than was estimated. In the unit of the level.
    debt: u128,
    per: Micros,
    /// The time of this level.
    at: Micros,
}

impl Gcra {
    pub fn new(now: Micros, per: Micros) -> Self {
        Self { level: 0, debt: 0, per, at: now }
    }

    /// Drains the bucket up to now. If `burst` has decreased, the excess is dropped too: otherwise a reload to a slower
    /// limit could block for many of its periods.
    pub fn drain(&mut self, now: Micros, limit: Amount, per: Micros, burst: Amount) {
        if per != self.per {
            self.level = self.level.div_ceil(to_u128(self.per)) * to_u128(per);
            self.debt = self.debt.div_ceil(to_u128(self.per)) * to_u128(per);
            self.per = per;
        }
        let flowed = to_u128(now - self.at) * u128::from(limit.millionths());
        let burst = self.scaled(burst.millionths());
        self.level = self.level.saturating_sub(flowed).min(burst.saturating_add(self.debt));
        self.debt = self.level.saturating_sub(burst);
        self.at = now;
    }

    pub fn check(&self, limit: Amount, burst: Amount, cost: u128) -> LimitAnswer {
        let Some(room) = u128::from(burst.millionths()).checked_sub(cost) else { return LimitAnswer::Never };
        let over = self.level.saturating_sub(room * to_u128(self.per));
        if over == 0 {
            return LimitAnswer::Admitted;
        }
        match limit.millionths() {
            0 => LimitAnswer::Never,
            limit => LimitAnswer::After(to_micros(over.div_ceil(u128::from(limit)))),
        }
    }

    pub fn acquire(&mut self, cost: u64) {
        self.level = self.level.saturating_add(self.scaled(cost));
    }

    /// Acquires this amount whatever is left, or all that is left.
    pub fn overdraw(&mut self, burst: Amount, cost: Option<u64>) {
        let burst = self.scaled(burst.millionths());
        self.level = match cost {
            Some(cost) => self.level.saturating_add(self.scaled(cost)).min(self.scaled(u64::MAX)),
            None => self.level.max(burst),
        };
        self.debt = self.level.saturating_sub(burst);
    }

    /// Refunds a part of an estimate that was acquired this long ago, as far as it has not drained since.
    pub fn give_back(&mut self, elapsed: Micros, limit: Amount, estimate: u64, cost: u64) {
        if elapsed < 0 {
            return;
        }
        let drained = to_u128(elapsed) * u128::from(limit.millionths());
        let remaining = self.scaled(estimate).saturating_sub(drained);
        self.level = self.level.saturating_sub(self.scaled(cost).min(remaining));
    }

    pub fn clamp_to(&mut self, now: Micros) {
        self.at = self.at.min(now);
    }

    pub fn reset_at(&self, limit: Amount) -> Option<Micros> {
        match limit.millionths() {
            0 if self.level > 0 => None,
            0 => Some(self.at),
            limit => Some(self.at.saturating_add(to_micros(self.level.div_ceil(u128::from(limit))))),
        }
    }

    fn scaled(&self, millionths: u64) -> u128 {
        u128::from(millionths) * to_u128(self.per)
    }
}

impl Gcra {
    pub fn write(&self, writer: &mut LimitEncoder) {
        writer.number(self.level);
        writer.micros(self.per);
        writer.micros(self.at);
        if self.debt > 0 {
            writer.number(self.debt);
        }
    }

    pub fn read(reader: &mut LimitDecoder<'_>) -> Option<Self> {
        let (level, per, at) = (reader.number()?, reader.micros()?, reader.micros()?);
        let debt = if reader.is_at_end() { 0 } else { reader.number()? };
        let gcra = Self { level, debt, per, at };
        (gcra.per > 0 && gcra.level <= gcra.scaled(u64::MAX) && gcra.debt <= gcra.level).then_some(gcra)
    }
}

/// A duration; negative values become zero.
fn to_u128(span: Micros) -> u128 {
    u128::from(span.max(0).unsigned_abs())
}

/// A duration, capped at the maximum.
fn to_micros(span: u128) -> Micros {
    Micros::try_from(span).unwrap_or(Micros::MAX)
}
