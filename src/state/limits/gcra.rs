//! The generic cell rate algorithm, as the bucket that leaks: exact, because nothing is divided until a wait is told.

#[cfg(feature = "file-store")]
use super::bytes::{Reader, Writer};
use super::{Answer, Micros};
use crate::host::Amount;

/// What is in the bucket. In every `per` a `limit` flows out, and never more than the `burst` is in it.
#[derive(Debug)]
pub struct Gcra {
    /// Millionths times `per`: in this unit exactly `limit` flows out in each microsecond. Below 2^125.
    level: u128,
    per: Micros,
    /// When that was so.
    at: Micros,
}

impl Gcra {
    pub fn new(now: Micros, per: Micros) -> Self {
        Self { level: 0, per, at: now }
    }

    /// Lets out what has flowed out by now. With a lower `burst` than before, what no longer fits is let out too: otherwise
    /// a reload to a slower limit could lock out for many of its periods.
    pub fn settle(&mut self, now: Micros, limit: Amount, per: Micros, burst: Amount) {
        if per != self.per {
            self.level = self.level.div_ceil(wide(self.per)) * wide(per);
            self.per = per;
        }
        let flowed = wide(now - self.at) * u128::from(limit.millionths());
        self.level = self.level.saturating_sub(flowed).min(self.scaled(burst.millionths()));
        self.at = now;
    }

    pub fn answer(&self, limit: Amount, burst: Amount, cost: u128) -> Answer {
        let Some(room) = u128::from(burst.millionths()).checked_sub(cost) else { return Answer::Never };
        let over = self.level.saturating_sub(room * wide(self.per));
        if over == 0 {
            return Answer::Admitted;
        }
        match limit.millionths() {
            0 => Answer::Never,
            limit => Answer::After(whole(over.div_ceil(u128::from(limit)))),
        }
    }

    pub fn take(&mut self, cost: u64) {
        self.level = self.level.saturating_add(self.scaled(cost));
    }

    pub fn not_after(&mut self, now: Micros) {
        self.at = self.at.min(now);
    }

    pub fn fresh_at(&self, limit: Amount) -> Option<Micros> {
        match limit.millionths() {
            0 if self.level > 0 => None,
            0 => Some(self.at),
            limit => Some(self.at.saturating_add(whole(self.level.div_ceil(u128::from(limit))))),
        }
    }

    fn scaled(&self, millionths: u64) -> u128 {
        u128::from(millionths) * wide(self.per)
    }
}

#[cfg(feature = "file-store")]
impl Gcra {
    pub fn write(&self, writer: &mut Writer) {
        writer.number(self.level);
        writer.micros(self.per);
        writer.micros(self.at);
    }

    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let gcra = Self { level: reader.number()?, per: reader.micros()?, at: reader.micros()? };
        (gcra.per > 0 && gcra.level <= gcra.scaled(u64::MAX)).then_some(gcra)
    }
}

/// A span that is not negative.
fn wide(span: Micros) -> u128 {
    u128::from(span.max(0).unsigned_abs())
}

/// A span, or the longest if it is longer.
fn whole(span: u128) -> Micros {
    Micros::try_from(span).unwrap_or(Micros::MAX)
}
