//! Limits in a host's own store, which needs to know nothing about them: it stores one value for each limit, and writes the values of a
//! batch by compare-and-swap. What is acquired is decided here.

use std::array;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use callgate::host::{
    Allowance, Amount, BoxFuture, LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, StoreError,
    StoreFuture,
};
use callgate::state::capacity::CapacityShares;
use callgate::state::limit_algorithms::{Micros, encoding, since_epoch};
use callgate::state::limit_table::LimitTable;
use callgate::state::limit_table::batch::keys_of;
use callgate::state::limit_table::subset::{LoadedLimit, SharedLimitState};
use data_encoding::BASE64;
use jiff::Timestamp;
use tokio::sync::Mutex;

/// How many limits can be changed concurrently.
const LOCKS: usize = 64;
/// How often a batch is decided again after concurrent writes.
const MAX_ATTEMPTS: usize = 64;

/// The value of a limit as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitValue {
    /// What [`LimitWrite::value`] was.
    pub value: String,
    /// Changes with each write.
    pub version: u64,
}

/// A conditional write of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitWrite {
    /// The key of the limit.
    pub key: String,
    /// The new value, which has no meaning to the store.
    pub value: String,
    /// The version that the stored value must have; `None` if none may exist.
    pub expected_version: Option<u64>,
    /// When the store may delete the value; `None` for never.
    pub forget_at: Option<Timestamp>,
}

/// A store of values by key, which a host implements.
pub trait LimitValues: Send + Sync {
    /// The values of these keys, in their order.
    fn read<'a>(&'a self, keys: &'a [String]) -> StoreFuture<'a, Vec<Option<LimitValue>>>;

    /// Writes all of these values in one step, if every stored version is the expected one; otherwise writes none. Returns whether it wrote.
    fn write<'a>(&'a self, writes: &'a [LimitWrite]) -> StoreFuture<'a, bool>;
}

/// Limits in a store of values. Slots, which end with their process, are acquired in another store.
pub struct VersionedLimits {
    values: Arc<dyn LimitValues>,
    slots: Arc<dyn LimitStore>,
    /// Calls of this process that change the same limit wait for each other, so that only other processes cause conflicts. The hash of a
    /// batch's first key selects the lock.
    locks: [Mutex<()>; LOCKS],
    hasher: RandomState,
}

impl VersionedLimits {
    /// Limits in `values`, with slots in `slots`.
    pub fn new(values: Arc<dyn LimitValues>, slots: Arc<dyn LimitStore>) -> Self {
        Self { values, slots, locks: array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }

    async fn load(&self, takes: &[LimitAcquisition]) -> Result<LoadedBatch, StoreError> {
        let keys: Vec<String> = keys_of(takes).into_iter().map(str::to_owned).collect();
        let values = if keys.is_empty() { Vec::new() } else { self.values.read(&keys).await? };
        if values.len() != keys.len() {
            return Err(StoreError::Unavailable(format!(
                "the store of limits returned {} values for {} keys",
                values.len(),
                keys.len()
            )));
        }
        LoadedBatch::new(keys, values)
    }

    /// The lock of a batch. Returns `None` if it is empty.
    fn lock_of(&self, takes: &[LimitAcquisition]) -> Option<&Mutex<()>> {
        let key = keys_of(takes).into_iter().next()?;
        let index = self.hasher.hash_one(key) % LOCKS as u64;
        self.locks.get(usize::try_from(index).ok()?)
    }

    /// Decides a batch, and writes what `decide` changes; again if others wrote in between.
    async fn update<T>(
        &self,
        time: Micros,
        takes: &[LimitAcquisition],
        decide: impl Fn(&mut LimitTable) -> Result<Decided<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let _held = match self.lock_of(takes) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        for _ in 0..MAX_ATTEMPTS {
            let mut batch = self.load(takes).await?;
            // After a step of the clock, waits count from the first time that the step was seen.
            let is_step_back = batch.before.is_step_back(time);
            let Decided { answer, is_changed } = decide(&mut batch.limits)?;
            if !is_changed && !is_step_back {
                return Ok(answer);
            }
            let writes = batch.writes();
            if writes.is_empty() || self.values.write(&writes).await? {
                return Ok(answer);
            }
        }
        Err(StoreError::Unavailable(format!(
            "the limits were changed by others {MAX_ATTEMPTS} times while they were acquired"
        )))
    }

    async fn acquire_values(
        &self,
        time: Micros,
        takes: &[LimitAcquisition],
    ) -> Result<Vec<LimitRefusal>, StoreError> {
        let decide = |limits: &mut LimitTable| {
            let answer = limits.acquire(time, takes)?;
            Ok(Decided { is_changed: answer.is_empty(), answer })
        };
        self.update(time, takes, decide).await
    }
}

/// What was decided on a batch.
struct Decided<T> {
    answer: T,
    /// Whether it is to be written.
    is_changed: bool,
}

/// The limits of a batch.
struct LoadedBatch {
    limits: LimitTable,
    before: SharedLimitState,
    keys: Vec<String>,
    values: Vec<Option<LimitValue>>,
}

impl LoadedBatch {
    fn new(keys: Vec<String>, values: Vec<Option<LimitValue>>) -> Result<Self, StoreError> {
        let mut now = Micros::MIN;
        let mut loaded = Vec::new();
        for (key, value) in keys.iter().zip(&values) {
            if let Some(value) = value {
                let (time, limit) = decode(&value.value).ok_or_else(|| {
                    StoreError::Unavailable(format!(
                        "the store of limits returned something else than Callgate wrote for `{key}`"
                    ))
                })?;
                now = now.max(time);
                loaded.push((key, limit));
            }
        }
        // The host bounds its store: shares are those of this batch alone.
        let before = SharedLimitState { shares: CapacityShares::new(usize::MAX), now };
        let mut limits = LimitTable::subset(before.clone());
        for (key, limit) in loaded {
            limits.load(key, limit, None);
        }
        Ok(Self { limits, before, keys, values })
    }

