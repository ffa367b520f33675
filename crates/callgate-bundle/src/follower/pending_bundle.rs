//! A bundle whose rules are pending confirmation: confirmed here, which the other instances learn, or by another instance.

use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::BundleFollower;
use crate::fleet_records::Confirmation;

/// The newest bundle, as long as its rules are pending.
pub(super) struct PendingBundle {
    /// The revision of its rules.
    pub(super) revision: String,
    /// The revision of the rules that they would replace.
    pub(super) from: String,
}

impl BundleFollower {
    /// Shares a confirmation that was given here, or applies one that was given to another instance.
    pub(super) async fn follow_confirmation(&mut self) {
        let Some(pending) = &self.pending else { return };
        let confirmation = Confirmation {
            bundle: self.newest.bundle.name().to_owned(),
            version: self.newest.bundle.version(),
            digest: self.newest.digest.clone(),
            revision: pending.revision.clone(),
            from: vec![pending.from.clone()],
        };
        if self.engine.revision() == confirmation.revision {
            // Before it counts as done, so that a failing store is asked again.
            if let Err(error) = self.shared.records.confirm(&confirmation, Timestamp::now()).await {
                self.log_once(&format!("the other instances do not know of the confirmation yet: {error}"));
                return;
            }
            return self.finish_pending();
        }
        let records = &self.shared.records;
        let Ok(found) = records.confirmation(&confirmation.bundle, confirmation.version).await else {
            return;
        };
        if !found.is_some_and(|found| found.permits(&confirmation)) {
            return;
        }
        let (engine, revision) = (self.engine.clone(), confirmation.revision);
        let confirmed = spawn_blocking(move || engine.confirm(&revision)).await;
        if matches!(confirmed, Ok(Ok(()))) {
            self.finish_pending();
        }
    }

    fn finish_pending(&mut self) {
        self.pending = None;
        if let Err(error) = self.activate() {
            self.record_failure(format!("the bundle can't be stored: {error}"));
        }
    }
}
