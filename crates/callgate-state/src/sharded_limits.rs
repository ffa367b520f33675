//! Limits split into shards, each with its part of the limit: acquisitions of different shards do not wait for each other in the store.
//!
//! The parts add up to the limit, so it is never exceeded. The price is that a call may be refused although a little is left, in the other
//! shards: see [`ShardedLimits`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::call::Amount;
use callgate::host::{
    Allowance, BoxFuture, LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, RealCost, StoreError,
    StoreFuture,
};
use callgate::state::limit_algorithms::since_epoch;
use callgate::state::recent_acquisitions::RecentAcquisitions;
use jiff::Timestamp;

/// A limit is split if each shard has at least this amount, and a call of a greater part of its shard is taken from all shards.
const PARTS_OF_A_SHARD: u64 = 100;
/// How many limits that were used up are remembered.
const MAX_USED_UP: usize = 10_000;
/// How long a refusal by all shards lets further calls ask one of them only: a caller who repeats a refused call would otherwise ask all of
/// them each time.
const USED_UP_FOR: Duration = Duration::from_millis(100);

/// Limits of a store, those of a great amount split into shards.
///
/// - A limit of less than 100 for each shard is not split, and stays exact. Slots are never split.
/// - A call that costs a hundredth of a shard or less is taken from one of them, and from another one if that has too little left. It is
///   refused only when less than a hundredth of the whole limit is left, or was left a tenth of a second ago.
/// - A call that costs more is taken from all shards alike. It may be refused earlier, as far as smaller calls have filled the shards
///   unevenly.
/// - A limit that becomes so great that it is split, or the other way round, starts from zero, as one whose algorithm changes.
///
/// All processes must use the same number of shards.
pub struct ShardedLimits {
    store: Arc<dyn LimitStore>,
    shards: u32,
    /// The shard of each acquisition that was taken from one.
    taken_from: Mutex<RecentAcquisitions<u32>>,
    used_up: Mutex<HashMap<String, UsedUp>>,
}

/// A limit of which no shard had this amount left at this time.
struct UsedUp {
    at: Timestamp,
    cost: Amount,
}

/// Where an acquisition is taken from.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// The limit is not split.
    Whole,
    /// All shards alike.
    All,
    /// One shard. `untried`: those that are tried if it has too little left.
    One {
        shard: u32,
        untried: Vec<u32>,
        /// Whether all shards are tried before it is refused.
        asks_all: bool,
        /// The shortest wait of those that were tried.
        wait: Option<Duration>,
    },
}

impl ShardedLimits {
    /// Limits in a store, great ones in so many shards (at least one).
    pub fn new(store: Arc<dyn LimitStore>, shards: u32) -> Self {
        Self { store, shards: shards.max(1), taken_from: Mutex::default(), used_up: Mutex::default() }
    }

