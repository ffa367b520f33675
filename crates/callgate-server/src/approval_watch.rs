//! Approval requests of other processes with the same state: compared while streams are open, which report that they changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callgate::approval::InboxItem;
use callgate::json::Value;
use tokio::time::Instant;

use crate::api::Api;

/// How often the requests are compared.
const INTERVAL: Duration = Duration::from_secs(2);
/// At least this many times the duration of reading passes until they are read again.
const REST_PER_READ: u32 = 16;

impl Api {
    /// Reports changed approval requests to open streams as `approvals_changed`, once for each tenant. Never ends.
    pub(crate) async fn watch_approvals(&self) {
        loop {
            // Before a client of the first stream reads the list, so that it misses nothing in between.
            self.activity.stream_opened().await;
            let mut known = None;
            while self.activity.has_streams() {
                let started = Instant::now();
                // The page itself shows that the store does not answer.
                if let Ok(items) = self.activity.approvals.items(&self.inbox).await {
                    if let Some(known) = known.replace(Arc::clone(&items)) {
                        for tenant in changed_tenants(&known, &items) {
                            self.activity.announce("approvals_changed", tenant.cloned());
                        }
                    }
                }
                tokio::time::sleep(INTERVAL.max(started.elapsed() * REST_PER_READ)).await;
            }
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
