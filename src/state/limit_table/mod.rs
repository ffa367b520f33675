//! Limits by key: all-or-nothing batches, and removal of keys that are back at their initial state.

pub mod batch;
pub mod subset;

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::host::{
    Account, Allowance, Amount, LimitAcquisition, LimitCorrection, LimitRefusal, RealCost, StoreError,
};
use crate::state::capacity::{AccountCharges, CapacityShares};
use crate::state::limit_algorithms::{Correction, LimitAnswer, LimitUsage, Micros, cost, since_epoch};

/// Callers read the clock before they wait for the lock. So a time that is earlier by at most this much is attributed to a
/// late caller, and the latest known time is used instead. Treating it as a step of the clock would refill the time in
/// between twice. Real steps of the clock are also waited out this long.
const CLOCK_TOLERANCE: Micros = 1_000_000;

/// How many due keys each batch inspects for removal, so that keys are removed as steadily as they are added.
const DUE_CHECKS: usize = 4;

/// All limits in use.
#[derive(Debug)]
pub struct LimitTable {
    keys: HashMap<Arc<str>, TrackedLimit>,
    /// When to check whether a key can be removed: its [`TrackedLimit::due`].
    due: BTreeSet<(Micros, Arc<str>)>,
    /// The usage by account: the sums of [`LimitUsage::size`].
    shares: CapacityShares,
    /// The latest known time.
    now: Micros,
}

#[derive(Debug)]
struct TrackedLimit {
    usage: LimitUsage,
    /// The accounts that are charged for its size.
    charges: AccountCharges,
    /// The allowance of the latest acquisition.
    allowance: Allowance,
    /// Its time in [`LimitTable::due`]; `None` if time alone does not reset the limit. It is not postponed when the reset moves
    /// to later, so that acquisitions seldom reorder the set.
    due: Option<Micros>,
}

/// What a batch has requested of a key so far.
struct RequestedAmount<'a> {
    allowance: &'a Allowance,
    account: Account,
    cost: u128,
}

impl LimitTable {
    /// Limits with this capacity in keys, of which each account has a share. A sliding window takes one more unit for each
    /// further time in its log.
    pub fn new(capacity: usize) -> Self {
        let (keys, due) = (HashMap::new(), BTreeSet::new());
        Self { keys, due, shares: CapacityShares::new(capacity), now: Micros::MIN }
    }

    /// Acquires all or nothing. Returns the limits without enough left.
    pub fn acquire(
        &mut self,
        time: Micros,
        takes: &[LimitAcquisition],
    ) -> Result<Vec<LimitRefusal>, StoreError> {
        self.advance_to(time);
        self.remove_some_due();
        let takes = || takes.iter().enumerate().filter(|(_, take)| cost(&take.allowance, take.cost) > 0);

        let mut requested: HashMap<&str, RequestedAmount> = HashMap::new();
        let mut refusals = Vec::new();
        for (index, take) in takes() {
            let key = take.key.as_str();
            let (allowance, account) = (&take.allowance, take.account);
            let wanted = requested.entry(key).or_insert(RequestedAmount { allowance, account, cost: 0 });
            if *wanted.allowance != take.allowance {
                return Err(StoreError::Unavailable(format!(
                    "acquisition {index} of the batch has the key of an earlier one, but a different allowance"
                )));
            }
            wanted.cost += u128::from(cost(&take.allowance, take.cost));
            let retry_after = match self.peek(key, &take.allowance, wanted.cost) {
                LimitAnswer::Admitted => continue,
                // The wait is relative to the time that the caller passed in.
                LimitAnswer::After(wait) => Some(span(wait.saturating_add(self.now - time))),
                LimitAnswer::Never => None,
            };
            refusals.push(LimitRefusal { index, retry_after });
        }
        if !refusals.is_empty() {
            return Ok(refusals);
        }

        self.make_room(&requested)?;
        for (_, take) in takes() {
            self.acquire_one(take);
        }
        Ok(Vec::new())
    }

