//! Approvals that are found again by requester, server, tool and arguments: in other sessions, after restarts, once.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use callgate::approval::{Inbox, InboxItem};
use callgate::host::{ManualClock, RecordStore, StateStore, StoreFuture};
use callgate::json::{Value, json};
use callgate::message::{Approver, ResponsePart, approval_response};
use callgate::seal::Keys;
use callgate::session::ConcurrentSession;
use callgate::{Outcome, ToolCall, ToolError, ToolExecutor, ToolResponse};
use callgate_sqlite::SqliteStore;

use super::scene::{KEY, NEXT_KEY};
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, kind_and_code, noon, rules};

const ASK: &str = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } } ]";

/// A shared store whose process dies after a number of answers.
struct CrashingStore(AtomicUsize);

impl Alteration for CrashingStore {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let left = self.0.load(Ordering::SeqCst);
        if left == 0 {
            return Box::pin(std::future::pending());
        }
        self.0.store(left - 1, Ordering::SeqCst);
        good
    }
    fn is_shared(&self) -> bool {
        true
    }
}

/// What outlives processes: store, tool and time.
struct World {
    clock: ManualClock,
    store: Arc<Altered<CrashingStore>>,
    tool: Tool,
    rules: String,
    keys: String,
}

impl World {
    fn new() -> Self {
        let clock = noon();
        let tool = Tool::counting(&clock);
        Self {
            store: Arc::new(Altered::by(CrashingStore(AtomicUsize::new(usize::MAX)))),
            tool,
            clock,
            rules: ASK.to_owned(),
            keys: KEY.to_owned(),
        }
    }

    /// A process that serves this requester.
    fn process(&self, requester: &str) -> ConcurrentSession {
        let store: Arc<dyn StateStore> = Arc::clone(&self.store) as _;
        let keys = Keys::parse(&self.keys).unwrap();
        let engine = rules(&self.rules).clock(self.clock.clone()).store(store).keys(keys).build();
        engine.session().concurrent_for(requester, |_| None)
    }

    /// Makes the call in a process that then ends.
    fn call(&self, requester: &str, input: Value) -> Outcome {
        let session = self.process(requester);
        let context = json!({ "principal": requester });
        let call = ToolCall::new("", "pay", input).with_server("bank").with_context(context);
        self.clock.block_on(session.execute(call, &self.tool))
    }

    /// Makes the call in a process that is killed after its store answered this many times, or when it waits for anything else. Returns the
    /// outcome if there is one.
    fn killed_after(&self, steps: usize) -> Option<Outcome> {
        self.store.by.0.store(steps, Ordering::SeqCst);
        let session = self.process("ana");
        let context = json!({ "principal": "ana" });
        let call = ToolCall::new("", "pay", json!({ "n": 1 })).with_server("bank").with_context(context);
        let outcome = {
            let running = pin!(session.execute(call, &self.tool));
            match running.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => Some(outcome),
                Poll::Pending => None,
            }
        };
        self.store.by.0.store(usize::MAX, Ordering::SeqCst);
        outcome
    }

    fn inbox(&self) -> Inbox {
        let store: Arc<dyn StateStore> = Arc::clone(&self.store) as _;
        Inbox::new(store, Keys::parse(&self.keys).unwrap(), self.clock.clone())
    }

    fn questions(&self) -> Vec<InboxItem> {
        self.clock.block_on(self.inbox().list()).unwrap()
    }

    /// Answers all pending requests and returns their number.
    fn answer(&self, approved: bool) -> usize {
        let pending: Vec<InboxItem> = self.questions().into_iter().filter(InboxItem::is_pending).collect();
        for item in &pending {
            let by = Some(Approver::new("lea"));
            self.clock.block_on(self.inbox().answer(&item.key, approval_response("", approved), by)).unwrap();
        }
        pending.len()
    }
}

fn pay(n: u64) -> Value {
    json!({ "n": n })
}

#[test]
fn approval_is_used_once_by_a_later_process_of_its_requester() {
    let world = World::new();
    let first = world.call("ana", pay(1));
    assert_eq!(first.outcome.name(), "suspended");
    let again = world.call("ana", json!({ "n": 1.0 }));
    assert_eq!(
        (again.outcome.name(), again.approval),
        ("suspended", first.approval),
        "equal arguments, one request"
    );
    assert_eq!((world.questions().len(), world.answer(true)), (1, 1));
    for (requester, input) in [("bob", pay(1)), ("ana", pay(2))] {
        assert_eq!(
            world.call(requester, input).outcome.name(),
            "suspended",
            "another requester, another call"
        );
    }
    assert_eq!(world.tool.count(), 0);
    let ran = world.call("ana", pay(1));
    assert_eq!(kind_and_code(&ran), ("executed", "approved"));
    assert_eq!(ran.approved.unwrap().by, ["lea"]);
    // It is used up: the same call requires approval again.
    let again = world.call("ana", pay(1));
    assert_eq!(again.outcome.name(), "suspended");
    assert_eq!(world.tool.count(), 1);
    world.answer(true);
    assert_eq!(kind_and_code(&world.call("ana", pay(1))), ("executed", "approved"));
    assert_eq!(kind_and_code(&world.call("bob", pay(1))), ("executed", "approved"));
    assert_eq!(world.tool.count(), 3);
}