    /// The values that have changed.
    fn writes(&self) -> Vec<LimitWrite> {
        let now = self.limits.shared_state().now;
        let changed = self.keys.iter().zip(&self.values).filter_map(|(key, stored)| {
            let limit = self.limits.get(key)?;
            let value = encode(now, &encoding::encode(limit.usage, limit.allowance));
            if stored.as_ref().is_some_and(|stored| stored.value == value) {
                return None;
            }
            let forget_at = limit.usage.reset_at(limit.allowance);
            let forget_at = forget_at.and_then(|at| Timestamp::from_microsecond(at).ok());
            let expected_version = stored.as_ref().map(|stored| stored.version);
            Some(LimitWrite { key: key.clone(), value, expected_version, forget_at })
        });
        changed.collect()
    }
}

/// A limit with the latest time at which it was used.
fn encode(now: Micros, usage: &[u8]) -> String {
    format!("{now}:{}", BASE64.encode(usage))
}

fn decode(value: &str) -> Option<(Micros, LoadedLimit)> {
    let (time, usage) = value.split_once(':')?;
    let (usage, allowance) = encoding::decode(&BASE64.decode(usage.as_bytes()).ok()?)?;
    Some((time.parse().ok()?, LoadedLimit { usage, allowance, charges: Default::default() }))
}

fn is_slot(take: &LimitAcquisition) -> bool {
    matches!(take.allowance, Allowance::Slots { .. })
}

/// Slots that are released unless the whole batch is acquired.
struct AcquiredSlots<'a> {
    store: &'a dyn LimitStore,
    slots: Vec<LimitAcquisition>,
}

impl Drop for AcquiredSlots<'_> {
    fn drop(&mut self) {
        for slot in &self.slots {
            self.store.release(&slot.key);
        }
    }
}

impl LimitStore for VersionedLimits {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(async move {
            let time = since_epoch(now);
            if !takes.iter().any(is_slot) {
                return self.acquire_values(time, takes).await;
            }
            let part = |slots: bool| -> (Vec<usize>, Vec<LimitAcquisition>) {
                let parts = takes.iter().enumerate().filter(|(_, take)| is_slot(take) == slots);
                parts.map(|(index, take)| (index, take.clone())).unzip()
            };
            let ((slot_indices, slots), (indices, others)) = (part(true), part(false));
            let refused = |refusals: Vec<LimitRefusal>, indices: &[usize]| -> Vec<LimitRefusal> {
                let whole = |refusal: LimitRefusal| {
                    Some(LimitRefusal { index: *indices.get(refusal.index)?, ..refusal })
                };
                refusals.into_iter().filter_map(whole).collect()
            };
            let mut refusals = refused(self.slots.acquire(now, &slots).await?, &slot_indices);
            if refusals.is_empty() {
                let mut acquired = AcquiredSlots { store: &*self.slots, slots };
                refusals = refused(self.acquire_values(time, &others).await?, &indices);
                if refusals.is_empty() {
                    acquired.slots.clear();
                }
            } else {
                let further = self.load(&others).await?.limits.acquire(time, &others)?;
                refusals.extend(refused(further, &indices));
                refusals.sort_by_key(|refusal| refusal.index);
            }
            Ok(refusals)
        })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let time = since_epoch(now);
            let takes: Vec<LimitAcquisition> =
                corrections.iter().map(|correction| correction.acquisition.clone()).collect();
            let decide = |limits: &mut LimitTable| {
                limits.correct(time, corrections)?;
                Ok(Decided { answer: (), is_changed: true })
            };
            self.update(time, &takes, decide).await
        })
    }

    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        if is_slot(take) {
            return self.slots.available(now, take);
        }
        Box::pin(async move {
            // The cost only says that the limit is of interest.
            let asked = [LimitAcquisition { cost: Amount::from_whole(1), ..take.clone() }];
            Ok(Some(self.load(&asked).await?.limits.available(since_epoch(now), take)))
        })
    }

    fn release(&self, key: &str) {
        self.slots.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.slots.slot_released()
    }

    fn exposes_limits(&self) -> bool {
        true
    }
}
