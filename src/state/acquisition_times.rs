//! When a store that follows its server's clock counted acquisitions, so that a correction finds them: the key and the caller's time → the
//! server's time.

use std::collections::{HashMap, VecDeque};

use super::limit_algorithms::Micros;

/// How many acquisitions are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The server's times of the latest acquisitions.
#[derive(Debug, Default)]
pub struct AcquisitionTimes {
    times: HashMap<(String, Micros), Micros>,
    order: VecDeque<(String, Micros)>,
}

impl AcquisitionTimes {
    /// Remembers that what a caller acquired of a key at its time counts at this one.
    pub fn remember(&mut self, key: &str, caller_time: Micros, at: Micros) {
        let acquired = (key.to_owned(), caller_time);
        if self.times.insert(acquired.clone(), at).is_none() {
            self.order.push_back(acquired);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
    }

    /// The time at which an acquisition counts. `None` if it is not remembered any more.
    pub fn get(&self, key: &str, caller_time: Micros) -> Option<Micros> {
        self.times.get(&(key.to_owned(), caller_time)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_acquisitions_are_remembered() {
        let mut times = AcquisitionTimes::default();
        for number in 0..=MAX_REMEMBERED as Micros {
            times.remember("k", number, number + 7);
        }
        assert_eq!(times.get("k", 0), None);
        assert_eq!(times.get("k", 1), Some(8));
        assert_eq!(times.get("other", 1), None);
        assert_eq!(times.order.len(), times.times.len());
    }
}