#[test]
fn denial_or_expiry_is_reported_once_then_approval_is_required_again() {
    let world = World::new();
    world.call("ana", pay(1));
    world.answer(false);
    assert_eq!(kind_and_code(&world.call("ana", pay(1))), ("denied", "approval_denied"));
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    world.answer(true);
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(
        kind_and_code(&world.call("ana", pay(1))),
        ("denied", "approval_expired"),
        "approved, then resumed after expiry"
    );
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    assert_eq!(world.tool.count(), 0);
}

#[test]
fn unanswered_request_is_replaced_when_policies_require_another_one() {
    let mut world = World::new();
    world.call("ana", pay(1));
    world.rules = ASK.replace("expires: 1h", "expires: 1h, approvers: ['role:lead']");
    let asked = world.call("ana", pay(1));
    assert_eq!(asked.outcome.name(), "suspended");
    let questions = world.questions();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].requirements[0].approvers, ["role:lead"]);
    world.rules = "policies: [ { id: no, match: pay, deny: {} } ]".to_owned();
    assert_eq!(kind_and_code(&world.call("ana", pay(1))), ("denied", "denied"));
    world.rules = "policies: []".to_owned();
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "executed");
}

/// An edit that another policy requires approval for is a second request; the first response stays.
#[test]
fn request_about_edited_arguments_stays_until_answered() {
    let mut world = World::new();
    world.rules = "policies:
      - { id: ask, match: pay, approval: { edits: [$.input.n] } }
      - { id: much, match: { tool: pay, where: { path: $.input.n, gt: 10 } }, approval: { approvers: ['role:lead'] } }"
        .to_owned();
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    let item = world.questions().remove(0);
    let edit = ResponsePart { edited_input: Some(pay(50)), ..approval_response("", true) };
    world.clock.block_on(world.inbox().answer(&item.key, edit, Some(Approver::new("lea")))).unwrap();
    for _ in 0..3 {
        assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
        let item = world.questions().remove(0);
        assert_eq!((&item.request.input, item.requirements.len()), (&pay(50), 1));
    }
    let item = world.questions().remove(0);
    let by = Some(Approver { principal: "kim".to_owned(), roles: vec!["lead".to_owned()] });
    world.clock.block_on(world.inbox().answer(&item.key, approval_response("", true), by)).unwrap();
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "executed");
    assert_eq!(world.tool.inputs(), [pay(50)]);
}

#[test]
fn remembered_approval_resolves_a_pending_request() {
    let mut world = World::new();
    let remember = "remember: { scope: fields, fields: [$.input.to], for: 8h }";
    world.rules = ASK.replace("expires: 1h", remember);
    let to = |note: &str| json!({ "to": "bob", "note": note });
    for note in ["a", "b"] {
        assert_eq!(world.call("ana", to(note)).outcome.name(), "suspended");
    }
    let of_a = world.questions().into_iter().find(|item| item.request.input["note"] == "a").unwrap();
    let by = Some(Approver::new("lea"));
    world.clock.block_on(world.inbox().answer(&of_a.key, approval_response("", true), by)).unwrap();
    for note in ["a", "b"] {
        assert_eq!(world.call("ana", to(note)).outcome.name(), "executed", "{note}");
    }
}

#[test]
fn script_that_requires_approval_resumes_in_a_later_process() {
    let mut world = World::new();
    world.rules =
        "policies: [ { id: wrap, match: pay, around: { script: 'approve(\"Pay?\"); next(input)' } } ]"
            .to_owned();
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    assert_eq!(world.answer(true), 1);
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "executed");
    assert_eq!(world.tool.count(), 1);
}

/// I2, I7. Whichever process is killed between whichever two steps: an approval runs its call at most once, and it runs unless its
/// process was killed between the claim and the settling; then that is reported, and approval is required again.
#[test]
fn i2_processes_killed_between_any_steps_use_an_approval_at_most_once() {
    let (mut unfinished, mut ran) = (0, 0);
    for asking in 0.. {
        let mut was_asked = false;
        for running in 0.. {
            let world = World::new();
            was_asked = world.killed_after(asking).is_some();
            if world.answer(true) == 0 {
                assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
                assert_eq!(world.answer(true), 1);
            }
            assert_eq!(world.tool.count(), 0);
            let has_run = world.killed_after(running).is_some();
            let after_kill = world.tool.count();
            assert!(after_kill <= 1);
            let told = world.call("ana", pay(1));
            match told.outcome.name() {
                "executed" => assert_eq!(after_kill, 0, "{asking} {running}"),
                "indeterminate" => unfinished += 1,
                // It had completed.
                "suspended" => assert_eq!(after_kill, 1, "{asking} {running}"),
                other => panic!("{other} after {asking} and {running}"),
            }
            ran += world.tool.count();
            assert!(world.tool.count() <= 1);
            // Another execution needs another approval.
            let next = world.call("ana", pay(1));
            assert_eq!(next.outcome.name(), "suspended", "{asking} {running}");
            let runs = world.tool.count();
            world.answer(true);
            assert_eq!(world.call("ana", pay(1)).outcome.name(), "executed", "{asking} {running}");
            assert_eq!(world.tool.count(), runs + 1);
            if has_run {
                assert!(running > 5, "it completed after too few kills");
                break;
            }
        }
        if was_asked {
            assert!(asking > 2, "it completed after too few kills");
            break;
        }
    }
    assert!(unfinished > 0 && ran > unfinished, "not every phase was killed: {unfinished} {ran}");
}

