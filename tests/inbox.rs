//! The inbox as a host's own program meets it: whose a store is, what it lists, and which answers it takes.

use std::sync::Arc;

use callgate::approval::{Inbox, InboxError, LedgerError, Progress, Standing};
use callgate::host::{ManualClock, StateStore, StoreError};
use callgate::json::json;
use callgate::message::{Approver, ResponsePart, approval_response};
use callgate::seal::Keys;
use callgate::state::{IntegrityError, MemoryStore, SealedStore, was_sealed};
use callgate::{Engine, Outcome, ToolCall};

use crate::altered_stores::{Altered, Shared};
use crate::workshop::{Tool, noon, rules};

const RULES: &str =
    "policies: [ { id: ask, match: pay, approval: { message: 'Pay {{ input.amount }}?', expires: 1h } } ]";

fn keys(digits: &str) -> Keys {
    Keys::parse(&digits.repeat(32)).unwrap()
}

/// A store in which a call waits, asked about with these keys.
fn asked(clock: &ManualClock, keys: Keys) -> (Arc<dyn StateStore>, Outcome) {
    let store: Arc<dyn StateStore> = Arc::new(Altered::by(Shared));
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
    assert_eq!(clock.drive(was_sealed(&*store)), Ok(true));
    let open = |keys| clock.drive(SealedStore::new(Arc::clone(&store), keys).open());
    assert_eq!(open(keys("6b")), Err(IntegrityError::OtherKeys));
    assert_eq!(open(keys("5a")), Ok(()));
    assert_eq!(open(keys("6b")), Err(IntegrityError::OtherKeys));
    // A new key in front takes it over, with all that it holds, and the old one can be retired.
    let both = Keys::parse(&format!("{},{}", "6b".repeat(32), "5a".repeat(32))).unwrap();
    assert_eq!(open(both), Ok(()));
    assert_eq!(open(keys("6b")), Ok(()));
    let inbox = Inbox::new(Arc::clone(&store), keys("6b"), clock.clone());
    assert_eq!(clock.drive(inbox.list()).unwrap().len(), 1);
    assert_eq!(open(keys("5a")), Err(IntegrityError::OtherKeys));
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
    assert!(matches!(again, Err(InboxError::Refused { .. })), "{again:?}");
    assert_eq!(clock.drive(inbox.list()).unwrap()[0].answers.len(), 1);
}

#[test]
fn a_store_that_is_not_provably_ours_is_not_listed() {
    let clock = noon();
    // A store that ends with the process is not encrypted, but its questions are.
    let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
    let engine = rules(RULES).clock(clock.clone()).store(Arc::clone(&store)).build();
    ask(&clock, &engine);
    let inbox = Inbox::new(Arc::clone(&store), keys("6b"), clock.clone());
    let item = clock.drive(inbox.find("approval_c1")).unwrap();
    assert!(matches!(item.progress, Progress::Unproven(_)), "{:?}", item.progress);
    let refused = clock.drive(inbox.answer(&item.name, yes(), None));
    assert!(matches!(refused, Err(InboxError::Refused { .. })), "{refused:?}");
    assert!(clock.drive(inbox.list()).unwrap()[0].answers.is_empty());
    let own = Inbox::new(store, engine.keys().clone(), clock.clone());
    clock.drive(own.answer(&item.name, yes(), Some(Approver::new("bea")))).unwrap();

    let (shared, _) = asked(&clock, keys("5a"));
    let refused = clock.drive(Inbox::new(shared, keys("6b"), clock.clone()).list()).unwrap_err();
    let altered = InboxError::Ledger(LedgerError::Store(StoreError::Altered(String::new())));
    assert_eq!(std::mem::discriminant(&refused), std::mem::discriminant(&altered));
    assert!(refused.to_string().contains("can't be believed"), "{refused}");
}

#[test]
fn a_question_lapses_also_after_its_approval_if_nobody_takes_it_up() {
    let clock = noon();
    let (store, _) = asked(&clock, keys("5a"));
    let inbox = Inbox::new(store, keys("5a"), clock.clone());
    let item = clock.drive(inbox.find("approval_c1")).unwrap();
    clock.drive(inbox.answer(&item.name, yes(), Some(Approver::new("ana")))).unwrap();
    clock.advance(std::time::Duration::from_secs(3600));
    let late = clock.drive(inbox.find("approval_c1")).unwrap();
    assert!(matches!(late.progress, Progress::Lapsed { .. }), "{:?}", late.progress);
}

#[test]
fn an_answer_without_a_name_is_taken_only_where_every_policy_that_asks_allows_it() {
    let clock = noon();
    let allows = "{ id: ask, match: pay, approval: { anonymous: allow } }";
    let refuses = "{ id: too, match: pay, approval: { anonymous: refuse } }";
    let silent = "{ id: too, match: pay, approval: {} }";
    let unmatched = "callgate: 1\ndefaults: { unmatched: approval }\npolicies: []";
    let script = "{ id: own, match: pay, around: { script: 'approve(\"Pay?\"); next(input)' } }";
    let of = |policies: &str| format!("policies: [ {policies} ]");
    for (text, is_taken) in [
        (of(allows), true),
        (of(silent), false),
        (of(refuses), false),
        (of(&format!("{allows}, {silent}")), false),
        (of(script), false),
        (unmatched.to_owned(), false),
    ] {
        for response in [yes(), approval_response("", false), ResponsePart { cancel: true, ..yes() }] {
            let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
            let engine = rules(&text).clock(clock.clone()).store(Arc::clone(&store)).build();
            let call = ToolCall::new("c1", "pay", json!({ "amount": 5 }));
            clock.drive(engine.session().named("s").execute(call, &Tool::counting(&clock)));
            let inbox = Inbox::new(store, engine.keys().clone(), clock.clone());
            let item = clock.drive(inbox.find("approval_c1")).unwrap();
            let answered = clock.drive(inbox.answer(&item.name, response.clone(), None));
            assert_eq!(answered.is_ok(), is_taken, "{text}: {answered:?}");
            if !is_taken {
                assert_eq!(answered, Err(InboxError::Anonymous), "{text}");
                let named = clock.drive(inbox.answer(&item.name, response, Some(Approver::new("ana"))));
                assert!(named.is_ok(), "{text}: {named:?}");
            }
        }
    }
}
