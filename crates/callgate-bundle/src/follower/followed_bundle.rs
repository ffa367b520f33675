//! A followed bundle, as others than its follower see it: its status, that of the other instances, and the request to check now.

use std::sync::Arc;

use callgate::host::StoreError;
use tokio::sync::Notify;

use crate::fleet_records::{FleetRecords, InstanceReport};
use crate::instance_status::{InstanceStatus, SharedStatus};

/// A followed bundle, for those who show its status. Clones share it.
#[derive(Clone, Debug)]
pub struct FollowedBundle {
    pub(super) status: SharedStatus,
    pub(super) records: FleetRecords,
    pub(super) signals: Arc<Signals>,
}

#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The source has to be checked now.
    pub(super) check: Notify,
    /// The rules of the engine have changed.
    pub(super) changed: Notify,
}

impl FollowedBundle {
    /// The status of this instance.
    pub fn status(&self) -> InstanceStatus {
        self.status.get()
    }

    /// What all instances report that share the state store.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn instances(&self) -> Result<Vec<InstanceReport>, StoreError> {
        self.records.instances().await
    }

    /// Checks the source now, and not only after the interval. Once this instance has a newer version, the others check, too.
    pub fn check_now(&self) {
        self.signals.check.notify_one();
    }
}