    // Every update of these is a single step, so a panic elsewhere leaves them consistent.
    fn used_up(&self) -> MutexGuard<'_, HashMap<String, UsedUp>> {
        self.used_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken_from(&self) -> MutexGuard<'_, RecentAcquisitions<u32>> {
        self.taken_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, now: Timestamp, take: &LimitAcquisition) -> Place {
        let Some(most) = capacity(&take.allowance) else { return Place::Whole };
        let shard = self.part(most);
        if shard < Amount::from_whole(PARTS_OF_A_SHARD) {
            return Place::Whole;
        }
        if take.cost.millionths() > shard.millionths() / PARTS_OF_A_SHARD {
            return Place::All;
        }
        let mut shards: Vec<u32> = (0..self.shards).collect();
        fastrand::shuffle(&mut shards);
        let is_used_up = self.used_up().get(&take.key).is_some_and(|found| {
            found.cost <= take.cost
                && Duration::try_from(now.duration_since(found.at)).is_ok_and(|age| age < USED_UP_FOR)
        });
        let shard = shards.pop().unwrap_or(0);
        let untried = if is_used_up { Vec::new() } else { shards };
        Place::One { shard, untried, asks_all: !is_used_up, wait: None }
    }

    /// The part of an allowance that a shard has: rounded down, so that all together have no more.
    fn part(&self, amount: Amount) -> Amount {
        Amount::from_millionths(amount.millionths() / u64::from(self.shards))
    }

    /// The part of a cost that a shard is charged: rounded up, so that all together are charged no less.
    fn part_of_cost(&self, cost: Amount) -> Amount {
        Amount::from_millionths(cost.millionths().div_ceil(u64::from(self.shards)))
    }

    /// An acquisition of one shard.
    fn in_shard(&self, take: &LimitAcquisition, shard: u32, cost: Amount) -> LimitAcquisition {
        let allowance = match take.allowance {
            Allowance::Gcra { limit, per, burst } => {
                Allowance::Gcra { limit: self.part(limit), per, burst: self.part(burst) }
            }
            Allowance::FixedWindow { limit, per } => Allowance::FixedWindow { limit: self.part(limit), per },
            Allowance::SlidingWindow { limit, per } => {
                Allowance::SlidingWindow { limit: self.part(limit), per }
            }
            Allowance::Total { limit, keep } => Allowance::Total { limit: self.part(limit), keep },
            slots @ Allowance::Slots { .. } => slots,
        };
        LimitAcquisition {
            key: format!("{} {shard}/{}", take.key, self.shards),
            account: take.account,
            allowance,
            cost,
        }
    }

    fn in_all_shards(&self, take: &LimitAcquisition, cost: Amount) -> impl Iterator<Item = LimitAcquisition> {
        (0..self.shards).map(move |shard| self.in_shard(take, shard, cost))
    }

    async fn acquire_from_shards(
        &self,
        now: Timestamp,
        takes: &[LimitAcquisition],
    ) -> Result<Vec<LimitRefusal>, StoreError> {
        let mut places: Vec<Place> = takes.iter().map(|take| self.place(now, take)).collect();
        loop {
            // For each acquisition of the batch, the index of the one that it is a part of.
            let (mut batch, mut wholes) = (Vec::with_capacity(takes.len()), Vec::new());
            for (index, (take, place)) in takes.iter().zip(&places).enumerate() {
                match place {
                    Place::Whole => batch.push(take.clone()),
                    Place::All => batch.extend(self.in_all_shards(take, self.part_of_cost(take.cost))),
                    Place::One { shard, .. } => batch.push(self.in_shard(take, *shard, take.cost)),
                }
                wholes.resize(batch.len(), index);
            }
            let refused = self.store.acquire(now, &batch).await?;
            if refused.is_empty() {
                let mut remembered = self.taken_from();
                for (take, place) in takes.iter().zip(&places) {
                    if let Place::One { shard, .. } = place {
                        remembered.remember(&take.key, since_epoch(now), *shard);
                    }
                }
                return Ok(Vec::new());
            }
            let refusals = next_shards(&refused, &wholes, &mut places);
            if !refusals.is_empty() {
                self.remember_used_up(now, takes, &places, &refusals);
                return Ok(refusals);
            }
        }
    }

    fn remember_used_up(
        &self,
        now: Timestamp,
        takes: &[LimitAcquisition],
        places: &[Place],
        refusals: &[LimitRefusal],
    ) {
        let mut used_up = self.used_up();
        for refusal in refusals {
            let Some(take) = takes.get(refusal.index) else { continue };
            if let Some(Place::One { asks_all: true, .. }) = places.get(refusal.index) {
                if used_up.len() >= MAX_USED_UP {
                    used_up.clear();
                }
                used_up.insert(take.key.clone(), UsedUp { at: now, cost: take.cost });
            }
        }
    }

    /// The corrections of the shards for one of a whole limit.
    fn corrections(&self, correction: &LimitCorrection) -> Vec<LimitCorrection> {
        let LimitCorrection { acquisition: take, acquired_at, cost } = correction;
        let correct = |acquisition, cost| LimitCorrection { acquisition, acquired_at: *acquired_at, cost };
        let estimate = match self.place(*acquired_at, take) {
            Place::Whole => return vec![correction.clone()],
            Place::All => None,
            Place::One { .. } => {
                // Of one that is not remembered any more: all shards together still count what was used.
                let remembered = self.taken_from().get(&take.key, since_epoch(*acquired_at));
                Some((remembered.unwrap_or(0), take.cost))
            }
        };
        match (estimate, *cost) {
            (None, cost) => {
                let cost = match cost {
                    RealCost::Known(cost) => RealCost::Known(self.part_of_cost(cost)),
                    RealCost::Unknown => RealCost::Unknown,
                };
                let parts = self.in_all_shards(take, self.part_of_cost(take.cost));
                parts.map(|part| correct(part, cost)).collect()
            }
            (Some((shard, estimate)), RealCost::Known(cost)) if cost <= estimate => {
                vec![correct(self.in_shard(take, shard, estimate), RealCost::Known(cost))]
            }
            // What a call used beyond its estimate is taken from all shards: no call is admitted until it has flowed back.
            (Some((shard, estimate)), cost) => (0..self.shards)
                .map(|number| {
                    let estimate = if number == shard { estimate } else { Amount::from_millionths(1) };
                    let cost = match cost {
                        RealCost::Known(cost) => {
                            let excess = self.part_of_cost(cost.saturating_sub(take.cost));
                            RealCost::Known(estimate.saturating_add(excess))
                        }
                        RealCost::Unknown => RealCost::Unknown,
                    };
                    correct(self.in_shard(take, number, estimate), cost)
                })
                .collect(),
        }
    }
}

