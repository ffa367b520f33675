//! A sliding window: a log of every acquisition with its time, and so an exact count.

use std::collections::VecDeque;

use super::limit_encoder::{LimitDecoder, LimitEncoder, is_in_range};
use super::{LimitAnswer, Micros};
use crate::host::Amount;

/// The maximum length of the log.
const MAX_LOG_LENGTH: usize = 65_536;

/// Acquired amounts by time, oldest first, each time once.
#[derive(Debug, Default)]
pub struct SlidingLog {
    log: VecDeque<(Micros, u64)>,
    sum: u64,
}

impl SlidingLog {
    /// Removes entries that are older than `per`. If `per` has increased, the remaining entries count for longer.
    pub fn remove_expired(&mut self, now: Micros, per: Micros) {
        while let Some((_, amount)) = self.log.pop_front_if(|(time, _)| *time + per <= now) {
            self.sum = self.sum.saturating_sub(amount);
        }
    }

    pub fn check(&self, now: Micros, limit: Amount, per: Micros, cost: u128) -> LimitAnswer {
        let limit = u128::from(limit.millionths());
        let over = (u128::from(self.sum) + cost).saturating_sub(limit);
        if over == 0 {
            return LimitAnswer::Admitted;
        }
        if cost > limit {
            return LimitAnswer::Never;
        }
        let mut freed = 0;
        for (time, amount) in &self.log {
            freed += u128::from(*amount);
            if freed >= over {
                return LimitAnswer::After(time + per - now);
            }
        }
        LimitAnswer::Never
    }

    pub fn acquire(&mut self, now: Micros, cost: u64) {
        self.sum = self.sum.saturating_add(cost);
        self.push(now, cost);
        if self.log.len() > MAX_LOG_LENGTH {
            self.merge_neighbours();
        }
    }

    /// Acquires this amount whatever is left, or all that is left.
    pub fn overdraw(&mut self, now: Micros, limit: Amount, cost: Option<u64>) {
        let left = limit.millionths().saturating_sub(self.sum);
        match cost.unwrap_or(left) {
            0 => {}
            cost => self.acquire(now, cost),
        }
    }

    /// Refunds what was acquired at this time, or merged with what was acquired soon after it.
    pub fn give_back(&mut self, acquired_at: Micros, cost: u64) {
        let index = self.log.partition_point(|(time, _)| *time < acquired_at);
        let Some((_, amount)) = self.log.get_mut(index) else { return };
        let given_back = cost.min(*amount);
        *amount -= given_back;
        self.sum = self.sum.saturating_sub(given_back);
        if *amount == 0 {
            self.log.remove(index);
        }
    }

    fn push(&mut self, time: Micros, amount: u64) {
        match self.log.back_mut() {
            Some((last, sum)) if *last == time => *sum = sum.saturating_add(amount),
            _ => self.log.push_back((time, amount)),
        }
    }

    /// Merges pairs of neighbours at the later time: they count for longer than necessary, never shorter.
    fn merge_neighbours(&mut self) {
        let mut log = VecDeque::with_capacity(self.log.len().div_ceil(2));
        while let Some((time, amount)) = self.log.pop_front() {
            match self.log.pop_front() {
                Some((later, more)) => log.push_back((later, amount.saturating_add(more))),
                None => log.push_back((time, amount)),
            }
        }
        self.log = log;
    }

    pub fn clamp_to(&mut self, now: Micros) {
        let mut later = 0_u64;
        while let Some((_, amount)) = self.log.pop_back_if(|(time, _)| *time > now) {
            later = later.saturating_add(amount);
        }
        if later > 0 {
            self.push(now, later);
        }
    }

    /// The time of the latest acquisition; the minimum if the log is empty.
    pub fn last(&self) -> Micros {
        self.log.back().map_or(Micros::MIN, |(time, _)| *time)
    }

    pub fn len(&self) -> usize {
        self.log.len()
    }
}

impl SlidingLog {
    /// Writes each time as the difference from the one before it.
    pub fn write(&self, writer: &mut LimitEncoder) {
        let mut before = 0;
        for (time, amount) in &self.log {
            writer.micros(*time - before);
            writer.number(*amount);
            before = *time;
        }
    }

    pub fn read(reader: &mut LimitDecoder<'_>) -> Option<Self> {
        let mut sliding = Self::default();
        let mut before: Option<Micros> = None;
        while !reader.is_at_end() {
            let step = reader.micros()?;
            let time = before.unwrap_or(0).checked_add(step).filter(|time| is_in_range(*time))?;
            if before.is_some() && step <= 0 {
                return None;
            }
            let amount = reader.number()?;
            sliding.sum = sliding.sum.saturating_add(amount);
            sliding.log.push_back((time, amount));
            before = Some(time);
        }
        Some(sliding)
    }
}
