//! Several hosts that acquire from one limit, claim the same calls, and are killed.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callgate::host::{Allowance, Amount, LimitStore as _};
use jiff::Timestamp;

use super::server::{RedisServer, run};
use super::store::{sliding, take};
use crate::server::kills_under_load::bring_to_outcome;
use crate::server::process::ServerProcess;

#[test]
fn hosts_together_never_exceed_a_limit_in_any_window() {
    const HOSTS: usize = 4;
    const LIMIT: usize = 20;
    let per = Duration::from_millis(250);
    let server = RedisServer::start();
    let start = Instant::now();
    let limits = [
        (take("sliding", sliding(LIMIT as u64, per)), LIMIT),
        // A bucket admits its burst and what is refilled in a window.
        (
            take(
                "bucket",
                Allowance::Gcra { limit: Amount::from_whole(10), per, burst: Amount::from_whole(10) },
            ),
            LIMIT,
        ),
    ];
    for (take, most) in limits {
        // When each admitted call was sent, and when its answer came.
        let log: Mutex<Vec<(Duration, Duration)>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..HOSTS {
                scope.spawn(|| {
                    let store = server.open("shared").unwrap();
                    for _ in 0..500 {
                        let sent = start.elapsed();
                        if run(store.acquire(Timestamp::now(), std::slice::from_ref(&take)))
                            .unwrap()
                            .is_empty()
                        {
                            log.lock().unwrap().push((sent, start.elapsed()));
                        }
                    }
                });
            }
        });
        let log = log.into_inner().unwrap();
        assert!(log.len() >= most / 2, "{}", log.len());
        for (from, _) in &log {
            // Certainly within one window: sent after its start, and answered before its end.
            let within =
                log.iter().filter(|(sent, answered)| sent >= from && *answered < *from + per).count();
            assert!(within <= most, "{within} of {} in the window at {from:?}", take.key);
        }
    }
}

/// Each call is sent to two hosts at once, each of which is killed again and again.
#[test]
fn hosts_that_are_killed_run_no_call_twice_and_exceed_no_limit() {
    const CALLERS: usize = 4;
    const CALLS: usize = 30;
    const KILLS: usize = 12;
    const LIMIT: usize = 90;
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let rules =
        format!("policies: [ {{ id: most, match: pay, rate_limit: {{ limit: {LIMIT}, per: 1h }} }} ]");
    std::fs::write(folder.path().join("rules.yaml"), rules).unwrap();
    let addresses: [SocketAddr; 2] =
        [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let state = redis.url("shared");
    let start = |address: SocketAddr| {
        let arguments = ["--listen", &address.to_string(), "--state", &state, "--approver", "ann"];
        ServerProcess::start(folder.path(), &arguments)
    };
    let mut hosts = addresses.map(start);
    let (executed, working) = (Mutex::new(Vec::new()), AtomicUsize::new(2 * CALLERS));
    let outcomes: Vec<(String, String)> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..2 * CALLERS)
            .map(|caller| {
                let (executed, working) = (&executed, &working);
                scope.spawn(move || {
                    let address = addresses[caller % 2];
                    let ids = (0..CALLS).map(|number| format!("c{}-{number}", caller / 2));
                    let outcomes: Vec<_> =
                        ids.map(|id| (id.clone(), bring_to_outcome(address, &id, executed))).collect();
                    working.fetch_sub(1, Ordering::SeqCst);
                    outcomes
                })
            })
            .collect();
        for kill in 0..KILLS {
            if working.load(Ordering::SeqCst) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(60 + 37 * (kill as u64 % 5)));
            hosts[kill % 2].kill();
            hosts[kill % 2] = start(addresses[kill % 2]);
        }
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    drop(hosts);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let executed = executed.into_inner().unwrap();
    executed.iter().for_each(|id| *times.entry(id).or_default() += 1);
    assert_eq!(times.iter().find(|(_, times)| **times > 1), None, "a call ran twice");
    assert!(executed.len() <= LIMIT, "{} ran", executed.len());
    let mut by_call: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    outcomes.iter().for_each(|(id, outcome)| by_call.entry(id).or_default().push(outcome));
    for (id, outcomes) in &by_call {
        let known = ["executed", "indeterminate", "denied"];
        assert!(
            outcomes.len() == 2 && outcomes.iter().all(|outcome| known.contains(outcome)),
            "{id}: {outcomes:?}"
        );
        if outcomes.contains(&"executed") {
            assert!(times.contains_key(id), "{id} did not run");
        }
    }
    let done = by_call.values().filter(|outcomes| outcomes.contains(&"executed")).count();
    assert!(done > LIMIT / 2, "{done} done");
}