/// Moves what one shard refused to another one. Returns the refusals of what no other shard is left for: then nothing can be acquired.
fn next_shards(refused: &[LimitRefusal], wholes: &[usize], places: &mut [Place]) -> Vec<LimitRefusal> {
    let mut by_whole: BTreeMap<usize, Vec<Option<Duration>>> = BTreeMap::new();
    for refusal in refused {
        if let Some(index) = wholes.get(refusal.index) {
            by_whole.entry(*index).or_default().push(refusal.retry_after);
        }
    }
    let mut final_refusals = Vec::new();
    for (index, waits) in by_whole {
        // All parts must be available.
        let wait = waits.into_iter().reduce(|one, other| Some(one?.max(other?))).flatten();
        let retry_after = match places.get_mut(index) {
            Some(Place::One { shard, untried, wait: least, .. }) => {
                *least = [*least, wait].into_iter().flatten().min();
                match untried.pop() {
                    Some(next) => {
                        *shard = next;
                        continue;
                    }
                    None => *least,
                }
            }
            _ => wait,
        };
        final_refusals.push(LimitRefusal { index, retry_after });
    }
    final_refusals
}

/// The amount that is available at once. `None` for slots.
fn capacity(allowance: &Allowance) -> Option<Amount> {
    match allowance {
        Allowance::Gcra { limit, burst, .. } => Some(*limit.min(burst)),
        Allowance::FixedWindow { limit, .. }
        | Allowance::SlidingWindow { limit, .. }
        | Allowance::Total { limit, .. } => Some(*limit),
        Allowance::Slots { .. } => None,
    }
}

impl LimitStore for ShardedLimits {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(self.acquire_from_shards(now, takes))
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        let corrections: Vec<_> = corrections.iter().flat_map(|one| self.corrections(one)).collect();
        Box::pin(async move { self.store.correct(now, &corrections).await })
    }

    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        Box::pin(async move {
            if self.place(now, take) == Place::Whole {
                return self.store.available(now, take).await;
            }
            let mut sum = Amount::from_millionths(0);
            for part in self.in_all_shards(take, take.cost) {
                let Some(available) = self.store.available(now, &part).await? else { return Ok(None) };
                sum = sum.saturating_add(available);
            }
            Ok(Some(sum))
        })
    }

    fn release(&self, key: &str) {
        self.store.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.store.slot_released()
    }

    fn exposes_limits(&self) -> bool {
        self.store.exposes_limits()
    }
}

#[cfg(test)]
mod tests;
