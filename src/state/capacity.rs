//! Fair sharing of a store's capacity among tenants and callers. Everything that stores state checks its share here.
//!
//! A tenant may hold at most as much as is free, and a caller at most as much as its tenant may still acquire. So a single
//! caller gets a third of the capacity and a single tenant a half; `n` tenants that use their full share leave an equal
//! part, `1 / (n + 1)` of the capacity, for the next one. Nothing has to be reclaimed from other holders for that.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::host::Account;

/// The capacity of a store. Each tenant and each caller has a share of it.
///
/// A tenant may hold at most as much as is free, and a caller at most as much as its tenant may still acquire: a single
/// caller gets a third, a single tenant a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The number of limits that are tracked at once, one for each value of a limit's key. A sliding window counts once for
    /// each time in its log.
    pub limits: usize,
    /// Records, in units of 4 KiB. A record takes at least one unit.
    pub records: usize,
    /// Cached results, in units of 4 KiB. A result takes at least one unit.
    pub cached: usize,
}

/// Bytes in a unit.
const UNIT_BYTES: usize = 4096;
pub const UNITS_PER_MIB: usize = (1 << 20) / UNIT_BYTES;

/// The number of units for this many bytes.
pub fn units(bytes: usize) -> usize {
    bytes / UNIT_BYTES + 1
}

/// The usage of a capacity, by holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityShares {
    capacity: usize,
    used: usize,
    /// Usage by tenants and callers; no two of them have the same id.
    holders: HashMap<Vec<u8>, usize>,
}

impl CapacityShares {
    /// An unused capacity.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, used: 0, holders: HashMap::new() }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The usage of all holders.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Whether an account may use this much more.
    pub fn admits(&self, account: &Account, more: usize) -> bool {
        if more == 0 {
            return true;
        }
        let held = |holder: &[u8]| self.held(holder).saturating_add(more);
        let Some(free) = self.capacity.checked_sub(self.used.saturating_add(more)) else { return false };
        free.checked_sub(held(account.tenant())).is_some_and(|left| held(account.caller()) <= left)
    }

    /// Adds to the usage of an account.
    pub fn charge(&mut self, account: &Account, more: usize) {
        self.recharge(account, 0, more);
    }

    /// Subtracts from the usage of an account.
    pub fn release(&mut self, account: &Account, less: usize) {
        self.recharge(account, less, 0);
    }

    /// Updates the usage of an account after something changed its size.
    pub fn recharge(&mut self, account: &Account, before: usize, now: usize) {
        let counted = |used: usize| used.saturating_sub(before).saturating_add(now);
        self.used = counted(self.used);
        for holder in [account.tenant(), account.caller()] {
            let held = counted(self.held(holder));
            if held == 0 {
                self.holders.remove(holder);
            } else {
                self.holders.insert(holder.to_vec(), held);
            }
        }
    }

    fn held(&self, holder: &[u8]) -> usize {
        self.holders.get(holder).copied().unwrap_or(0)
    }
}

/// The accounts that caused an item to grow, in order: when it shrinks, the earliest growth is released first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountCharges(VecDeque<(Account, usize)>);

impl AccountCharges {
    /// Charges growth since the last call to an account, or releases shrinkage.
    pub fn update(&mut self, shares: &mut CapacityShares, size: usize, account: &Account) {
        let mut charged: usize = self.0.iter().map(|(_, held)| held).sum();
        if charged < size {
            shares.charge(account, size - charged);
            match self.0.back_mut() {
                Some((last, held)) if last == account => *held += size - charged,
                _ => self.0.push_back((*account, size - charged)),
            }
        }
        while charged > size {
            let Some((first, held)) = self.0.front_mut() else { return };
            let released = (*held).min(charged - size);
            shares.release(first, released);
            (*held, charged) = (*held - released, charged - released);
            if *held == 0 {
                self.0.pop_front();
            }
        }
    }

    /// Releases everything.
    pub fn release(&mut self, shares: &mut CapacityShares) {
        self.update(shares, 0, &Account::NOBODY);
    }
}

/// The bytes of one charge: tenant, caller and amount.
const CHARGE_BYTES: usize = 40;

