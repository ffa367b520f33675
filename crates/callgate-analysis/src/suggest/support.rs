//! How well recordings support something: calls, counted with the sessions that made them.
//!
//! Whoever can make an agent call a tool once can do so a thousand times in the same session. So sessions count as evidence, and not
//! calls: a value is *usual* if enough sessions have it, and *rare* otherwise.

use std::collections::{BTreeMap, HashMap};

use crate::recording::CallOrigin;

/// One call as evidence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'c> {
    /// The number of its session.
    pub(super) session: u32,
    /// The number of sessions that make something usual.
    pub(super) required: usize,
    pub(super) origin: &'c CallOrigin,
    /// Whether it is the first value of its session at this path. A session counts once where parts of all sessions are compared.
    pub(super) is_first: bool,
}

/// The calls that have something in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Support {
    calls: u64,
    /// Their sessions, as many as are required.
    sessions: Vec<u32>,
    /// Whether there are more.
    has_more_sessions: bool,
    /// The number of sessions of which it is the first value.
    firsts: u64,
    first: Option<CallOrigin>,
}

impl Support {
    pub(super) fn add(&mut self, evidence: &Evidence<'_>) {
        self.calls += 1;
        self.firsts += u64::from(evidence.is_first);
        if !self.sessions.contains(&evidence.session) {
            match self.sessions.len() < evidence.required {
                true => self.sessions.push(evidence.session),
                false => self.has_more_sessions = true,
            }
        }
        if self.first.is_none() {
            self.first = Some(evidence.origin.clone());
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// The number of sessions of which it is the first value.
    pub(super) fn firsts(&self) -> u64 {
        self.firsts
    }

    /// The number of sessions. Returns `None` if there are more than are required: they are not counted.
    pub(super) fn sessions(&self) -> Option<usize> {
        (!self.has_more_sessions).then_some(self.sessions.len())
    }

    /// Where the first call is recorded.
    pub(super) fn first(&self) -> Option<&CallOrigin> {
        self.first.as_ref()
    }

    pub(super) fn is_usual(&self, required: usize) -> bool {
        self.sessions.len() >= required
    }

    pub(super) fn is_rare(&self, required: usize) -> bool {
        self.calls > 0 && !self.is_usual(required)
    }
}

/// The most values that one session adds.
const MAX_ADDED: u32 = 16;

/// The support of each of several values. Memory is bounded: values beyond the capacity are counted together.
#[derive(Clone, Debug)]
pub(super) struct ValueCounts<K> {
    entries: BTreeMap<K, Support>,
    capacity: usize,
    others: u64,
    /// The number of values that a session has added.
    added: HashMap<u32, u32>,
}

impl<K: Ord> ValueCounts<K> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { entries: BTreeMap::new(), capacity, others: 0, added: HashMap::new() }
    }

    pub(super) fn add(&mut self, key: K, evidence: &Evidence<'_>) {
        if let Some(support) = self.entries.get_mut(&key) {
            support.add(evidence);
            return;
        }
        // No session fills the map for the others.
        let added = self.added.entry(evidence.session).or_default();
        if self.entries.len() >= self.capacity || *added >= MAX_ADDED {
            self.others += 1;
            return;
        }
        *added += 1;
        self.entries.entry(key).or_default().add(evidence);
    }

    /// The number of calls with values beyond the capacity.
    pub(super) fn others(&self) -> u64 {
        self.others
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &Support)> {
        self.entries.iter()
    }

    pub(super) fn get(&self, key: &K) -> Option<&Support> {
        self.entries.get(key)
    }

    /// The usual values, in order.
    pub(super) fn usual(&self, required: usize) -> impl Iterator<Item = (&K, &Support)> {
        self.entries.iter().filter(move |(_, support)| support.is_usual(required))
    }

    /// The rare values, in order.
    pub(super) fn rare(&self, required: usize) -> impl Iterator<Item = (&K, &Support)> {
        self.entries.iter().filter(move |(_, support)| support.is_rare(required))
    }
}

