//! Keyed digests as names of limits and cached results in the inner store, because their keys contain data of calls.

use crate::host::{LimitAcquisition, LimitCorrection, LimitRefusal};
use crate::json::json;
use crate::seal::{Keys, Purpose};

/// Acquisitions under keyed names. During key rotation, each limit is counted under every key, so that its usage stays
/// counted whichever key is removed.
pub struct KeyedAcquisitions {
    takes: Vec<LimitAcquisition>,
    /// The number of keys: one acquisition becomes this many.
    keys: usize,
}

impl KeyedAcquisitions {
    /// Converts acquisitions to keyed names.
    pub fn new(keys: &Keys, takes: &[LimitAcquisition]) -> Self {
        let keyed = takes.iter().flat_map(|take| {
            limit_names(keys, &take.key).into_iter().map(|key| LimitAcquisition { key, ..take.clone() })
        });
        let keyed: Vec<LimitAcquisition> = keyed.collect();
        Self { keys: keyed.len().checked_div(takes.len()).unwrap_or(1), takes: keyed }
    }

    /// The acquisitions for the inner store.
    pub fn as_slice(&self) -> &[LimitAcquisition] {
        &self.takes
    }

    /// Converts the refusals of the inner store: at most one for each acquisition, with the longest wait.
    pub fn refusals(&self, refused: Vec<LimitRefusal>) -> Vec<LimitRefusal> {
        let mut refusals: Vec<LimitRefusal> = Vec::new();
        for refusal in refused {
            let index = refusal.index.checked_div(self.keys).unwrap_or_default();
            match refusals.iter_mut().find(|known| known.index == index) {
                Some(known) => {
                    let both = known.retry_after.zip(refusal.retry_after);
                    known.retry_after = both.map(|(one, other)| one.max(other));
                }
                None => refusals.push(LimitRefusal { index, ..refusal }),
            }
        }
        refusals
    }
}

/// Corrections under keyed names.
pub fn keyed_corrections(keys: &Keys, corrections: &[LimitCorrection]) -> Vec<LimitCorrection> {
    let keyed = corrections.iter().flat_map(|correction| {
        let acquisitions = KeyedAcquisitions::new(keys, std::slice::from_ref(&correction.acquisition));
        acquisitions
            .takes
            .into_iter()
            .map(|acquisition| LimitCorrection { acquisition, ..correction.clone() })
    });
    keyed.collect()
}

/// The names of a limit, one for each key.
pub fn limit_names(keys: &Keys, key: &str) -> Vec<String> {
    keys.digests(Purpose::Limit, &json!(key)).map(|digest| digest.to_string()).collect()
}

/// The name of a cached result. Results under an older key are not found any more, and computed again.
pub fn cache_name(keys: &Keys, space: &str, key: &str) -> String {
    keys.digest(Purpose::Cache, &json!([space, key])).to_string()
}
