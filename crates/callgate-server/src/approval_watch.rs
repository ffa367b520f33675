//! Approval requests of other processes with the same state: compared while streams are open, which report that they changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callgate::approval::{InboxItem, LedgerKey};
use callgate::host::{Announcement, Announcements};
use callgate::json::Value;
use tokio::time::Instant;

use crate::api::Api;

/// How often the requests are compared if the store announces nothing.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long changes are collected after an announcement.
const COLLECTING: Duration = Duration::from_millis(100);
/// At least this many times the duration of reading passes until they are read again.
const REST_PER_READ: u32 = 16;

impl Api {
    /// Reports changed approval requests to open streams as `approvals_changed`, once for each tenant. Never ends.
    pub(crate) async fn watch_approvals(&self) {
        loop {
            // Before a client of the first stream reads the list, so that it misses nothing in between.
            self.activity.stream_opened().await;
            let mut announcements = self.inbox.announcements();
            let mut known = None;
            while self.activity.has_streams() {
                let started = Instant::now();
                // The page itself shows that the store does not answer.
                if let Ok(items) = self.activity.approvals.items(&self.inbox).await
                    && let Some(known) = known.replace(Arc::clone(&items))
                {
                    for tenant in changed_tenants(&known, &items) {
                        self.activity.announce("approvals_changed", tenant.cloned());
                    }
                }
                self.wait_for_changes(&mut announcements, started.elapsed() * REST_PER_READ).await;
            }
        }
    }

    /// Waits until the requests are compared again: soon after an announcement, and at least for the duration of a rest.
    async fn wait_for_changes(&self, announcements: &mut Announcements, rest: Duration) {
        let begun = Instant::now();
        let mut due = begun + INTERVAL.max(rest);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(due) => return,
                announcement = announcements.next() => {
                    self.note_announcement(&announcement);
                    due = due.min((Instant::now() + COLLECTING).max(begun + rest));
                }
            }
        }
    }

    fn note_announcement(&self, announcement: &Announcement) {
        let changed = match announcement {
            Announcement::Approval(key) => LedgerKey::from_record_key(key),
            _ => None,
        };
        match changed {
            Some(key) => self.activity.approvals.note_change(key),
            None => self.activity.approvals.note_changes(),
        }
    }
}

/// The tenants whose requests differ; `None` for requests whose tenant is unknown.
fn changed_tenants<'i>(before: &'i [Arc<InboxItem>], after: &'i [Arc<InboxItem>]) -> Vec<Option<&'i Value>> {
    let mut tenants = Vec::new();
    let mut add = |item: &'i InboxItem| {
        let tenant = item.bound_request.as_ref().map(|bound| &bound.tenant);
        if !tenants.contains(&tenant) {
            tenants.push(tenant);
        }
    };
    let mut gone: HashMap<_, _> = before.iter().map(|item| (&item.key, &**item)).collect();
    for item in after {
        match gone.remove(&item.key) {
            Some(known) if known.status == item.status && known.answers.len() == item.answers.len() => {}
            _ => add(item),
        }
    }
    gone.into_values().for_each(add);
    tenants
}
