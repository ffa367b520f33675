//! Key rotation: data under an older key is readable, and new data is written under the current key.

use std::sync::Arc;

use callgate::host::StateStore;
use callgate::json::{Value, json};
use callgate::message::{History, Message, Part, Role};
use callgate::seal::Keys;

use super::KEY;
use crate::corrupted_stores::{Altered, Shared};
use crate::fixtures::{Tool, call, noon, rules, run};

const NEW: &str = "6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b";

fn keys(text: &str) -> Keys {
    Keys::parse(text).unwrap()
}

/// While there are two keys, limits are counted under both, so that no count restarts when one key is removed.
#[test]
fn limits_keep_their_counts_during_key_rotation() {
    let clock = noon();
    let store: Arc<dyn StateStore> = Arc::new(Altered::by(Shared));
    let tool = Tool::counting(&clock);
    let both = format!("{NEW},{KEY}");
    let limited = "policies: [ { id: l, match: pay, rate_limit: { limit: 2, per: 1h, key: $.input.who } } ]";
    let mut session = 0;
    let mut pay = |with: &str| {
        session += 1;
        let engine = rules(limited).clock(clock.clone()).store(Arc::clone(&store)).keys(keys(with)).build();
        let mut session = engine.session().with_name(format!("s{session}"));
        let outcome = run(&clock, &mut session, &tool, &[call("pay", json!({ "who": "ana" }))]).remove(0);
        outcome.outcome.name()
    };
    let told = [KEY, &both, &both, NEW, NEW].map(&mut pay);
    // The old key counted two, the new one the second of them.
    assert_eq!(told, ["executed", "executed", "denied", "executed", "denied"]);
}

/// Session state is decrypted with the old key, and encrypted with the new one.
#[test]
fn session_state_in_a_history_survives_rotation() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let remembering = r#"
policies:
  - { id: keep, match: setPin, fact: { name: pin, value: $.input.pin } }
  - { id: wrong, match: { tool: unlock, where: [ { path: $.input.pin, ne: { path: $.session.facts.pin } } ] }, deny: {} }
"#;
    let mut history = History::default();
    let mut turn = |with: &str, name: &str, tool_name: &str, input: Value| {
        let engine = rules(remembering).clock(clock.clone()).keys(keys(with)).build();
        history.push(Message::new(Role::Assistant, vec![Part::call(name.to_owned(), tool_name, input)]));
        let round =
            clock.block_on(engine.session().with_name("talk").run_round(&mut history, &tool)).unwrap();
        round.outcomes[0].outcome.name()
    };
    let both = format!("{NEW},{KEY}");
    assert_eq!(turn(KEY, "c1", "setPin", json!({ "pin": 4711 })), "executed");
    assert_eq!(turn(&both, "c2", "unlock", json!({ "pin": 4711 })), "executed");
    assert_eq!(turn(NEW, "c3", "unlock", json!({ "pin": 4711 })), "executed");
    // Without the key that encrypted it, the session state is unknown.
    assert_eq!(turn(KEY, "c4", "unlock", json!({ "pin": 4711 })), "denied");
}
