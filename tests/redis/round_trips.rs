//! What a call costs: the requests that a host sends to the server, counted by a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::hosts::Host;
use super::server::{RedisServer, open_url, redis_url, run};
use super::store::{sliding, take};
use super::trouble::write;
use crate::cutting_proxy::CuttingProxy;
use callgate::approval::{Inbox, LedgerKey};
use callgate::host::{LimitStore as _, RecordKey, RecordStore as _, StateStore, SystemClock};
use callgate::json::json;
use callgate::message::{History, Message, Part, Role, approval_response};
use callgate::seal::Keys;
use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};
use jiff::Timestamp;

/// The requests that this work sends. The maintenance of a store sends some, too, so the least of several attempts counts.
fn requests_of(proxy: &CuttingProxy, work: &mut dyn FnMut(usize)) -> u64 {
    let mut attempt = |number| {
        std::thread::sleep(Duration::from_millis(30));
        let before = proxy.requests();
        work(number);
        proxy.requests() - before
    };
    (0..12).map(&mut attempt).min().unwrap()
}

#[test]
fn each_operation_of_the_store_is_one_round_trip() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let store = open_url(&redis_url(&proxy)).unwrap();
    let hour = Duration::from_secs(3600);
    let batch = [take("a", sliding(100, hour)), take("b", sliding(100, hour)), take("c", sliding(0, hour))];
    // The scripts are loaded.
    run(store.acquire(Timestamp::now(), &batch)).unwrap();
    let key = RecordKey { space: "calls", key: "c" };
    assert_eq!(write(&store, key, &json!(0), None), Ok(true));
    for (name, mut work) in [
        (
            "a batch of limits",
            Box::new(|_| drop(run(store.acquire(Timestamp::now(), &batch[..2])).unwrap()))
                as Box<dyn FnMut(usize)>,
        ),
        ("a refused batch", Box::new(|_| drop(run(store.acquire(Timestamp::now(), &batch)).unwrap()))),
        ("a record", Box::new(|_| drop(run(store.record(key)).unwrap()))),
        ("a page", Box::new(|_| drop(run(store.records("calls", None, 9)).unwrap()))),
        (
            "a write",
            Box::new(|number| {
                drop(write(&store, RecordKey { space: "calls", key: &number.to_string() }, &json!(1), None))
            }),
        ),
    ] {
        assert_eq!(requests_of(&proxy, &mut *work), 1, "{name}");
    }
}

#[test]
fn each_call_costs_the_round_trips_of_the_guide() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let host = Host::start(&redis_url(&proxy));
    let begins = |id: &str, tool: &str| assert_eq!(host.call(id, tool)["status"], "execute", "{tool}");
    begins("first", "counted");
    let plain = requests_of(&proxy, &mut |number| begins(&format!("free{number}"), "free"));
    let limited = requests_of(&proxy, &mut |number| begins(&format!("counted{number}"), "counted"));
    assert_eq!(limited, plain + 1, "a limit costs one");
    let approved = (0..4).map(|number| {
        let id = format!("pay{number}");
        assert_eq!(host.call(&id, "pay")["outcome"]["outcome"], "suspended");
        host.approve();
        std::thread::sleep(Duration::from_millis(100));
        let before = proxy.requests();
        begins(&id, "pay");
        proxy.requests() - before
    });
    let approved = approved.min().unwrap();
    let guide = std::fs::read_to_string(crate::fixtures::root().join("docs/guides/share-state.md")).unwrap();
    for row in [
        format!("| a call through a decision server, until it executes | {plain} |"),
        format!("| the same with limits | {limited} |"),
        format!("| an approved call through a decision server, until it executes | {approved} |"),
    ] {
        assert!(guide.contains(&row), "{row}");
    }
}

/// A tool that notes how many requests were sent when it began.
struct CountingTool<'p>(&'p CuttingProxy, AtomicU64);

impl ToolExecutor for CountingTool<'_> {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.1.store(self.0.requests(), Ordering::SeqCst);
        Ok(json!("done").into())
    }
}

#[test]
fn a_call_of_a_run_costs_one_round_trip_for_limits_and_two_for_its_claim() {
    const RULES: &str = "policies:
      - { id: many, match: counted, rate_limit: { limit: 1000, per: 1h } }
      - { id: ask, match: pay, approval: { message: 'Pay?', anonymous: allow } }";
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let keys = Keys::parse(&"5a".repeat(32)).unwrap();
    let store: Arc<dyn StateStore> = Arc::new(open_url(&redis_url(&proxy)).unwrap());
    let engine = Engine::builder(callgate::load_text(RULES).unwrap())
        .keys(keys.clone())
        .store(Arc::clone(&store))
        .build();
    let inbox = Inbox::new(store, keys, SystemClock);
    let tool = CountingTool(&proxy, AtomicU64::new(0));
    let requests_until_run = |work: &dyn Fn(usize) -> u64| (0..8).map(work).min().unwrap();
    let begins = |name: &str| {
        requests_until_run(&|number| {
            let before = proxy.requests();
            let call = ToolCall::new(format!("{name}{number}"), name, json!({}));
            let outcome = run(engine.session().execute(call, &tool));
            assert_eq!(outcome.outcome, OutcomeKind::Executed);
            tool.1.load(Ordering::SeqCst) - before
        })
    };
    let (free, counted) = (begins("free"), begins("counted"));
    let approved = requests_until_run(&|number| {
        let (talk, id) = (format!("talk{number}"), format!("pay{number}"));
        let call = Part::call(&id, "pay", json!({}));
        let mut history = History::new(vec![Message::new(Role::Assistant, vec![call])]);
        let session = || engine.session().with_name(&talk);
        assert!(run(session().run_round(&mut history, &tool)).unwrap().is_suspended());
        let approval = format!("approval_{id}");
        let key = LedgerKey::of_approval(&talk, &approval);
        run(inbox.answer(&key, approval_response(&approval, true), None)).unwrap();
        let before = proxy.requests();
        let round = run(session().resume(&mut history, &tool)).unwrap();
        assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed, "{:?}", round.outcomes);
        tool.1.load(Ordering::SeqCst) - before
    });
    // Two of them read the state of the session.
    assert_eq!((free, counted, approved), (0, 1, 4));
    let guide = std::fs::read_to_string(crate::fixtures::root().join("docs/guides/share-state.md")).unwrap();
    let row = format!("| an approved call of a run that resumes, until it executes | {approved} |");
    assert!(guide.contains(&row), "{row}");
}
