//! The approval inbox as used by a host's own program: ownership of a store, lists, and accepted responses.

use std::sync::Arc;

use callgate::approval::{Inbox, InboxError, LedgerError, RequestStatus, Tally};
use callgate::host::{ManualClock, StateStore, StoreError};
use callgate::json::json;
use callgate::message::{Approver, ResponsePart, approval_response};
use callgate::seal::Keys;
use callgate::state::{IntegrityError, MemoryStore, SealedStore, has_seals};
use callgate::{Engine, Outcome, ToolCall};

use crate::corrupted_stores::{Altered, Shared};
use crate::fixtures::{Tool, noon, rules};

const RULES: &str =
    "policies: [ { id: ask, match: pay, approval: { message: 'Pay {{ input.amount }}?', expires: 1h } } ]";

fn keys(digits: &str) -> Keys {
    Keys::parse(&digits.repeat(32)).unwrap()
}

/// A store with a pending call, requested under these keys.
fn store_with_pending_call(clock: &ManualClock, keys: Keys) -> (Arc<dyn StateStore>, Outcome) {
    let store: Arc<dyn StateStore> = Arc::new(Altered::by(Shared));
    let engine = rules(RULES).clock(clock.clone()).store(Arc::clone(&store)).keys(keys).build();
    let outcome = ask(clock, &engine);
    (store, outcome)
}

fn ask(clock: &ManualClock, engine: &Engine) -> Outcome {
    let mut session = engine.session().with_name("s");
    let call = ToolCall::new("c1", "pay", json!({ "amount": 5 }));
    clock.block_on(session.execute(call, &Tool::counting(clock)))
}

fn plain_approval() -> ResponsePart {
    approval_response("", true)
}

#[test]
fn store_belongs_to_the_keys_that_sealed_its_requests() {
    let clock = noon();
    let (store, _) = store_with_pending_call(&clock, keys("5a"));
    assert_eq!(clock.block_on(has_seals(&*store)), Ok(true));
    let open = |keys| clock.block_on(SealedStore::new(Arc::clone(&store), keys).open());
    assert_eq!(open(keys("6b")), Err(IntegrityError::OtherKeys));
    assert_eq!(open(keys("5a")), Ok(()));
    assert_eq!(open(keys("6b")), Err(IntegrityError::OtherKeys));
    // A new first key takes over the store with all its content, and the old one can be retired.
    let both = Keys::parse(&format!("{},{}", "6b".repeat(32), "5a".repeat(32))).unwrap();
    assert_eq!(open(both), Ok(()));
    assert_eq!(open(keys("6b")), Ok(()));
    let inbox = Inbox::new(Arc::clone(&store), keys("6b"), clock.clone());
    assert_eq!(clock.block_on(inbox.list()).unwrap().len(), 1);
    assert_eq!(open(keys("5a")), Err(IntegrityError::OtherKeys));
}

#[test]
fn answer_is_accepted_once_and_returns_the_progress_of_its_request() {
    let clock = noon();
    let (store, outcome) = store_with_pending_call(&clock, keys("5a"));
    let inbox = Inbox::new(Arc::clone(&store), keys("5a"), clock.clone());
    let item = clock.block_on(inbox.find("approval_c1")).unwrap();
    assert_eq!((item.qualified_id().as_str(), item.is_pending()), ("s/approval_c1", true));
    assert_eq!(Some(&item.request), outcome.approval.as_deref());

    // Names and tokens inside a response are not trusted.
    let forged = ResponsePart {
        answered_by: Some(Approver::new("eve")),
        approval_token: Some("x".into()),
        ..plain_approval()
    };
    let after = clock.block_on(inbox.answer(&item.key, forged, Some(Approver::new("ana")))).unwrap();
    let by = vec!["ana".to_owned()];
    assert_eq!(after.status, RequestStatus::Answered(Tally::Approved { by, edited: None, reason: None }));
    let again = clock.block_on(inbox.answer(&item.key, plain_approval(), Some(Approver::new("bob"))));
    assert!(matches!(again, Err(InboxError::Rejected { .. })), "{again:?}");
    assert_eq!(clock.block_on(inbox.list()).unwrap()[0].answers.len(), 1);
}

#[test]
fn answer_is_for_the_request_that_was_shown() {
    let clock = noon();
    let (store, _) = store_with_pending_call(&clock, keys("5a"));
    let inbox = Inbox::new(store, keys("5a"), clock.clone());
    let shown = clock.block_on(inbox.find("approval_c1")).unwrap();
    let mut other = shown.clone();
    other.request.approval_token = Some("of a request that was replaced".to_owned());
    let answer =
        |item| clock.block_on(inbox.answer_shown(item, plain_approval(), Some(Approver::new("ana"))));
    let refused = answer(&other);
    assert!(matches!(refused, Err(InboxError::Rejected { code: "changed", .. })), "{refused:?}");
    assert!(clock.block_on(inbox.list()).unwrap()[0].is_pending());
    assert!(!answer(&shown).unwrap().is_pending());
}