    /// Corrects estimates, all of them or none.
    ///
    /// # Errors
    /// If there is no room for a limit that is not tracked any more, and of which more is acquired.
    pub fn correct(&mut self, time: Micros, corrections: &[LimitCorrection]) -> Result<(), StoreError> {
        self.advance_to(time);
        self.remove_some_due();
        let mut requested: HashMap<&str, RequestedAmount> = HashMap::new();
        for correction in corrections.iter().filter(|correction| !correction.is_refund()) {
            let LimitAcquisition { key, account, allowance, .. } = &correction.acquisition;
            requested.insert(key, RequestedAmount { allowance, account: *account, cost: 0 });
        }
        self.make_room(&requested)?;
        corrections.iter().for_each(|correction| self.correct_one(correction));
        Ok(())
    }

    fn correct_one(&mut self, correction: &LimitCorrection) {
        let now = self.now;
        let LimitAcquisition { key, account, allowance, cost: estimate } = &correction.acquisition;
        if !correction.is_refund() {
            self.track(&correction.acquisition);
        }
        let known = match correction.cost {
            RealCost::Known(known) => Some(cost(allowance, known)),
            RealCost::Unknown => None,
        };
        let acquired_at = since_epoch(correction.acquired_at);
        let correction = Correction { acquired_at, estimate: cost(allowance, *estimate), cost: known };
        self.change(key, account, |tracked| {
            tracked.allowance = *allowance;
            tracked.usage.peek(allowance, now, 0);
            tracked.usage.correct(allowance, now, correction);
        });
    }

    /// The amount that could be acquired now.
    pub fn available(&mut self, time: Micros, take: &LimitAcquisition) -> Amount {
        self.advance_to(time);
        // Binary search for the largest admitted cost: if a cost is admitted, so is every smaller one.
        let (mut admitted, mut refused) = (0, u64::MAX);
        while refused - admitted > 1 {
            let cost = admitted + (refused - admitted) / 2;
            match self.peek(&take.key, &take.allowance, u128::from(cost)) {
                LimitAnswer::Admitted => admitted = cost,
                LimitAnswer::After(_) | LimitAnswer::Never => refused = cost,
            }
        }
        match take.allowance {
            Allowance::Slots { .. } => Amount::from_whole(admitted),
            _ => Amount::from_millionths(admitted),
        }
    }

    /// Releases a slot.
    pub fn release(&mut self, key: &str) {
        let Some(TrackedLimit { usage: LimitUsage::Slots(held), .. }) = self.keys.get_mut(key) else {
            return;
        };
        *held = held.saturating_sub(1);
        if *held == 0 {
            self.remove(key);
        }
    }

    /// Advances the latest known time. If the clock stepped back, all stored times step back too.
    fn advance_to(&mut self, time: Micros) {
        if time >= self.now.saturating_sub(CLOCK_TOLERANCE) {
            self.now = self.now.max(time);
            return;
        }
        let before = mem::replace(&mut self.now, time);
        self.due.clear();
        for (key, tracked) in &mut self.keys {
            // What was refilled before the step stays refilled.
            tracked.usage.peek(&tracked.allowance, before, 0);
            tracked.usage.clamp_to(time);
            tracked.charges.update(&mut self.shares, tracked.usage.size(), &Account::NOBODY);
            tracked.due = tracked.usage.reset_at(&tracked.allowance);
            self.due.extend(tracked.due.map(|due| (due, Arc::clone(key))));
        }
    }

    fn peek(&mut self, key: &str, allowance: &Allowance, cost: u128) -> LimitAnswer {
        let now = self.now;
        let tracked = self.change(key, &Account::NOBODY, |tracked| {
            tracked.allowance = *allowance;
            tracked.usage.peek(allowance, now, cost)
        });
        tracked.unwrap_or_else(|| LimitUsage::new(allowance, now).peek(allowance, now, cost))
    }

    fn acquire_one(&mut self, take: &LimitAcquisition) {
        let now = self.now;
        let LimitAcquisition { key, account, allowance, .. } = take;
        self.track(take);
        self.change(key, account, |tracked| tracked.usage.acquire(now, cost(allowance, take.cost)));
    }

