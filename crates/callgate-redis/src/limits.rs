//! Limits: acquisitions and corrections → the arguments of scripts, and their replies → refusals.

use std::time::Duration;

use callgate::host::{
    Account, Allowance, LimitAcquisition, LimitCorrection, LimitRefusal, RealCost, StoreError,
};
use callgate::state::limit_algorithms::{Micros, cost, since_epoch};
use data_encoding::HEXLOWER;
use jiff::Timestamp;

use super::error::RedisStoreError;
use super::slots::Slot;

/// The longest period, about 142 years: the server's scripts count microseconds exactly up to 2^53. A longer period counts as this one.
const LONGEST_PERIOD: Micros = 1 << 52;

/// A batch of acquisitions, by key.
pub(crate) struct AcquisitionBatch {
    keys: Vec<KeyAcquisitions>,
    pub(crate) slots: Vec<Slot>,
}

struct KeyAcquisitions {
    take: LimitAcquisition,
    /// For each acquisition, its index in the batch and the sum of the costs up to it.
    sums: Vec<(usize, u128)>,
    slots: Vec<Slot>,
}

/// The reply to an acquisition.
pub(crate) enum AcquisitionReply {
    /// It was acquired at this time, or refused.
    Answered {
        /// The limits without enough left.
        refusals: Vec<LimitRefusal>,
        /// The time that the server counts it at.
        at: Micros,
    },
    /// The account's share is full.
    Full,
    /// Some limits were removed to make room, and more may be.
    Retry,
}

impl AcquisitionBatch {
    /// Groups a batch by key. `new_slot` names a slot.
    ///
    /// # Errors
    /// A key has different allowances.
    pub(crate) fn new(
        takes: &[LimitAcquisition],
        mut new_slot: impl FnMut(&str) -> Slot,
    ) -> Result<Self, StoreError> {
        let mut keys: Vec<KeyAcquisitions> = Vec::new();
        let mut slots = Vec::new();
        for (index, take) in takes.iter().enumerate() {
            let cost = u128::from(cost(&take.allowance, take.cost));
            if cost == 0 {
                continue;
            }
            let position = keys.iter().position(|known| known.take.key == take.key).unwrap_or(keys.len());
            if position == keys.len() {
                keys.push(KeyAcquisitions { take: take.clone(), sums: Vec::new(), slots: Vec::new() });
            }
            let Some(known) = keys.get_mut(position) else { continue };
            if known.take.allowance != take.allowance {
                return Err(StoreError::Unavailable(format!(
                    "acquisition {index} of the batch has the key of an earlier one, but a different allowance"
                )));
            }
            let before = known.sums.last().map_or(0, |(_, sum)| *sum);
            known.sums.push((index, before + cost));
            if matches!(take.allowance, Allowance::Slots { .. }) {
                let slot = new_slot(&take.key);
                known.slots.push(slot.clone());
                slots.push(slot);
            }
        }
        Ok(Self { keys, slots })
    }

    /// Whether it acquires nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The arguments of the script.
    pub(crate) fn arguments(&self, time: Option<Micros>, capacity: usize, owner: &str) -> Vec<Vec<u8>> {
        let mut arguments =
            vec![time_argument(time), number(capacity), owner.as_bytes().to_vec(), number(self.keys.len())];
        for key in &self.keys {
            push_limit(&mut arguments, &key.take);
            arguments.push(number(key.sums.len()));
            arguments.extend(key.sums.iter().map(|(_, sum)| number(sum)));
            arguments.extend(key.slots.iter().map(|slot| number(slot.id)));
        }
        arguments
    }

    /// Reads the reply of the script.
    pub(crate) fn reply(&self, reply: &[String]) -> Result<AcquisitionReply, RedisStoreError> {
        let damaged = || RedisStoreError::Damaged("the server gave an unexpected answer".to_owned());
        let (status, rest) = reply.split_first().ok_or_else(damaged)?;
        match status.as_str() {
            "full" => return Ok(AcquisitionReply::Full),
            "more" => return Ok(AcquisitionReply::Retry),
            "ok" => {}
            _ => return Err(damaged()),
        }
        let [ahead, at, refused @ ..] = rest else { return Err(damaged()) };
        let (ahead, at) = (ahead.parse().map_err(|_| damaged())?, at.parse().map_err(|_| damaged())?);
        let refusals = refused.iter().map(|refusal| self.refusal(refusal, ahead)).collect::<Option<Vec<_>>>();
        let mut refusals = refusals.ok_or_else(damaged)?;
        refusals.sort_by_key(|refusal| refusal.index);
        Ok(AcquisitionReply::Answered { refusals, at })
    }

