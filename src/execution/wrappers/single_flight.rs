//! Single flight: of equal calls that run at once, one runs the tool and the others wait for its result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Calls under way by cache key.
#[derive(Debug, Default)]
pub(in crate::execution) struct SingleFlight {
    under_way: Arc<Mutex<HashMap<String, watch::Receiver<()>>>>,
}

/// The role of a call.
pub(in crate::execution) enum Flight {
    /// It runs the tool; the others wait until this is dropped.
    Lead(Lead),
    /// It waits until the leader has ended.
    Follow(watch::Receiver<()>),
}

/// The leader's guard. Whatever ends the leader, also a dropped future, lets the others go on.
pub(in crate::execution) struct Lead {
    flights: Arc<Mutex<HashMap<String, watch::Receiver<()>>>>,
    key: String,
    /// Its end is what the others wait for.
    _landing: watch::Sender<()>,
}

impl SingleFlight {
    /// Joins the flight of a key, or starts one.
    pub(in crate::execution) fn join(&self, key: &str) -> Flight {
        let mut under_way = lock(&self.under_way);
        if let Some(landing) = under_way.get(key) {
            return Flight::Follow(landing.clone());
        }
        let (sender, receiver) = watch::channel(());
        under_way.insert(key.to_owned(), receiver);
        Flight::Lead(Lead { flights: Arc::clone(&self.under_way), key: key.to_owned(), _landing: sender })
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        lock(&self.flights).remove(&self.key);
    }
}

/// Waits for the leader.
pub(super) async fn landed(mut landing: watch::Receiver<()>) {
    // Nothing is ever sent: the error is the end.
    let _ = landing.changed().await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
