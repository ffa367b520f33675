//! Caches that are filled, read and emptied at the same time.

use std::time::Duration;

use callgate::OutcomeKind;
use callgate::host::Clock;
use callgate::json::json;

use super::{ends, engine_at};
use crate::workshop::{Tool, call};

#[test]
fn what_was_read_while_a_tool_changed_it_is_forgotten_however_the_change_ends() {
    let text = "policies:
      - { id: c, match: get, cache: { ttl: 1h, invalidate_on: set } }
      - { id: late, match: set, timeout: 20s }";
    for (name, takes, dropped) in [("ended", 10, false), ("given up", 60, false), ("dropped", 10, true)] {
        let (engine, clock) = engine_at(text);
        let (reads, sets) =
            (Tool::counting(&clock), Tool::scripted(&clock, [(Duration::from_secs(takes), Ok(json!(1)))]));
        let (mut reader, mut setter) = (engine.session(), engine.session());
        let get = || call("get", json!({}));
        clock.drive(async {
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
        assert_eq!(ends(&clock, &mut reader, &reads, &[get()]), ["executed"], "{name}");
    }
}

#[test]
fn each_time_that_nothing_is_kept_one_goes_to_the_tool() {
    let (engine, clock) = engine_at("policies: [ { id: c, match: get, cache: { ttl: 1h } } ]");
    let tool = Tool::scripted(&clock, [(Duration::from_secs(1), Ok(json!(1)))]);
    let (mut one, mut other) = (engine.session(), engine.session());
    for runs in 1..4 {
        let (first, second) = clock.drive(async {
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
