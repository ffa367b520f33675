//! The approval requests of the store, read as a whole at most once in a while: a page with many viewers puts little load on the store,
//! also with many requests.

use std::collections::HashSet;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use callgate::approval::{Inbox, InboxError, InboxItem, LedgerKey};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a list is used. Other processes may request approvals and answer them, too.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A list is used for at least this many times the duration of reading it.
const AGE_PER_READ: u32 = 8;
/// With more changed requests than this, the whole list is read again.
const MAX_CHANGED: usize = 256;

/// The last list, with what has changed since.
#[derive(Default)]
pub(crate) struct ApprovalList {
    last: Mutex<Option<ListedApprovals>>,
    changed: SyncMutex<ChangedApprovals>,
}

struct ListedApprovals {
    /// Ordered by key.
    items: Arc<Vec<Arc<InboxItem>>>,
    expires_at: Instant,
}

/// The requests that this process has changed since they were read.
#[derive(Default)]
struct ChangedApprovals {
    keys: HashSet<LedgerKey>,
    too_many: bool,
}

impl ApprovalList {
    /// Notes that a request was made, answered or closed in this process.
    pub(crate) fn note_change(&self, key: LedgerKey) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.keys.len() < MAX_CHANGED {
            changed.keys.insert(key);
        } else {
            changed.too_many = true;
        }
    }

    /// Notes that any request may have changed.
    pub(crate) fn note_changes(&self) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).too_many = true;
    }

    fn take_changed(&self) -> ChangedApprovals {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All approval requests, ordered by key. What this process has changed is current; what others have changed appears after a while.
    ///
    /// # Errors
    /// The store can't be read.
    pub(crate) async fn items(&self, inbox: &Inbox) -> Result<Arc<Vec<Arc<InboxItem>>>, InboxError> {
        // Concurrent requests wait for one reader.
        let mut last = self.last.lock().await;
        // Taken before the store is read: what changes meanwhile is read again the next time.
        let changed = self.take_changed();
        let known = last.take().filter(|known| Instant::now() < known.expires_at && !changed.too_many);
        let listed = match known {
            Some(known) if changed.keys.is_empty() => known,
            Some(known) => match update(inbox, &known.items, changed.keys).await? {
                Some(items) => ListedApprovals { items: Arc::new(items), ..known },
                None => read(inbox).await?,
            },
            None => read(inbox).await?,
        };
        Ok(Arc::clone(&last.insert(listed).items))
    }
}

async fn read(inbox: &Inbox) -> Result<ListedApprovals, InboxError> {
    let started = Instant::now();
    let mut items: Vec<Arc<InboxItem>> = inbox.list().await?.into_iter().map(Arc::new).collect();
    items.sort_by(|one, other| one.key.cmp(&other.key));
    let read_at = Instant::now();
    let expires_at = read_at + MAX_AGE.max((read_at - started) * AGE_PER_READ);
    Ok(ListedApprovals { items: Arc::new(items), expires_at })
}

/// The list with the present state of some requests. `None` if one of them is not found.
async fn update(
    inbox: &Inbox,
    items: &[Arc<InboxItem>],
    changed: HashSet<LedgerKey>,
) -> Result<Option<Vec<Arc<InboxItem>>>, InboxError> {
    let mut items = items.to_vec();
    for key in changed {
        let item = match inbox.get(&key).await {
            Ok(item) => Arc::new(item),
            Err(InboxError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match items.binary_search_by(|known| known.key.cmp(&key)) {
            Ok(index) => {
                items.splice(index..=index, [item]);
            }
            Err(index) => items.insert(index, item),
        }
    }
    Ok(Some(items))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use callgate::host::{
        Account, CombinedStore, ConditionalWrite, Record, RecordKey, RecordPage, RecordStore, StateStore,
        StoreFuture, SystemClock,
    };
    use callgate::json::json;
    use callgate::seal::Keys;
    use callgate::state::MemoryStore;
    use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};
    use jiff::Timestamp;

    use super::*;
    use crate::activity::{Activity, ActivityObserver};

    const RULES: &str = "policies: [ { id: ask, match: pay, approval: {} } ]";

    /// Counts how often all records are read.
    #[derive(Default)]
    struct CountedReads {
        inner: MemoryStore,
        lists: AtomicUsize,
    }

    impl RecordStore for CountedReads {
        fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
            self.inner.record(key)
        }

        fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
            self.inner.write_record(now, write)
        }

        fn records<'a>(
            &'a self,
            space: &'a str,
            after: Option<&'a str>,
            limit: usize,
        ) -> StoreFuture<'a, RecordPage> {
            self.lists.fetch_add(1, Ordering::Relaxed);
            self.inner.records(space, after, limit)
        }

        fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
            self.inner.has_lost_records(account)
        }
    }

    struct NoTool;

    impl ToolExecutor for NoTool {
        async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
            Err(ToolError::new("never run"))
        }
    }

    /// A process that shares a store with others.
    struct Process {
        engine: Engine,
        activity: Arc<Activity>,
        inbox: Inbox,
    }

    impl Process {
        fn new(store: &Arc<dyn StateStore>, keys: &Keys) -> Self {
            let activity = Activity::new();
            let rules = callgate::load_text(RULES).unwrap();
            let engine = Engine::builder(rules)
                .keys(keys.clone())
                .store(Arc::clone(store))
                .observer(ActivityObserver(Arc::clone(&activity)))
                .build();
            let inbox = Inbox::new(Arc::clone(store), keys.clone(), SystemClock);
            Self { engine, activity, inbox }
        }

        async fn ask(&self, session: &str) {
            let mut session = self.engine.session().with_name(session).with_call_recording();
            let outcome = session.execute(ToolCall::new("c1", "pay", json!({})), &NoTool).await;
            assert_eq!(outcome.outcome, OutcomeKind::Suspended);
        }

        async fn sessions(&self) -> Vec<String> {
            let items = self.activity.approvals.items(&self.inbox).await.unwrap();
            items.iter().map(|item| item.key.conversation.clone()).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_changed_is_read_again_within_a_second() {
        let counted = Arc::new(CountedReads::default());
        let records: Arc<dyn RecordStore> = counted.clone();
        let memory: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
        let store: Arc<dyn StateStore> = Arc::new(CombinedStore::new(memory).with_records(records));
        let keys = Keys::new([[7; 32]]).unwrap();
        let (own, other) = (Process::new(&store, &keys), Process::new(&store, &keys));
        own.ask("b").await;
        assert_eq!(own.sessions().await, ["b"]);
        other.ask("d").await;
        own.ask("c").await;
        own.ask("a").await;
        assert_eq!(own.sessions().await, ["a", "b", "c"], "its own requests appear at once");
        assert_eq!(counted.lists.load(Ordering::Relaxed), 1);
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(own.sessions().await, ["a", "b", "c", "d"], "those of others after a while");
        assert_eq!(counted.lists.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn with_many_changes_the_list_is_read_as_a_whole() {
        let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
        let process = Process::new(&store, &Keys::new([[7; 32]]).unwrap());
        assert!(process.sessions().await.is_empty());
        for number in 0..MAX_CHANGED + 2 {
            process.ask(&format!("s{number:04}")).await;
        }
        assert_eq!(process.sessions().await.len(), MAX_CHANGED + 2);
    }
}