/// A slow tool, so that other calls arrive meanwhile.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicUsize>);

impl ToolExecutor for Slow {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(json!("paid").into())
    }
}

/// I2. Gateways that race on one state file create one request and run one call for each approval.
#[test]
fn i2_processes_racing_on_one_file_request_and_run_once() {
    const PROCESSES: usize = 4;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state.db");
    let open = || -> Arc<dyn StateStore> { Arc::new(SqliteStore::open(&path).unwrap()) };
    let keys = || Keys::parse(KEY).unwrap();
    drop(open());
    let tool = Slow::default();
    let all_at_once = || -> Vec<Outcome> {
        let start = Barrier::new(PROCESSES);
        thread::scope(|scope| {
            let run = || {
                let engine = rules(&ASK.replace(", expires: 1h", "")).store(open()).keys(keys()).build();
                let session = engine.session().concurrent_for("ana", |_| None);
                let call = ToolCall::new("", "pay", pay(1)).with_server("bank");
                start.wait();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(session.execute(call, &tool))
            };
            let threads: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let inbox = Inbox::new(open(), keys(), callgate::host::SystemClock);
    for round in 1..=5 {
        let asked = all_at_once();
        assert!(asked.iter().all(|outcome| outcome.outcome.name() == "suspended"), "{asked:?}");
        let pending: Vec<InboxItem> =
            runtime.block_on(inbox.list()).unwrap().into_iter().filter(InboxItem::is_pending).collect();
        assert_eq!(pending.len(), 1, "round {round}");
        let by = Some(Approver::new("lea"));
        runtime.block_on(inbox.answer(&pending[0].key, approval_response("", true), by)).unwrap();
        let told = all_at_once();
        assert_eq!(tool.0.load(Ordering::SeqCst), round, "{told:?}");
        assert!(told.iter().any(|outcome| kind_and_code(outcome) == ("executed", "approved")));
        for outcome in told {
            // A call during the execution gets its result; a call afterwards requires approval again.
            assert!(matches!(outcome.outcome.name(), "executed" | "suspended"), "{outcome:?}");
        }
        let left: Vec<InboxItem> =
            runtime.block_on(inbox.list()).unwrap().into_iter().filter(InboxItem::is_pending).collect();
        for item in left {
            runtime
                .block_on(inbox.answer(&item.key, approval_response("", false), Some(Approver::new("lea"))))
                .unwrap();
            all_at_once();
        }
    }
}

/// Call names are keyed digests: their key depends on when approval was requested.
#[test]
fn approval_is_found_again_during_key_rotation() {
    let mut world = World::new();
    world.call("ana", pay(1));
    world.keys = format!("{NEXT_KEY},{KEY}");
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    assert_eq!(world.questions().len(), 1, "it is the same request");
    assert_eq!(world.answer(true), 1);
    assert_eq!(kind_and_code(&world.call("ana", pay(1))), ("executed", "approved"));
    // The next request is created, and found again, under the new key.
    assert_eq!(world.call("ana", pay(1)).outcome.name(), "suspended");
    assert_eq!(world.answer(true), 1);
    world.keys = NEXT_KEY.to_owned();
    assert_eq!(kind_and_code(&world.call("ana", pay(1))), ("executed", "approved"));
    assert_eq!(world.tool.count(), 2);
}

/// Tampering with records in the store does not make a call run.
#[test]
fn lost_or_wrong_numbers_never_run_a_call_without_approval() {
    for number in [0, 2, 7, u64::MAX] {
        let world = World::new();
        world.call("ana", pay(1));
        world.answer(true);
        world.call("ana", pay(1));
        world.call("ana", pay(1));
        let page = world.clock.block_on(world.store.records("latest", None, 10)).unwrap();
        let (key, record) = page.records.into_iter().next().expect("a record of the first number");
        let value = json!({ "number": number });
        let latest = callgate::host::RecordKey { space: "latest", key: &key };
        let write = callgate::host::ConditionalWrite::new(latest, &value, callgate::host::Account::NOBODY);
        let write = callgate::host::ConditionalWrite { expected_version: Some(record.version), ..write };
        assert!(
            world
                .clock
                .block_on(world.store.write_record("2026-01-01T12:00:00Z".parse().unwrap(), write))
                .unwrap()
        );
        for _ in 0..3 {
            let told = world.call("ana", pay(1));
            assert!(matches!(told.outcome.name(), "suspended" | "denied"), "{number}: {told:?}");
        }
        assert_eq!(world.tool.count(), 1);
    }
}
