//! What a follower reports: to its operator, in its status, and to the other instances.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{BundleFollower, FollowerMessage};
use crate::fleet_records::InstanceReport;

/// How often an instance reports without a change.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// How long a report is shown, at least.
const REPORT_VALIDITY: Duration = Duration::from_secs(10 * 60);

impl BundleFollower {
    pub(super) fn record_check(&mut self) {
        let own = self.newest.bundle.version();
        if self.refused.is_none() && self.announced > own {
            let why = format!(
                "another instance has version {}, and the source still has version {own}",
                self.announced
            );
            return self.record_failure(why);
        }
        self.failures = 0;
        let refused = self.refused.clone();
        self.shared.status.update(|status| status.record_check(Timestamp::now(), refused));
    }

    pub(super) fn record_failure(&mut self, why: String) {
        self.failures = self.failures.saturating_add(1);
        let retry = format!("{why}; version {} stays in effect", self.active_version());
        self.log_once(&retry);
        self.shared.status.update(|status| status.record_failure(why));
    }

    pub(super) fn active_version(&self) -> u64 {
        self.shared.status.get().report.version.unwrap_or_default()
    }

    /// Logs a problem, unless it is the one that was logged last.
    pub(super) fn log_once(&mut self, text: &str) {
        if self.last_logged != text {
            (self.log)(FollowerMessage::Problem(text));
            text.clone_into(&mut self.last_logged);
        }
    }

    /// Reports to the other instances, if something has changed or a while has passed.
    pub(super) async fn report_if_due(&mut self) {
        let mut report = self.shared.status.get().report;
        let now = Instant::now();
        let is_same = |last: &InstanceReport| {
            let (checked_at, reported_at) = (report.checked_at, report.reported_at);
            InstanceReport { checked_at, reported_at, ..last.clone() } == report
        };
        let last = self.last_report.as_ref();
        if last.is_some_and(|(last, at)| is_same(last) && now.duration_since(*at) < REPORT_INTERVAL) {
            return;
        }
        report.reported_at = Timestamp::now();
        let valid_for = REPORT_VALIDITY.max(self.interval.saturating_mul(10));
        if self.shared.records.report(&report, valid_for).await.is_ok() {
            self.last_report = Some((report, now));
        }
    }
}

/// The name of this host.
#[cfg(unix)]
pub(super) fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().chars().filter(|char| !char.is_control()).take(100).collect()
}

/// The name of this host.
#[cfg(not(unix))]
pub(super) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "host".to_owned())
}
