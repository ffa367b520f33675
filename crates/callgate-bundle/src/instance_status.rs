//! The status of an instance: what it follows, which version is in effect, and what prevents a newer one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::fleet_records::{InstanceReport, NewerBundle};

/// The status, shared by the follower and those who show it.
#[derive(Clone, Debug)]
pub(crate) struct SharedStatus(Arc<Mutex<InstanceStatus>>);

/// What an instance follows, and how that goes.
#[derive(Clone, Debug)]
pub struct InstanceStatus {
    /// What is reported to the other instances.
    pub report: InstanceReport,
    /// The number of checks of the source that succeeded.
    pub checks: u64,
    /// The number of checks that failed.
    pub failed_checks: u64,
    /// The number of bundles that were refused or whose rules were rejected.
    pub rejected: u64,
}

impl SharedStatus {
    pub(crate) fn new(report: InstanceReport) -> Self {
        Self(Arc::new(Mutex::new(InstanceStatus { report, checks: 0, failed_checks: 0, rejected: 0 })))
    }

    pub(crate) fn get(&self) -> InstanceStatus {
        self.lock().clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut InstanceStatus)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, InstanceStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InstanceStatus {
    /// The source was read; `refused` says why its bundle is not accepted.
    pub(crate) fn record_check(&mut self, now: Timestamp, refused: Option<String>) {
        self.checks += 1;
        self.report.error = refused;
        self.report.checked_at = Some(now);
    }

    /// The source can't be read, or a bundle can't be stored.
    pub(crate) fn record_failure(&mut self, why: String) {
        self.failed_checks += 1;
        self.report.error = Some(why);
    }

    /// The rules of a bundle are in effect.
    pub(crate) fn record_active(&mut self, bundle: &str, version: u64, revision: String) {
        self.report.bundle = Some(bundle.to_owned());
        self.report.version = Some(version);
        self.report.revision = revision;
        self.report.newer = None;
    }

    /// The rules of a bundle are not in effect.
    pub(crate) fn record_newer(&mut self, newer: NewerBundle) {
        self.report.newer = Some(newer);
    }
}
