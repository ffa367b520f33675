//! Under which names the store below finds limits and cached results: digests with the server's keys, for the keys of both are made of
//! what calls hold.

use crate::host::{Refusal, Take};
use crate::json::json;
use crate::seal::{Keys, Purpose};

/// Takes as the store below counts them. While keys rotate, each limit is counted under all of them: what was taken stays counted,
/// whichever key is removed.
pub struct KeyedTakes {
    takes: Vec<Take>,
    /// How many keys there are: so many takes stand for one.
    keys: usize,
}

impl KeyedTakes {
    /// Takes under their keyed names.
    pub fn new(keys: &Keys, takes: &[Take]) -> Self {
        let keyed = takes.iter().flat_map(|take| {
            limit_names(keys, &take.key).into_iter().map(|key| Take { key, ..take.clone() })
        });
        let keyed: Vec<Take> = keyed.collect();
        Self { keys: keyed.len().checked_div(takes.len()).unwrap_or(1), takes: keyed }
    }

    /// The takes, as the store below gets them.
    pub fn as_slice(&self) -> &[Take] {
        &self.takes
    }

    /// What the refusals of the store below mean: of each take no more than one, the one that lasts longest.
    pub fn refusals(&self, refused: Vec<Refusal>) -> Vec<Refusal> {
        let mut refusals: Vec<Refusal> = Vec::new();
        for refusal in refused {
            let index = refusal.index.checked_div(self.keys).unwrap_or_default();
            match refusals.iter_mut().find(|known| known.index == index) {
                Some(known) => {
                    let both = known.retry_after.zip(refusal.retry_after);
                    known.retry_after = both.map(|(one, other)| one.max(other));
                }
                None => refusals.push(Refusal { index, ..refusal }),
            }
        }
        refusals
    }
}

/// The names of a limit, by each of the keys.
pub fn limit_names(keys: &Keys, key: &str) -> Vec<String> {
    keys.digests(Purpose::Limit, &json!(key)).map(|digest| digest.to_string()).collect()
}

/// The name of a cached result. Those under an older key are not found any more, and made again.
pub fn cache_name(keys: &Keys, space: &str, key: &str) -> String {
    keys.digest(Purpose::Cache, &json!([space, key])).to_string()
}