#[test]
fn store_with_unproven_ownership_is_not_listed() {
    let clock = noon();
    // An ephemeral store is not encrypted, but its requests are.
    let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
    let engine = rules(RULES).clock(clock.clone()).store(Arc::clone(&store)).build();
    ask(&clock, &engine);
    let inbox = Inbox::new(Arc::clone(&store), keys("6b"), clock.clone());
    let item = clock.block_on(inbox.find("approval_c1")).unwrap();
    assert!(matches!(item.status, RequestStatus::Invalid(_)), "{:?}", item.status);
    let refused = clock.block_on(inbox.answer(&item.key, plain_approval(), None));
    assert!(matches!(refused, Err(InboxError::Rejected { .. })), "{refused:?}");
    assert!(clock.block_on(inbox.list()).unwrap()[0].answers.is_empty());
    let own = Inbox::new(store, engine.keys().clone(), clock.clone());
    clock.block_on(own.answer(&item.key, plain_approval(), Some(Approver::new("bea")))).unwrap();

    let (shared, _) = store_with_pending_call(&clock, keys("5a"));
    let refused = clock.block_on(Inbox::new(shared, keys("6b"), clock.clone()).list()).unwrap_err();
    let altered = InboxError::Ledger(LedgerError::Store(StoreError::Altered(String::new())));
    assert_eq!(std::mem::discriminant(&refused), std::mem::discriminant(&altered));
    assert!(refused.to_string().contains("the store was altered"), "{refused}");
}

#[test]
fn approved_request_expires_if_it_is_not_resumed() {
    let clock = noon();
    let (store, _) = store_with_pending_call(&clock, keys("5a"));
    let inbox = Inbox::new(store, keys("5a"), clock.clone());
    let item = clock.block_on(inbox.find("approval_c1")).unwrap();
    clock.block_on(inbox.answer(&item.key, plain_approval(), Some(Approver::new("ana")))).unwrap();
    clock.advance(std::time::Duration::from_secs(3600));
    let late = clock.block_on(inbox.find("approval_c1")).unwrap();
    assert!(matches!(late.status, RequestStatus::Expired { .. }), "{:?}", late.status);
}

#[test]
fn links_answer_alone_only_if_every_policy_allows_it() {
    let clock = noon();
    let allows = "{ id: ask, match: pay, approval: { answer_by_link: allow } }";
    let limit = "{ id: most, match: pay, rate_limit: { limit: 4, per: 1h, cost: input.amount, on_exceed: approval, approval: { answer_by_link: allow } } }";
    let silent = "{ id: too, match: pay, approval: {} }";
    let refuses = "{ id: too, match: pay, approval: { answer_by_link: refuse } }";
    let of = |policies: &str| format!("policies: [ {policies} ]");
    for (text, is_allowed) in [
        (of(allows), true),
        (of(limit), true),
        (of(&format!("{allows}, {limit}")), true),
        (of(silent), false),
        (of(refuses), false),
        (of(&format!("{allows}, {silent}")), false),
        (of(&format!("{allows}, {refuses}")), false),
        ("callgate: 1\ndefaults: { unmatched: approval }\npolicies: []".to_owned(), false),
    ] {
        let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
        let engine = rules(&text).clock(clock.clone()).store(Arc::clone(&store)).build();
        ask(&clock, &engine);
        let inbox = Inbox::new(store, engine.keys().clone(), clock.clone());
        let item = clock.block_on(inbox.find("approval_c1")).unwrap();
        assert_eq!(item.allows_answer_by_link(), is_allowed, "{text}");
    }
}

#[test]
fn anonymous_answer_is_accepted_only_if_every_policy_allows_it() {
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
        for response in [
            plain_approval(),
            approval_response("", false),
            ResponsePart { cancel: true, ..plain_approval() },
        ] {
            let store: Arc<dyn StateStore> = Arc::new(MemoryStore::default());
            let engine = rules(&text).clock(clock.clone()).store(Arc::clone(&store)).build();
            let call = ToolCall::new("c1", "pay", json!({ "amount": 5 }));
            clock.block_on(engine.session().with_name("s").execute(call, &Tool::counting(&clock)));
            let inbox = Inbox::new(store, engine.keys().clone(), clock.clone());
            let item = clock.block_on(inbox.find("approval_c1")).unwrap();
            let answered = clock.block_on(inbox.answer(&item.key, response.clone(), None));
            assert_eq!(answered.is_ok(), is_taken, "{text}: {answered:?}");
            if !is_taken {
                assert_eq!(answered, Err(InboxError::Anonymous), "{text}");
                let named = clock.block_on(inbox.answer(&item.key, response, Some(Approver::new("ana"))));
                assert!(named.is_ok(), "{text}: {named:?}");
            }
        }
    }
}