/// The most values beyond a bound that are kept to be shown.
const MAX_EXTREMES: usize = 8;

/// One of the largest values of all calls.
#[derive(Clone, Debug)]
pub(super) struct ExtremeValue<T> {
    pub(super) value: T,
    pub(super) calls: u64,
    /// Where the first of them is recorded.
    pub(super) first: CallOrigin,
}

/// The largest value that is usual: as many sessions as are required have one that is at least as large.
#[derive(Clone, Debug)]
pub(super) struct UsualMaximum<T> {
    /// The largest value of each of the sessions with the largest values, in descending order; as many as are required.
    by_session: Vec<(T, u32)>,
    /// The largest values of all calls, in descending order.
    extremes: Vec<ExtremeValue<T>>,
}

impl<T> Default for UsualMaximum<T> {
    fn default() -> Self {
        Self { by_session: Vec::new(), extremes: Vec::new() }
    }
}

impl<T: Ord + Clone> UsualMaximum<T> {
    /// Adds a value. `source` is what counts once: the session, or a day.
    pub(super) fn add(&mut self, value: &T, source: u32, evidence: &Evidence<'_>) {
        let has_room = self.by_session.len() < evidence.required;
        if let Some((largest, _)) = self.by_session.iter_mut().find(|(_, session)| *session == source) {
            if *largest < *value {
                *largest = value.clone();
            }
        } else if has_room {
            self.by_session.push((value.clone(), source));
        } else if let Some(last) = self.by_session.last_mut().filter(|(least, _)| least < value) {
            *last = (value.clone(), source);
        }
        self.by_session.sort_by(|(one, _), (other, _)| other.cmp(one));
        if let Some(known) = self.extremes.iter_mut().find(|known| known.value == *value) {
            known.calls += 1;
        } else if self.extremes.len() < MAX_EXTREMES
            || self.extremes.last().is_some_and(|least| least.value < *value)
        {
            let position = self.extremes.partition_point(|larger| larger.value >= *value);
            let extreme = ExtremeValue { value: value.clone(), calls: 1, first: evidence.origin.clone() };
            self.extremes.insert(position, extreme);
            self.extremes.truncate(MAX_EXTREMES);
        }
    }

    /// The largest usual value. Returns `None` if too few sessions have any.
    pub(super) fn usual(&self, required: usize) -> Option<&T> {
        self.by_session.get(required.checked_sub(1)?).map(|(value, _)| value)
    }

    /// The values beyond a bound, the largest first, at most a few.
    pub(super) fn beyond(&self, bound: &T) -> impl Iterator<Item = &ExtremeValue<T>> {
        self.extremes.iter().filter(move |extreme| extreme.value > *bound)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn origin() -> CallOrigin {
        CallOrigin { file: Arc::from("log"), line: 1 }
    }

    #[test]
    fn one_session_makes_nothing_usual_however_often_it_calls() {
        let origin = origin();
        let mut support = Support::default();
        for _ in 0..1_000 {
            support.add(&Evidence { session: 7, required: 3, origin: &origin, is_first: false });
        }
        assert!(support.is_rare(3));
        for session in [8, 9] {
            support.add(&Evidence { session, required: 3, origin: &origin, is_first: false });
        }
        assert!(support.is_usual(3));
    }

    #[test]
    fn a_bound_is_what_enough_sessions_reach() {
        let origin = origin();
        let mut bound = UsualMaximum::default();
        for session in 0..10_u32 {
            for value in [u64::from(session), 3] {
                bound.add(
                    &value,
                    session,
                    &Evidence { session, required: 3, origin: &origin, is_first: false },
                );
            }
        }
        // One session with huge values does not move it.
        for value in [1_000_u64, 2_000, 3_000] {
            bound.add(&value, 99, &Evidence { session: 99, required: 3, origin: &origin, is_first: false });
        }
        assert_eq!(bound.usual(3), Some(&8));
        assert_eq!(
            bound.beyond(&8).map(|extreme| extreme.value).collect::<Vec<_>>(),
            [3_000, 2_000, 1_000, 9]
        );
    }
}
