//! What a store knows of the latest acquisitions, so that a correction finds where they were counted: at which time of the server, or in which
//! shard of a limit.

use std::collections::{HashMap, VecDeque};

use super::limit_algorithms::Micros;

/// How many acquisitions are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The latest acquisitions, by their key and the time of their caller.
#[derive(Debug)]
pub struct RecentAcquisitions<T> {
    known: HashMap<(String, Micros), T>,
    order: VecDeque<(String, Micros)>,
}

// Derived, it would need a default of `T`.
impl<T> Default for RecentAcquisitions<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Copy> RecentAcquisitions<T> {
    /// Remembers where something is counted that a caller acquired of a key at its time.
    pub fn remember(&mut self, key: &str, caller_time: Micros, place: T) {
        let acquired = (key.to_owned(), caller_time);
        if self.known.insert(acquired.clone(), place).is_none() {
            self.order.push_back(acquired);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Where an acquisition is counted. `None` if it is not remembered any more.
    pub fn get(&self, key: &str, caller_time: Micros) -> Option<T> {
        self.known.get(&(key.to_owned(), caller_time)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_acquisitions_are_remembered() {
        let mut recent = RecentAcquisitions::default();
        for number in 0..=MAX_REMEMBERED as Micros {
            recent.remember("k", number, number + 7);
        }
        assert_eq!(recent.get("k", 0), None);
        assert_eq!(recent.get("k", 1), Some(8));
        assert_eq!(recent.get("other", 1), None);
        assert_eq!(recent.order.len(), recent.known.len());
    }
}
