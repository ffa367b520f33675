//! The inbox as a host's own program meets it: whose a store is, what it lists, and which answers it takes.

use std::sync::Arc;

use callgate::approval::{Inbox, InboxError, Ledger, LedgerError, Progress, Standing, is_owned};
use callgate::host::{ManualClock, StateStore};
use callgate::message::{Approver, ResponsePart, approval_response};
use callgate::seal::Keys;
use callgate::state::{EncryptedStore, MemoryStore};
use callgate::{Engine, Outcome, ToolCall};
use serde_json::json;

use crate::altered_stores::Altered;
use crate::approvals::scene::Shared;
use crate::workshop::{Tool, noon, rules};

const RULES: &str =
    "policies: [ { id: ask, match: pay, approval: { message: 'Pay {{ input.amount }}?', expires: 1h } } ]";

fn keys(digits: &str) -> Keys {
    Keys::parse(&digits.repeat(32)).unwrap()
}

fn shared() -> Altered<Shared> {
    Altered::by(Shared)
}

/// A store in which a call waits, asked about with these keys.
fn asked(clock: &ManualClock, keys: Keys) -> (Arc<dyn StateStore>, Outcome) {
    let store: Arc<dyn StateStore> = Arc::new(shared());
    let engine = rules(RULES).clock(clock.clone()).store(Arc::clone(&store)).keys(keys).build();
    let outcome = ask(clock, &engine);
    (store, outcome)
}

fn ask(clock: &ManualClock, engine: &Engine) -> Outcome {
    let mut session = engine.session().named("s");
    let call = ToolCall::new("c1", "pay", json!({ "amount": 5 }));
    clock.drive(session.execute(call, &Tool::counting(clock)))
}

fn yes() -> ResponsePart {
    approval_response("", true)
}

#[test]
fn a_store_is_that_of_the_keys_that_its_questions_are_sealed_with() {
    let clock = noon();
    let (store, _) = asked(&clock, keys("5a"));
    assert_eq!(clock.drive(is_owned(&*store, &clock)), Ok(true));
    let ledger =
        |keys: Keys| Ledger::new(Arc::new(EncryptedStore::new(Arc::clone(&store), Some(keys))), &clock);
    let belongs_to = |keys: Keys| clock.drive(ledger(keys.clone()).belongs_to(&keys));
    assert_eq!(belongs_to(keys("6b")), Ok(false));
    assert_eq!(belongs_to(keys("5a")), Ok(true));
    assert_eq!(belongs_to(keys("6b")), Ok(false));
    // A new key in front takes it over, and the old one can be retired.
    let both = Keys::parse(&format!("{},{}", "6b".repeat(32), "5a".repeat(32))).unwrap();
    assert_eq!(belongs_to(both), Ok(true));
    assert_eq!(belongs_to(keys("6b")), Ok(true));

    assert_eq!(clock.drive(is_owned(&shared(), &clock)), Ok(false));
}

#[test]
fn an_answer_is_taken_once_and_says_how_far_the_question_is() {
    let clock = noon();
    let (store, outcome) = asked(&clock, keys("5a"));
    let inbox = Inbox::new(Arc::clone(&store), keys("5a"), clock.clone());
    let item = clock.drive(inbox.find("approval_c1")).unwrap();
    assert_eq!((item.address().as_str(), item.waits()), ("s/approval_c1", true));
    assert_eq!(Some(&item.request), outcome.approval.as_ref());

    // Names and tokens that a response brings along are not believed.
    let forged =
        ResponsePart { answered_by: Some(Approver::new("eve")), approval_token: Some("x".into()), ..yes() };
    let after = clock.drive(inbox.answer(&item.name, forged, Some(Approver::new("ana")))).unwrap();
    let by = vec!["ana".to_owned()];
    assert_eq!(after.progress, Progress::Answered(Standing::Approved { by, edited: None, reason: None }));
    let again = clock.drive(inbox.answer(&item.name, yes(), Some(Approver::new("bob"))));
    assert!(matches!(again, Err(InboxError::Refused(_))), "{again:?}");
    assert_eq!(clock.drive(inbox.list()).unwrap()[0].answers.len(), 1);
}

#[test]
fn a_question_that_is_not_provably_ours_is_listed_and_not_answered() {
    let clock = noon();
    // A store that ends with the process is not encrypted, but its questions are.
    let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
    let engine = rules(RULES).clock(clock.clone()).store(Arc::clone(&store)).build();
    ask(&clock, &engine);
    let inbox = Inbox::new(Arc::clone(&store), keys("6b"), clock.clone());
    let item = clock.drive(inbox.find("approval_c1")).unwrap();
    assert!(matches!(item.progress, Progress::Unproven(_)), "{:?}", item.progress);
    let refused = clock.drive(inbox.answer(&item.name, yes(), None));
    assert!(matches!(refused, Err(InboxError::Refused(_))), "{refused:?}");
    assert!(clock.drive(inbox.list()).unwrap()[0].answers.is_empty());
    let own = Inbox::new(store, engine.keys().clone(), clock.clone());
    clock.drive(own.answer(&item.name, yes(), None)).unwrap();

    let (shared, _) = asked(&clock, keys("5a"));
    let unread = clock.drive(Inbox::new(shared, keys("6b"), clock.clone()).list());
    assert!(matches!(unread, Err(InboxError::Ledger(LedgerError::Store(_)))), "{unread:?}");
}

#[test]
fn a_question_lapses_also_after_its_approval_if_nobody_takes_it_up() {
    let clock = noon();
    let (store, _) = asked(&clock, keys("5a"));
    let inbox = Inbox::new(store, keys("5a"), clock.clone());
    let item = clock.drive(inbox.find("approval_c1")).unwrap();
    clock.drive(inbox.answer(&item.name, yes(), None)).unwrap();
    clock.advance(std::time::Duration::from_secs(3600));
    let late = clock.drive(inbox.find("approval_c1")).unwrap();
    assert!(matches!(late.progress, Progress::Lapsed { .. }), "{:?}", late.progress);
}
