//! Shares the room of a store among tenants and callers. Everything that bounds what it remembers asks here.
//!
//! A tenant may hold no more than what is still free, and a caller no more than its tenant may still take. So a caller alone gets a third
//! of the room and a tenant alone a half; `n` tenants that take all they can leave an equal part, `1 / (n + 1)` of the room, to whoever
//! comes next. Nothing that others hold has to be taken back for that.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::host::Account;

/// How much a store remembers, in all. Each tenant and each caller has a share of it.
///
/// A tenant may hold no more than what is still free, and a caller no more than its tenant may still take: a caller alone a third, a
/// tenant alone a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Limits that are tracked at once, each for one value of its key. A sliding window counts once for each time that it remembers.
    pub limits: usize,
    /// Records, in units of 4 KiB. A record takes at least one.
    pub records: usize,
    /// Cached results, in units of 4 KiB. A result takes at least one.
    pub cached: usize,
}

/// Bytes of a unit.
const UNIT: usize = 4096;
pub const UNITS_OF_MIB: usize = (1 << 20) / UNIT;

/// The units that so many bytes take.
pub fn units(bytes: usize) -> usize {
    bytes / UNIT + 1
}

/// How much of some room is held, and by whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    capacity: usize,
    used: usize,
    /// Tenants and callers; no two of them have the same name.
    holders: HashMap<Vec<u8>, usize>,
}

impl Shares {
    /// Room of which nothing is held.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, used: 0, holders: HashMap::new() }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What all together hold.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Whether an account may hold so much more.
    pub fn admits(&self, account: &Account, more: usize) -> bool {
        if more == 0 {
            return true;
        }
        let held = |holder: &[u8]| self.held(holder).saturating_add(more);
        let Some(free) = self.capacity.checked_sub(self.used.saturating_add(more)) else { return false };
        free.checked_sub(held(account.tenant())).is_some_and(|left| held(account.caller()) <= left)
    }

    /// Counts what an account holds more.
    pub fn charge(&mut self, account: &Account, more: usize) {
        self.recharge(account, 0, more);
    }

    /// Counts what an account holds no longer.
    pub fn release(&mut self, account: &Account, less: usize) {
        self.recharge(account, less, 0);
    }

    /// Counts something that an account holds as large as it is now.
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

/// Who caused something to be as large as it is, in the order in which it grew: what leaves first is charged to whoever came first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges(VecDeque<(Account, usize)>);

impl Charges {
    /// Charges what it is larger by than before to an account, or releases what it is smaller by.
    pub fn follow(&mut self, shares: &mut Shares, size: usize, account: &Account) {
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

    /// Releases all of it.
    pub fn release(&mut self, shares: &mut Shares) {
        self.follow(shares, 0, &Account::NOBODY);
    }
}

#[cfg(any(test, feature = "file-store"))]
impl Charges {
    /// Reads what [`iter`](Self::iter) gave.
    pub fn from_parts(parts: impl IntoIterator<Item = (Account, usize)>) -> Self {
        Self(parts.into_iter().filter(|(_, held)| *held > 0).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Account, usize)> {
        self.0.iter()
    }
}

/// The accounts to evict from: the heaviest callers of the heaviest tenants. Of several that are equally heavy, what was used longest ago
/// is to give way.
pub fn heaviest(accounts: impl IntoIterator<Item = (Account, usize)>) -> HashSet<Account> {
    let accounts: Vec<(Account, usize)> = accounts.into_iter().collect();
    // What each tenant holds, and the most that a caller of it holds.
    let mut tenants: HashMap<&[u8], (usize, usize)> = HashMap::new();
    for (account, held) in &accounts {
        let tenant = tenants.entry(account.tenant()).or_default();
        *tenant = (tenant.0 + held, tenant.1.max(*held));
    }
    let most = tenants.values().map(|(held, _)| *held).max().unwrap_or_default();
    let gives_way =
        |(account, held): &&(Account, usize)| tenants.get(account.tenant()) == Some(&(most, *held));
    accounts.iter().filter(gives_way).map(|(account, _)| *account).collect()
}

/// What a store has of shares that it keeps elsewhere, brought here for one piece of work.
#[cfg(feature = "file-store")]
impl Shares {
    /// A part in which no holder is known yet.
    pub fn part(capacity: usize, used: usize) -> Self {
        Self { used, ..Self::new(capacity) }
    }

    /// Brings what a holder holds, which counts already. One that was brought before stays as it is.
    pub fn bring(&mut self, holder: &[u8], held: usize) {
        if held > 0 {
            self.holders.entry(holder.to_vec()).or_insert(held);
        }
    }

    /// The holders of whom another amount was known before, with what they hold now.
    pub fn changes<'s>(&'s self, before: &'s Self) -> impl Iterator<Item = (&'s [u8], usize)> {
        let gone = before.holders.keys().filter(|holder| !self.holders.contains_key(*holder));
        let changed = self.holders.iter().filter(|(holder, held)| before.held(holder) != **held);
        let gone = gone.map(|holder| (holder.as_slice(), 0));
        gone.chain(changed.map(|(holder, held)| (holder.as_slice(), *held)))
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

    /// Takes one after the other until there is no more.
    fn fill(shares: &mut Shares, account: &Account) -> usize {
        let mut taken = 0;
        while shares.admits(account, 1) {
            shares.charge(account, 1);
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_caller_alone_gets_a_third_and_a_tenant_alone_a_half() {
        for capacity in [3, 30, 300, 3_000] {
            let mut shares = Shares::new(capacity);
            assert_eq!(fill(&mut shares, &account(0, 0)), capacity / 3);
            for caller in 1..1_000 {
                fill(&mut shares, &account(0, caller));
            }
            assert!(shares.used().abs_diff(capacity / 2) <= 2, "{} of {capacity}", shares.used());
        }
    }

    #[test]
    fn however_many_greedy_tenants_came_before_the_next_one_gets_as_much_as_they_left() {
        let mut shares = Shares::new(10_000);
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
    fn the_heaviest_caller_of_the_heaviest_tenant_gives_way() {
        let (single, many) = (account(0, 0), [account(1, 0), account(1, 1)]);
        assert_eq!(heaviest([(single, 5), (many[0], 4), (many[1], 3)]), [many[0]].into());
        assert_eq!(heaviest([(single, 9), (many[0], 4), (many[1], 4)]), [single].into());
        assert_eq!(heaviest([(single, 5), (many[0], 4), (many[1], 1)]), [single, many[0]].into());
        assert_eq!(heaviest([]), [].into());
    }

    proptest! {
        #[test]
        fn the_sums_are_those_of_what_is_held(
            steps in prop::collection::vec((0..3_usize, 0..3_usize, 0..9_usize, any::<bool>()), 0..200),
        ) {
            let mut shares = Shares::new(60);
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
