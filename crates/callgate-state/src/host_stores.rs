//! The parts of the state that a host stores itself, beside what is at a URL.

use std::sync::Arc;

use callgate::host::{CacheStore, CombinedStore, RecordStore, StateStore};
use callgate::seal::Keys;

use crate::versioned_limits::{LimitValues, VersionedLimits};

/// What a host has for its state.
#[derive(Default)]
pub struct HostState {
    /// Keys that seal what is stored. Without them, those of CALLGATE_KEYS apply, and for a file its own.
    pub keys: Option<Keys>,
    /// Its own stores.
    pub stores: HostStores,
}

/// Stores of a host. What is absent is at the URL of the state.
#[derive(Clone, Default)]
pub struct HostStores {
    /// Calls, approvals, sessions and budgets.
    pub records: Option<Arc<dyn RecordStore>>,
    /// Limits, without slots.
    pub limits: Option<Arc<dyn LimitValues>>,
    /// Cached results.
    pub cache: Option<Arc<dyn CacheStore>>,
}

impl HostStores {
    /// Whether the host has any.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_none() && self.limits.is_none() && self.cache.is_none()
    }

    /// The store with these parts.
    pub(crate) fn combine(self, store: Arc<dyn StateStore>) -> Arc<dyn StateStore> {
        if self.is_empty() {
            return store;
        }
        let mut combined = CombinedStore::new(Arc::clone(&store));
        if let Some(records) = self.records {
            combined = combined.with_records(records);
        }
        if let Some(values) = self.limits {
            combined = combined.with_limits(Arc::new(VersionedLimits::new(values, store)));
        }
        if let Some(cache) = self.cache {
            combined = combined.with_cache(cache);
        }
        Arc::new(combined)
    }
}