    /// Reads `KEY SUM ANSWER WAIT`. `ahead`: how far the limits' time is ahead of the caller's.
    fn refusal(&self, text: &str, ahead: Micros) -> Option<LimitRefusal> {
        let words: Vec<&str> = text.split(' ').collect();
        let [key, sum, answer, wait] = words.as_slice() else { return None };
        let key = self.keys.get(key.parse::<usize>().ok()?.checked_sub(1)?)?;
        let (index, _) = *key.sums.get(sum.parse::<usize>().ok()?.checked_sub(1)?)?;
        let wait: u128 = wait.parse().ok()?;
        let wait = match (*answer, key.take.allowance) {
            ("never", _) => return Some(LimitRefusal { index, retry_after: None }),
            ("after", _) => wait,
            ("over", Allowance::Gcra { limit, .. }) if limit.millionths() > 0 => {
                wait.div_ceil(u128::from(limit.millionths()))
            }
            _ => return None,
        };
        let wait = Micros::try_from(wait).unwrap_or(Micros::MAX).saturating_add(ahead);
        Some(LimitRefusal { index, retry_after: Some(Duration::from_micros(wait.max(0).unsigned_abs())) })
    }
}

/// A batch of corrections.
pub(crate) struct CorrectionBatch<'c> {
    /// The corrections.
    pub(crate) corrections: &'c [LimitCorrection],
    /// The time of the caller.
    pub(crate) now: Timestamp,
    /// The time for the script; `None` for the server's.
    pub(crate) time: Option<Micros>,
    /// The number of limits that are tracked at once.
    pub(crate) capacity: usize,
}

impl CorrectionBatch<'_> {
    /// The arguments of the script. `acquired_at` names the time that the server counts an acquisition at, if it is known.
    pub(crate) fn arguments(&self, acquired_at: impl Fn(&LimitCorrection) -> Option<Micros>) -> Vec<Vec<u8>> {
        let is_counted =
            |one: &&LimitCorrection| !matches!(one.acquisition.allowance, Allowance::Slots { .. });
        let counted: Vec<&LimitCorrection> = self.corrections.iter().filter(is_counted).collect();
        let mut arguments = vec![time_argument(self.time), number(self.capacity), number(counted.len())];
        for correction in counted {
            let LimitCorrection { acquisition: take, acquired_at: since, cost: real } = correction;
            let estimate = cost(&take.allowance, take.cost);
            push_limit(&mut arguments, take);
            arguments.push(number(estimate));
            arguments.push(acquired_at(correction).map(number).unwrap_or_default());
            arguments.push(number(since_epoch(self.now).saturating_sub(since_epoch(*since)).max(0)));
            let known = match real {
                RealCost::Known(known) => Some(cost(&take.allowance, *known)),
                RealCost::Unknown => None,
            };
            arguments.push(known.map_or(b"-".to_vec(), |known| number(known.saturating_sub(estimate))));
            arguments.push(number(known.map_or(0, |known| estimate.saturating_sub(known))));
        }
        arguments
    }
}

/// The error of an acquisition when the account's share is full.
pub(crate) fn quota_error(capacity: usize) -> StoreError {
    StoreError::QuotaExceeded(format!(
        "this caller's share of the {capacity} limits that the store tracks is full, and none of them can be removed yet"
    ))
}

/// The hex digits of an account: those of its tenant, then those of its caller.
pub(crate) fn account_argument(account: &Account) -> Vec<u8> {
    let mut digits = HEXLOWER.encode(account.tenant());
    digits.push_str(&HEXLOWER.encode(account.caller()));
    digits.into_bytes()
}

/// A time before 1970 counts as 1970. Without a time, the server's is used.
pub(crate) fn time_argument(time: Option<Micros>) -> Vec<u8> {
    time.map(|time| number(time.max(0))).unwrap_or_default()
}

pub(crate) fn number(number: impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn push_limit(arguments: &mut Vec<Vec<u8>>, take: &LimitAcquisition) {
    let none = Duration::from_micros(1);
    let (kind, limit, per, burst) = match take.allowance {
        Allowance::Gcra { limit, per, burst } => ("g", limit.millionths(), per, burst.millionths()),
        Allowance::FixedWindow { limit, per } => ("f", limit.millionths(), per, 0),
        Allowance::SlidingWindow { limit, per } => ("w", limit.millionths(), per, 0),
        Allowance::Total { limit, keep } => ("t", limit.millionths(), keep, 0),
        Allowance::Slots { max } => ("s", u64::from(max), none, 0),
    };
    arguments.push(take.key.as_bytes().to_vec());
    arguments.push(kind.as_bytes().to_vec());
    arguments.push(account_argument(&take.account));
    arguments.extend([number(limit), number(micros(per)), number(burst)]);
}

/// A period in microseconds, rounded up, because a longer one is stricter.
fn micros(period: Duration) -> Micros {
    let micros = period.as_nanos().div_ceil(1000);
    Micros::try_from(micros).map_or(LONGEST_PERIOD, |micros| micros.clamp(1, LONGEST_PERIOD))
}
