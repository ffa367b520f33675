//! The approval requests of the store, read at most once in a while: a page with many viewers puts no load on the store.

use std::sync::Arc;
use std::time::Duration;

use callgate::approval::{Inbox, InboxError, InboxItem};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a list is used that no event of this process has made old. Other processes may answer requests, too.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The last list.
#[derive(Default)]
pub(crate) struct ApprovalList {
    last: Mutex<Option<ListedApprovals>>,
}

struct ListedApprovals {
    items: Arc<Vec<InboxItem>>,
    read_at: Instant,
    /// The version of the approvals of this process when it was read.
    version: u64,
}

impl ApprovalList {
    /// All approval requests. `version` changes with every event that makes a list old.
    ///
    /// # Errors
    /// The store can't be read.
    pub(crate) async fn items(&self, inbox: &Inbox, version: u64) -> Result<Arc<Vec<InboxItem>>, InboxError> {
        // Concurrent requests wait for one reader.
        let mut last = self.last.lock().await;
        if let Some(known) = &*last
            && known.version == version
            && known.read_at.elapsed() < MAX_AGE
        {
            return Ok(Arc::clone(&known.items));
        }
        let items = Arc::new(inbox.list().await?);
        *last = Some(ListedApprovals { items: Arc::clone(&items), read_at: Instant::now(), version });
        Ok(items)
    }
}
