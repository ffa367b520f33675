//! What every store guarantees, and what those who can write the server's data can do.

use std::sync::Arc;
use std::time::Duration;

use callgate::host::{
    Account, Allowance, Amount, CacheEntry, CacheSpace, CacheStore as _, ConditionalWrite, LimitAcquisition,
    LimitCorrection, LimitStore, RealCost, RecordKey, RecordStore as _, StateStore,
};
use callgate::json::json;
use callgate::seal::Keys;
use callgate::state::SealedStore;
use jiff::{Timestamp, ToSpan as _};

use super::server::{RedisServer, run};
use crate::store_contract;

pub fn take(key: &str, allowance: Allowance) -> LimitAcquisition {
    LimitAcquisition { key: key.to_owned(), account: Account::NOBODY, allowance, cost: Amount::from_whole(1) }
}

pub fn sliding(limit: u64, per: Duration) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::from_whole(limit), per }
}

fn admits(store: &dyn LimitStore, now: Timestamp, take: &LimitAcquisition) -> bool {
    run(store.acquire(now, std::slice::from_ref(take))).unwrap().is_empty()
}

#[test]
fn keeps_the_contract_of_stores() {
    let server = Arc::new(RedisServer::start());
    store_contract::check_all(&move || server.new_store());
}

#[test]
fn keeps_the_contract_of_stores_on_valkey() {
    let server = Arc::new(RedisServer::start_valkey(&[]));
    assert!(server.cli(&["info", "server"]).contains("valkey_version"));
    store_contract::check_all(&move || server.new_store());
}

#[test]
fn shares_its_capacity_fairly() {
    let server = Arc::new(RedisServer::start());
    store_contract::tenants::check_all(&move |capacity| server.new_store_with(capacity));
}

#[test]
fn hosts_hear_what_others_announce() {
    let server = RedisServer::start();
    store_contract::announcements::check_all(|| Arc::new(server.open("announcements").unwrap()));
}

#[test]
fn limits_follow_the_clock_of_the_server() {
    let server = RedisServer::start();
    let store = server.open("clocks").unwrap();
    let now = Timestamp::now();
    let hour = Duration::from_secs(3600);
    // Hosts whose clocks differ by hours count in the same window.
    for allowance in [
        sliding(3, hour),
        Allowance::Total { limit: Amount::from_whole(3), keep: hour },
        Allowance::Gcra { limit: Amount::from_whole(3), per: hour, burst: Amount::from_whole(3) },
    ] {
        let take = take(&format!("{allowance:?}"), allowance);
        let clocks = [0, 3, -3, 30, -30].map(|hours| now.checked_add(hours.hours()).unwrap());
        let admitted = clocks.iter().filter(|now| admits(&store, **now, &take)).count();
        assert_eq!(admitted, 3, "{allowance:?}");
    }
    assert_eq!(server.cli(&["exists", "{clocks:limits}:steps"]), "0", "no step of the clock was recorded");
}

#[test]
fn a_refund_finds_its_acquisition_whatever_the_callers_clock() {
    let server = RedisServer::start();
    let store = server.open("refunds").unwrap();
    let take =
        LimitAcquisition { cost: Amount::from_whole(2), ..take("k", sliding(4, Duration::from_secs(3600))) };
    let earlier = Timestamp::now().checked_sub(5.hours()).unwrap();
    assert!(
        admits(&store, earlier, &take) && admits(&store, earlier.checked_add(1.second()).unwrap(), &take)
    );
    let cost = RealCost::Known(Amount::from_whole(1));
    let correction = LimitCorrection { acquisition: take.clone(), acquired_at: earlier, cost };
    run(store.correct(earlier.checked_add(2.seconds()).unwrap(), &[correction])).unwrap();
    let one = LimitAcquisition { cost: Amount::from_whole(1), ..take };
    assert!(admits(&store, earlier, &one) && !admits(&store, earlier, &one));
}

