//! What a call costs: the requests that a host sends to the server, counted by a proxy.

use std::time::Duration;

use super::hosts::Host;
use super::server::{RedisServer, open_url, redis_url, run};
use super::store::{sliding, take};
use super::trouble::write;
use crate::cutting_proxy::CuttingProxy;
use crate::run_cost::RunCost;
use callgate::host::{Account, LimitStore as _, RecordKey, RecordStore as _};
use callgate::json::json;
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
        (
            "records of several spaces",
            Box::new(|_| {
                let keys = [key, RecordKey { space: "sessions", key: "missing" }];
                drop(run(store.record_batch(&keys, &Account::NOBODY)).unwrap())
            }),
        ),
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

#[test]
fn calls_of_a_run_cost_the_round_trips_of_the_guide() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let cost = RunCost::measure(open_url(&redis_url(&proxy)).unwrap(), &|| proxy.requests());
    assert_eq!(cost, RunCost { stateless: 0, limited: 1, approved: 2, others_approved: 3 });
    cost.check_guide(1);
}
