//! Calls of one tool with one cache key that are under way: one of them goes to the tool, the others wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The flights of one engine.
#[derive(Debug, Default)]
pub(super) struct Flights {
    under_way: Arc<Mutex<HashMap<String, watch::Receiver<()>>>>,
}

/// What a call is to do.
pub(super) enum Flight {
    /// Go to the tool; the others wait until this is dropped.
    Lead(Lead),
    /// Wait until the one that went has come back.
    Follow(watch::Receiver<()>),
}

/// The way to the tool. Whatever ends it, also a call that is given up, lets the others go on.
pub(super) struct Lead {
    flights: Arc<Mutex<HashMap<String, watch::Receiver<()>>>>,
    key: String,
    /// Its end is what the others wait for.
    _landing: watch::Sender<()>,
}

impl Flights {
    /// Joins the flight of a key, or begins one.
    pub(super) fn join(&self, key: &str) -> Flight {
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

/// Waits for the one that went to the tool.
pub(super) async fn landed(mut landing: watch::Receiver<()>) {
    // Nothing is ever sent: the error is the end.
    let _ = landing.changed().await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