    /// Tracks the limit of an acquisition, unused if it is new.
    fn track(&mut self, take: &LimitAcquisition) {
        let LimitAcquisition { key, account, allowance, .. } = take;
        if !self.keys.contains_key(key.as_str()) {
            let usage = LimitUsage::new(allowance, self.now);
            let mut charges = AccountCharges::default();
            charges.update(&mut self.shares, usage.size(), account);
            let tracked = TrackedLimit { usage, charges, allowance: *allowance, due: None };
            self.keys.insert(Arc::from(key.as_str()), tracked);
        }
    }

    /// Changes a tracked limit, and updates the shares and the due time. Growth is charged to the account.
    fn change<T>(
        &mut self,
        key: &str,
        account: &Account,
        change: impl FnOnce(&mut TrackedLimit) -> T,
    ) -> Option<T> {
        let tracked = self.keys.get_mut(key)?;
        let answer = change(tracked);
        tracked.charges.update(&mut self.shares, tracked.usage.size(), account);
        let reset_at = tracked.usage.reset_at(&tracked.allowance);
        if reset_at.is_some_and(|reset_at| tracked.due.is_none_or(|due| reset_at < due)) {
            self.schedule(key, reset_at);
        }
        Some(answer)
    }

    fn schedule(&mut self, key: &str, due: Option<Micros>) {
        let Some((key, _)) = self.keys.get_key_value(key) else { return };
        let key = Arc::clone(key);
        let Some(tracked) = self.keys.get_mut(&key) else { return };
        if let Some(before) = mem::replace(&mut tracked.due, due) {
            self.due.remove(&(before, Arc::clone(&key)));
        }
        self.due.extend(due.map(|due| (due, key)));
    }

    fn remove_some_due(&mut self) {
        for _ in 0..DUE_CHECKS {
            let Some(key) = self.next_due() else { return };
            self.remove_or_reschedule(&key);
        }
    }

    /// Makes room for these keys.
    ///
    /// # Errors
    /// If there is none for one of the accounts. A limit in use is never dropped.
    fn make_room(&mut self, requested: &HashMap<&str, RequestedAmount>) -> Result<(), StoreError> {
        while !self.has_room(requested) {
            let Some(key) = self.next_due() else {
                return Err(StoreError::QuotaExceeded(format!(
                    "this caller's share of the {} limits that the store tracks is full, and none of them can be removed yet",
                    self.shares.capacity()
                )));
            };
            self.remove_or_reschedule(&key);
        }
        Ok(())
    }

    fn has_room(&self, requested: &HashMap<&str, RequestedAmount>) -> bool {
        let mut needed: HashMap<Account, usize> = HashMap::new();
        for (key, requested) in requested {
            // A limit is charged to the account that created it; only its growth is charged to the account that makes it
            // grow.
            let grows = self
                .keys
                .get(*key)
                .is_none_or(|tracked| matches!(tracked.usage, LimitUsage::SlidingWindow(_)));
            *needed.entry(requested.account).or_default() += usize::from(grows);
        }
        let all: usize = needed.values().sum();
        self.shares.used().saturating_add(all) <= self.shares.capacity()
            && needed.iter().all(|(account, more)| self.shares.admits(account, *more))
    }

    /// The first key that is due.
    fn next_due(&self) -> Option<Arc<str>> {
        self.due.first().filter(|(due, _)| *due <= self.now).map(|(_, key)| Arc::clone(key))
    }

    /// Removes a key that is back at its initial state; otherwise reschedules it. Returns whether it was removed.
    fn remove_or_reschedule(&mut self, key: &str) -> bool {
        let reset_at = self.keys.get(key).and_then(|tracked| tracked.usage.reset_at(&tracked.allowance));
        let fresh = reset_at.is_some_and(|reset_at| reset_at <= self.now);
        if fresh {
            self.remove(key)
        } else {
            self.schedule(key, reset_at)
        }
        fresh
    }

    fn remove(&mut self, key: &str) {
        if let Some((key, mut tracked)) = self.keys.remove_entry(key) {
            tracked.charges.release(&mut self.shares);
            if let Some(due) = tracked.due {
                self.due.remove(&(due, key));
            }
        }
    }
}

/// A duration; negative values become zero.
fn span(micros: Micros) -> Duration {
    Duration::from_micros(micros.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests;