impl AccountCharges {
    /// The bytes that a store writes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (account, held) in self.iter() {
            bytes.extend_from_slice(account.tenant());
            bytes.extend_from_slice(account.caller());
            bytes.extend_from_slice(&(*held as u64).to_le_bytes());
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Returns `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let charge = |bytes: &[u8]| {
            let (tenant, rest) = bytes.split_at_checked(16)?;
            let (caller, held) = rest.split_at_checked(16)?;
            let held = u64::from_le_bytes(held.try_into().ok()?);
            Some((Account::from_bytes(tenant, caller)?, usize::try_from(held).ok()?))
        };
        let charges: VecDeque<_> = bytes.chunks(CHARGE_BYTES).map(charge).collect::<Option<_>>()?;
        Some(Self(charges.into_iter().filter(|(_, held)| *held > 0).collect()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Account, usize)> {
        self.0.iter()
    }
}

/// The accounts to evict from: the callers with the most of the tenants with the most. Among equals, the least recently
/// used entry is evicted.
pub fn heaviest_accounts(accounts: impl IntoIterator<Item = (Account, usize)>) -> HashSet<Account> {
    let accounts: Vec<(Account, usize)> = accounts.into_iter().collect();
    // For each tenant, its total and the most that one of its callers holds.
    let mut tenants: HashMap<&[u8], (usize, usize)> = HashMap::new();
    for (account, held) in &accounts {
        let tenant = tenants.entry(account.tenant()).or_default();
        *tenant = (tenant.0 + held, tenant.1.max(*held));
    }
    let most = tenants.values().map(|(held, _)| *held).max().unwrap_or_default();
    let account_to_evict =
        |(account, held): &&(Account, usize)| tenants.get(account.tenant()) == Some(&(most, *held));
    accounts.iter().filter(account_to_evict).map(|(account, _)| *account).collect()
}

/// A subset of shares that are stored elsewhere, loaded for one operation.
impl CapacityShares {
    /// A subset without any holder yet.
    pub fn subset(capacity: usize, used: usize) -> Self {
        Self { used, ..Self::new(capacity) }
    }

    /// Loads the usage of a holder, which the total already includes. A holder that was loaded before is not changed.
    pub fn load(&mut self, holder: &[u8], held: usize) {
        if held > 0 {
            self.holders.entry(holder.to_vec()).or_insert(held);
        }
    }

    /// The holders whose usage has changed since `before`, with their current usage.
    pub fn changes<'s>(&'s self, before: &'s Self) -> impl Iterator<Item = (&'s [u8], usize)> {
        let removed = before.holders.keys().filter(|holder| !self.holders.contains_key(*holder));
        let changed = self.holders.iter().filter(|(holder, held)| before.held(holder) != **held);
        let removed = removed.map(|holder| (holder.as_slice(), 0));
        removed.chain(changed.map(|(holder, held)| (holder.as_slice(), *held)))
    }

    /// By how much the usage of holders has changed since `before`. The holder without a name is the total.
    pub fn growth<'s>(&'s self, before: &'s Self) -> Vec<(&'s [u8], i64)> {
        let signed = |amount: usize| i64::try_from(amount).unwrap_or(i64::MAX);
        let total: (&[u8], i64) = (&[], signed(self.used) - signed(before.used));
        let changed = self.changes(before);
        let changed = changed.map(|(holder, held)| (holder, signed(held) - signed(before.held(holder))));
        changed.chain([total]).filter(|(_, growth)| *growth != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::json;

    fn account(tenant: usize, caller: usize) -> Account {
        Account::from_context(&json!({ "tenant": tenant.to_string(), "principal": caller.to_string() }))
    }

    /// Acquires single units until no more are admitted.
    fn fill(shares: &mut CapacityShares, account: &Account) -> usize {
        let mut count = 0;
        while shares.admits(account, 1) {
            shares.charge(account, 1);
            count += 1;
        }
        count
    }

    #[test]
    fn a_single_caller_gets_a_third_and_a_single_tenant_a_half() {
        for capacity in [3, 30, 300, 3_000] {
            let mut shares = CapacityShares::new(capacity);
            assert_eq!(fill(&mut shares, &account(0, 0)), capacity / 3);
            for caller in 1..1_000 {
                fill(&mut shares, &account(0, caller));
            }
            assert!(shares.used().abs_diff(capacity / 2) <= 2, "{} of {capacity}", shares.used());
        }
    }

    #[test]
    fn the_next_tenant_gets_a_third_of_the_free_capacity_whatever_others_hold() {
        let mut shares = CapacityShares::new(10_000);
        for tenant in 0..20 {
            for caller in 0..50 {
                fill(&mut shares, &account(tenant, caller));
            }
            let mut next = shares.clone();
            let free = shares.capacity() - shares.used();
            let got = fill(&mut next, &account(99, 0));
            assert!(got >= free / 3, "{got} of {free} after {tenant}");
        }
    }

    #[test]
    fn evicts_from_the_heaviest_caller_of_the_heaviest_tenant() {
        let (single, many) = (account(0, 0), [account(1, 0), account(1, 1)]);
        assert_eq!(heaviest_accounts([(single, 5), (many[0], 4), (many[1], 3)]), [many[0]].into());
        assert_eq!(heaviest_accounts([(single, 9), (many[0], 4), (many[1], 4)]), [single].into());
        assert_eq!(heaviest_accounts([(single, 5), (many[0], 4), (many[1], 1)]), [single, many[0]].into());
        assert_eq!(heaviest_accounts([]), [].into());
    }

    proptest! {
        #[test]
        fn totals_match_the_usage_of_all_accounts(
            steps in prop::collection::vec((0..3_usize, 0..3_usize, 0..9_usize, any::<bool>()), 0..200),
        ) {
            let mut shares = CapacityShares::new(60);
            let mut held: HashMap<Account, usize> = HashMap::new();
            for (tenant, caller, amount, gives_back) in steps {
                let account = account(tenant, caller);
                let own = held.entry(account).or_default();
                if gives_back && *own >= amount {
                    shares.release(&account, amount);
                    *own -= amount;
                } else if shares.admits(&account, amount) {
                    shares.charge(&account, amount);
                    *own += amount;
                }
                prop_assert_eq!(shares.used(), held.values().sum::<usize>());
                prop_assert!(shares.used() <= 60);
                for (account, own) in &held {
                    prop_assert_eq!(shares.held(account.caller()), *own);
                }
            }
        }
    }
}
