//! Caches that are written, read and invalidated concurrently.

use std::time::Duration;

use callgate::OutcomeKind;
use callgate::host::Clock;
use callgate::json::json;

use super::{engine_at, outcome_kinds};
use crate::fixtures::{Tool, call};

#[test]
fn entry_read_during_a_change_is_invalidated_however_the_change_ends() {
    let text = "policies:
      - { id: c, match: get, cache: { ttl: 1h, invalidate_on: set } }
      - { id: late, match: set, timeout: 20s }";
    for (name, takes, dropped) in [("ended", 10, false), ("timed out", 60, false), ("dropped", 10, true)] {
        let (engine, clock) = engine_at(text);
        let (reads, sets) =
            (Tool::counting(&clock), Tool::scripted(&clock, [(Duration::from_secs(takes), Ok(json!(1)))]));
        let (mut reader, mut setter) = (engine.session(), engine.session());
        let get = || call("get", json!({}));
        clock.block_on(async {
            reader.execute(get(), &reads).await;
            let change = setter.execute(call("set", json!({})), &sets);
            let meanwhile = async {
                clock.sleep(Duration::from_secs(5)).await;
                if !dropped {
                    reader.execute(get(), &reads).await;
                }
            };
            if dropped {
                tokio::select! {
                    biased;
                    _ = change => panic!("it takes longer"),
                    () = meanwhile => {}
                }
            } else {
                tokio::join!(change, meanwhile);
            }
        });
        assert_eq!(outcome_kinds(&clock, &mut reader, &reads, &[get()]), ["executed"], "{name}");
    }
}

#[test]
fn each_concurrent_miss_after_expiry_is_a_single_flight() {
    let (engine, clock) = engine_at("policies: [ { id: c, match: get, cache: { ttl: 1h } } ]");
    let tool = Tool::scripted(&clock, [(Duration::from_secs(1), Ok(json!(1)))]);
    let (mut one, mut other) = (engine.session(), engine.session());
    for runs in 1..4 {
        let (first, second) = clock.block_on(async {
            tokio::join!(
                one.execute(call("get", json!({})), &tool),
                other.execute(call("get", json!({})), &tool)
            )
        });
        assert_eq!((first.outcome, second.outcome), (OutcomeKind::Executed, OutcomeKind::Cached));
        assert_eq!(tool.count(), runs);
        clock.advance(Duration::from_secs(7200));
    }
}