#[test]
fn who_writes_the_data_can_neither_read_nor_forge_records() {
    let server = RedisServer::start();
    let open = || -> Arc<dyn StateStore> {
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        Arc::new(SealedStore::new(Arc::new(server.open("sealed").unwrap()), keys))
    };
    let store = open();
    let key = |key| RecordKey { space: "calls", key };
    for name in ["c1", "c2"] {
        let value = json!({ "approved": "secret answer" });
        let write = ConditionalWrite::new(key(name), &value, Account::NOBODY);
        assert_eq!(run(store.write_record(Timestamp::now(), write)), Ok(true));
    }
    let space = CacheSpace { name: "s", max_entries: 9, account: Account::NOBODY };
    let generation = run(store.cache_get(Timestamp::now(), space, "k")).unwrap().generation;
    let expires_at = Timestamp::now().checked_add(1.hour()).unwrap();
    let entry = CacheEntry { output: json!("secret result"), stored_at: Timestamp::now(), expires_at };
    run(store.cache_put(space, "k", entry, generation)).unwrap();
    assert!(admits(&*store, Timestamp::now(), &take("principal ann", sliding(5, Duration::from_secs(60)))));
    let dump = server.dump();
    for secret in ["secret answer", "secret result", "principal ann"] {
        assert!(!dump.contains(secret), "{dump}");
    }
    // A record in the place of another, and one that is no record at all.
    let name = |key: &str| format!("{{sealed:records}}:k:5:calls:{key}");
    let other = server.cli(&["--raw", "hget", &name("c2"), "v"]);
    server.cli(&["hset", &name("c1"), "v", &other]);
    assert!(run(open().record(key("c1"))).is_err());
    assert!(run(open().record(key("c2"))).is_ok());
    server.cli(&["set", &name("c2"), "nothing"]);
    assert!(run(open().record(key("c2"))).is_err());
    // Damaged limits refuse calls, and never admit more.
    for key in server.cli(&["--scan", "--pattern", "{sealed:limits}:k:*"]).lines() {
        server.cli(&["set", key, "w 5 x"]);
    }
    let again =
        run(open().acquire(Timestamp::now(), &[take("principal ann", sliding(5, Duration::from_secs(60)))]));
    assert!(again.is_err(), "{again:?}");
}

#[test]
fn data_of_newer_versions_and_servers_that_evict_are_not_used() {
    let server = RedisServer::start();
    drop(server.open("shared").unwrap());
    server.cli(&["set", "{shared:records}:format", "99"]);
    let newer = server.open("shared").unwrap_err();
    assert!(newer.contains("has version 99") && newer.contains("update it"), "{newer}");
    server.cli(&["config", "set", "maxmemory", "100mb"]);
    for (policy, is_used) in [("allkeys-lru", false), ("volatile-lru", true), ("noeviction", true)] {
        server.cli(&["config", "set", "maxmemory-policy", policy]);
        assert_eq!(server.open("other").map_err(|why| why.contains(policy)).is_ok(), is_used, "{policy}");
    }
}

#[test]
fn scripts_are_loaded_again_when_the_server_has_forgotten_them() {
    let server = RedisServer::start();
    let store = server.open("scripts").unwrap();
    let take = take("k", sliding(2, Duration::from_secs(3600)));
    assert!(admits(&store, Timestamp::now(), &take));
    server.cli(&["script", "flush"]);
    assert!(admits(&store, Timestamp::now(), &take) && !admits(&store, Timestamp::now(), &take));
}

#[test]
fn what_has_expired_is_removed_and_only_cached_results_may_be_evicted() {
    let server = RedisServer::start();
    let store = server.open("expiry").unwrap();
    assert!(admits(&store, Timestamp::now(), &take("short", sliding(5, Duration::from_millis(50)))));
    let value = json!(1);
    let soon = Timestamp::now().checked_add(50.milliseconds()).ok();
    let key = RecordKey { space: "calls", key: "short" };
    let write = ConditionalWrite { forget_at: soon, ..ConditionalWrite::new(key, &value, Account::NOBODY) };
    assert_eq!(run(store.write_record(Timestamp::now(), write)), Ok(true));
    let space = CacheSpace { name: "s", max_entries: 9, account: Account::NOBODY };
    let generation = run(store.cache_get(Timestamp::now(), space, "k")).unwrap().generation;
    let entry = CacheEntry {
        output: json!(1),
        stored_at: Timestamp::now(),
        expires_at: Timestamp::now().checked_add(1.hour()).unwrap(),
    };
    run(store.cache_put(space, "k", entry, generation)).unwrap();
    for key in server.cli(&["--scan", "--pattern", "{expiry:*"]).lines() {
        let time_to_live = server.cli(&["pttl", key]);
        // Some have been removed already.
        if time_to_live != "-2" {
            assert_eq!(time_to_live == "-1", !key.contains(":cached}:e:"), "{key}");
        }
    }
    // The store removes it by itself, without further calls.
    let is_gone = || {
        server.cli(&[
            "exists",
            "{expiry:limits}:k:short",
            "{expiry:limits}:w:short",
            "{expiry:records}:k:5:calls:short",
        ]) == "0"
            && server.cli(&["exists", "{expiry:limits}:held", "{expiry:records}:held"]) == "0"
    };
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        is_gone()
    });
    assert!(gone, "{}", server.dump());
}
