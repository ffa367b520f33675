//! Recorded sessions: session state is stored with each call, and no failure in between makes anything more permissive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callgate::host::{ManualClock, Record, RecordKey, StateStore, StoreError, StoreFuture};
use callgate::json::json;
use callgate::{Outcome, Session, ToolCall};

use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, keys, kind_and_code, noon, rules};

const RULES: &str = "policies:
  - { id: mark, match: read, label: { add: [seen] } }
  - id: marked
    match: { tool: mail, where: [ { path: '$.session.labels[*]', eq: seen } ] }
    deny: { message: It has read }
";

/// A shared store that can temporarily fail to read or write session records.
#[derive(Default)]
struct Shared {
    unreadable: AtomicBool,
    unwritable: AtomicBool,
}

fn fails<'a, T: Send + 'a>(
    good: StoreFuture<'a, T>,
    key: RecordKey<'_>,
    now: &AtomicBool,
) -> StoreFuture<'a, T> {
    match key.space == "sessions" && now.load(Ordering::Relaxed) {
        true => Box::pin(async { Err(StoreError::Unavailable("not now".to_owned())) }),
        false => good,
    }
}

impl Alteration for Shared {
    fn record<'a>(
        &'a self,
        good: StoreFuture<'a, Option<Record>>,
        key: RecordKey<'a>,
    ) -> StoreFuture<'a, Option<Record>> {
        fails(good, key, &self.unreadable)
    }
    fn write_record<'a>(&'a self, good: StoreFuture<'a, bool>, key: RecordKey<'a>) -> StoreFuture<'a, bool> {
        // The store drops what it would have written.
        fails(good, key, &self.unwritable)
    }
    fn is_shared(&self) -> bool {
        true
    }
}

struct Scene {
    clock: ManualClock,
    tool: Tool,
    store: Arc<Altered<Shared>>,
}

impl Scene {
    fn new() -> Self {
        let clock = noon();
        Self { tool: Tool::counting(&clock), clock, store: Arc::new(Altered::by(Shared::default())) }
    }

    /// The session in its own process.
    fn session(&self) -> Session {
        let store: Arc<dyn StateStore> = self.store.clone();
        rules(RULES)
            .keys(keys())
            .clock(self.clock.clone())
            .store(store)
            .build()
            .session()
            .with_name("s")
            .with_call_recording()
    }

    fn run(&self, session: &mut Session, id: &str, tool: &str) -> Outcome {
        self.clock.block_on(session.execute(ToolCall::new(id, tool, json!({})), &self.tool))
    }
}

#[test]
fn concurrent_processes_see_each_others_session_state() {
    let scene = Scene::new();
    let (mut one, mut other) = (scene.session(), scene.session());
    assert_eq!(scene.run(&mut other, "m1", "mail").outcome.name(), "executed");
    assert_eq!(scene.run(&mut one, "r", "read").outcome.name(), "executed");
    assert_eq!(scene.run(&mut other, "m2", "mail").outcome.name(), "denied");
    let mut third = scene.session();
    assert!(scene.run(&mut third, "m1", "mail").replayed);
    assert_eq!(scene.run(&mut third, "m3", "mail").outcome.name(), "denied");
}

/// As if the process crashed after the tool ran and before the session state was stored.
#[test]
fn call_whose_effects_were_lost_does_not_count_as_completed() {
    let scene = Scene::new();
    let mut session = scene.session();
    scene.store.by.unwritable.store(true, Ordering::Relaxed);
    assert_eq!(scene.run(&mut session, "r", "read").outcome.name(), "executed");
    scene.store.by.unwritable.store(false, Ordering::Relaxed);
    let mut later = scene.session();
    assert_eq!(kind_and_code(&scene.run(&mut later, "r", "read")), ("indeterminate", "unfinished"));
    assert_eq!(scene.tool.count(), 1);
    // The effects of the lost call on the session are unknown, in this process and in the next one.
    assert_eq!(kind_and_code(&scene.run(&mut later, "m", "mail")), ("denied", "undecided"));
    let mut last = scene.session();
    assert_eq!(kind_and_code(&scene.run(&mut last, "m2", "mail")), ("denied", "undecided"));
}

#[test]
fn nothing_runs_while_the_session_state_is_unknown() {
    let scene = Scene::new();
    let mut session = scene.session();
    scene.store.by.unreadable.store(true, Ordering::Relaxed);
    assert_eq!(kind_and_code(&scene.run(&mut session, "m", "mail")), ("denied", "store_unavailable"));
    let round = vec![ToolCall::new("a", "mail", json!({})), ToolCall::new("b", "mail", json!({}))];
    let outcomes = scene.clock.block_on(scene.session().execute_round(round, &scene.tool));
    assert!(
        outcomes.iter().all(|outcome| kind_and_code(outcome) == ("denied", "store_unavailable")),
        "{outcomes:#?}"
    );
    assert_eq!(scene.tool.count(), 0);
    scene.store.by.unreadable.store(false, Ordering::Relaxed);
    assert_eq!(scene.run(&mut scene.session(), "m", "mail").outcome.name(), "executed");
}

#[test]
fn session_starts_once() {
    let scene = Scene::new();
    assert_eq!(scene.clock.block_on(scene.session().begin_recorded()), Ok(true));
    assert_eq!(scene.clock.block_on(scene.session().begin_recorded()), Ok(false));
    // Even if it was never started, but has calls.
    let scene = Scene::new();
    scene.run(&mut scene.session(), "m", "mail");
    assert_eq!(scene.clock.block_on(scene.session().begin_recorded()), Ok(false));
    scene.store.by.unwritable.store(true, Ordering::Relaxed);
    let other = scene.session().with_name("t");
    assert!(scene.clock.block_on(other.begin_recorded()).is_err());
}
