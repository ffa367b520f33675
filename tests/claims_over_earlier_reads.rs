//! Calls that resume with records that were read earlier: what they cost any store, and what others changed meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use callgate::approval::{Inbox, LedgerKey};
use callgate::host::{
    Account, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, LimitAcquisition,
    LimitCorrection, LimitRefusal, LimitStore, Record, RecordBatch, RecordKey, RecordPage, RecordStore,
    StateStore, StoreError, StoreFuture, SystemClock,
};
use callgate::json::json;
use callgate::message::{History, Message, Part, Role, approval_response};
use callgate::seal::Keys;
use callgate::session::Round;
use callgate::state::MemoryStore;
use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};
use jiff::Timestamp;

use crate::redis::server::run;
use crate::run_cost::RunCost;

/// What others do once, after records were read together.
type Interference = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// A store that processes share, whose requests are counted.
#[derive(Clone, Default)]
struct CountedStore {
    inner: Arc<MemoryStore>,
    requests: Arc<AtomicU64>,
    after_batch: Arc<Interference>,
    /// A batch with records of calls fails: one of them was altered.
    is_altered: bool,
}

impl CountedStore {
    fn count(&self) -> &MemoryStore {
        self.requests.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }
}

impl LimitStore for CountedStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        self.count().acquire(now, takes)
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.count().correct(now, corrections)
    }

    fn release(&self, key: &str) {
        self.count().release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.inner.slot_released()
    }
}

impl CacheStore for CountedStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        self.count().cache_get(now, space, key)
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.count().cache_put(space, key, entry, generation)
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.count().cache_clear(space)
    }
}

impl RecordStore for CountedStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.count().record(key)
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        self.count().write_record(now, write)
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.count().records(space, after, limit)
    }

    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        Box::pin(async move {
            if self.is_altered && keys.len() > 1 {
                return Err(StoreError::Altered("an entry was altered".to_owned()));
            }
            let batch = self.count().record_batch(keys, account).await;
            let interference = self.after_batch.lock().unwrap().take();
            if let Some(interfere) = interference {
                // Of its own thread: this one drives the runtime of the process that reads.
                std::thread::spawn(interfere).join().unwrap();
            }
            batch
        })
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        self.count().has_lost_records(account)
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// A tool that counts its runs.
#[derive(Clone, Default)]
struct CountedTool(Arc<AtomicU64>);

impl ToolExecutor for CountedTool {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(json!("paid").into())
    }
}

/// A process with its own engine over the shared store.
#[derive(Clone)]
struct Process {
    engine: Engine,
    store: Arc<dyn StateStore>,
    tool: CountedTool,
}

impl Process {
    fn start(store: CountedStore, tool: &CountedTool) -> Self {
        let rules = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', anonymous: allow } } ]";
        let store: Arc<dyn StateStore> = Arc::new(store);
        let rules = callgate::load_text(rules).unwrap();
        let engine = Engine::builder(rules).keys(keys()).store(Arc::clone(&store)).build();
        Self { engine, store, tool: tool.clone() }
    }

    fn suspend(&self) -> History {
        let call = Part::call("c1", "pay", json!({}));
        let mut history = History::new(vec![Message::new(Role::Assistant, vec![call])]);
        let mut session = self.engine.session().with_name("talk");
        assert!(run(session.run_round(&mut history, &self.tool)).unwrap().is_suspended());
        history
    }

    fn answer(&self, approves: bool) {
        let inbox = Inbox::new(Arc::clone(&self.store), keys(), SystemClock);
        let key = LedgerKey::of_approval("talk", "approval_c1");
        run(inbox.answer(&key, approval_response("approval_c1", approves), None)).unwrap();
    }

    fn resume(&self, mut history: History) -> Round {
        run(self.engine.session().with_name("talk").resume(&mut history, &self.tool)).unwrap()
    }
}

fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

#[test]
fn calls_of_a_run_cost_the_requests_of_the_guide() {
    let store = CountedStore::default();
    let requests = Arc::clone(&store.requests);
    let cost = RunCost::measure(store, &|| requests.load(Ordering::SeqCst));
    assert_eq!(cost, RunCost { stateless: 0, limited: 1, approved: 2, others_approved: 3 });
}

#[test]
fn denial_after_the_read_keeps_the_call_from_running() {
    let (store, tool) = (CountedStore::default(), CountedTool::default());
    let process = Process::start(store.clone(), &tool);
    let history = process.suspend();
    process.answer(true);
    let other = process.clone();
    *store.after_batch.lock().unwrap() = Some(Box::new(move || other.answer(false)));
    let round = process.resume(history);
    assert_eq!(round.outcomes[0].outcome, OutcomeKind::Denied, "{:?}", round.outcomes);
    assert_eq!(tool.0.load(Ordering::SeqCst), 0);
}

#[test]
fn call_that_another_process_ran_after_the_read_does_not_run_again() {
    let (store, tool) = (CountedStore::default(), CountedTool::default());
    let process = Process::start(store.clone(), &tool);
    let history = process.suspend();
    process.answer(true);
    let (other, theirs) = (Process::start(store.clone(), &tool), history.clone());
    *store.after_batch.lock().unwrap() = Some(Box::new(move || drop(other.resume(theirs))));
    let round = process.resume(history);
    assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed, "{:?}", round.outcomes);
    assert!(round.outcomes[0].replayed);
    assert_eq!(tool.0.load(Ordering::SeqCst), 1);
}

#[test]
fn answer_after_the_read_is_found() {
    let (store, tool) = (CountedStore::default(), CountedTool::default());
    let process = Process::start(store.clone(), &tool);
    let history = process.suspend();
    let other = process.clone();
    *store.after_batch.lock().unwrap() = Some(Box::new(move || other.answer(true)));
    let round = process.resume(history);
    assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed, "{:?}", round.outcomes);
    assert_eq!(tool.0.load(Ordering::SeqCst), 1);
}

#[test]
fn altered_entry_does_not_hold_up_the_session() {
    let (store, tool) = (CountedStore::default(), CountedTool::default());
    let process = Process::start(store.clone(), &tool);
    let history = process.suspend();
    process.answer(true);
    let altered = Process::start(CountedStore { is_altered: true, ..store }, &tool);
    let round = altered.resume(history);
    assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed, "{:?}", round.outcomes);
}
