//! Requests and responses that were forged, changed, swapped or moved.

use std::cell::OnceCell;

use callgate::json::{Value, json};
use callgate::message::{
    Dialect, History, Message, Part, PartContent, RequestPart, ResponsePart, Role, approval_response,
};

use callgate::ToolCall;

use super::scene::{KEY, NEXT_KEY, REFUNDS, Scene, with_parts, with_request};
use crate::fixtures::kind_and_code;

fn refund() -> Value {
    json!({ "amount": 250, "note": "late" })
}

/// I3. Each way of tampering with an approved request: nothing runs, and approval is required again or the call ends.
#[test]
fn i3_request_that_was_tampered_with_runs_nothing() {
    type Tamper = fn(&mut RequestPart);
    let ways: [(&str, Tamper); 9] = [
        ("no token", |request| request.approval_token = None),
        ("an empty token", |request| request.approval_token = Some(String::new())),
        ("a token in the form of the first version", |request| {
            let claims = data_encoding::BASE64URL_NOPAD.encode(br#"{"version":1}"#);
            request.approval_token = Some(format!("{claims}.cg1.ec2ce584.{}", "0".repeat(64)));
        }),
        ("a cut token", |request| {
            request.approval_token.as_mut().unwrap().pop();
        }),
        ("other arguments", |request| request.input = Some(json!({ "amount": 1 }))),
        ("another digest", |request| request.input_digest = Some("0".repeat(64))),
        ("another question", |request| request.message = Some("Refund 1?".into())),
        ("fewer policies", |request| request.policies.clear()),
        ("a server", |request| request.server = Some("bank".into())),
    ];
    for (what, tamper) in ways {
        for mut scene in Scene::with_both_stores(REFUNDS) {
            scene.ask(refund());
            scene.approve();
            scene.history = with_request(&scene.history, tamper);
            let outcome = scene.outcome();
            assert_eq!(scene.tool.count(), 0, "{what}");
            assert_ne!(outcome.outcome.name(), "executed", "{what}");
            let (results, requests) = (scene.results().len(), scene.requests().len());
            assert_eq!(results + requests, 1, "{what}");
        }
    }
}

/// I3. Requests of two calls with swapped tokens or responses.
#[test]
fn i3_token_of_another_call_is_rejected() {
    let mut scene = Scene::new(REFUNDS);
    scene.model_calls(&[("a", "refund", refund()), ("b", "refund", json!({ "amount": 900 }))]);
    scene.round();
    let tokens: Vec<_> = scene.requests().into_iter().map(|request| request.approval_token).collect();
    scene.approve_of("approval_a");
    scene.history = with_request(&scene.history, |request| {
        request.approval_token = tokens[usize::from(request.approval_id == "approval_a")].clone();
    });
    let round = scene.resume();
    assert!(round.outcomes.iter().all(|outcome| outcome.outcome.name() == "suspended"));
    assert_eq!(scene.tool.count(), 0);
    // A response with the other call's token.
    let token = scene.requests().into_iter().find(|request| request.approval_id == "approval_b").unwrap();
    scene.answer(ResponsePart {
        approval_token: token.approval_token,
        ..approval_response("approval_a", true)
    });
    scene.resume();
    assert_eq!(scene.tool.count(), 0);
}

/// I3. The whole request of one call under another call of the same id.
#[test]
fn i3_request_moved_to_another_call_is_rejected() {
    let mut scene = Scene::refund(250);
    scene.approve();
    let large = json!({ "amount": 9000, "note": "late" });
    scene.history = with_parts(&scene.history, |content| match content {
        PartContent::Call(call) => Some(vec![Part::call(call.id.clone(), "refund", large.clone())]),
        _ => None,
    });
    let round = scene.resume();
    assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
    assert_eq!((scene.tool.count(), scene.request().input), (0, Some(large)));
}

/// I4. An older request with its response, restored after a newer request.
#[test]
fn i4_older_request_cannot_be_replayed() {
    let mut scene = Scene::refund(250);
    scene.approve();
    let old = scene.history.clone();
    scene.rules = REFUNDS.replace("gt: 100", "gt: 90");
    scene.advance(60);
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
    scene.history = old;
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
    assert_eq!(scene.tool.count(), 0);
}

/// I3. A response before its request, or inside a text part, does not count.
#[test]
fn i3_answer_in_another_position_is_ignored() {
    let answer = approval_response("approval_c1", true);
    let text = answer.to_json().to_string();
    for (role, part, first) in [
        (Role::Tool, answer.into(), true),
        (Role::User, Part::text(text.clone()), false),
        (Role::Assistant, Part::text(text), false),
    ] {
        for dialect in Dialect::ALL {
            let mut scene = Scene::refund(250);
            let mut messages = scene.history.messages().to_vec();
            let at = if first { 0 } else { messages.len() };
            messages.insert(at, Message::new(role.clone(), vec![part.clone()]));
            scene.history = History::new(messages);
            scene.through(dialect);
            assert_eq!(scene.resume().outcomes[0].outcome.name(), "suspended", "{role:?} {dialect:?}");
            assert_eq!(scene.tool.count(), 0, "{role:?} {dialect:?}");
        }
    }
}

/// Key rotation: old requests count until the old key is removed, and new ones are sealed with the new key.
#[test]
fn i3_requests_of_an_older_key_count_until_its_removal() {
    let both = format!("{NEXT_KEY},{KEY}");
    for (keys, outcome) in
        [(both.as_str(), ("executed", "approved")), (NEXT_KEY, ("suspended", "approval_required"))]
    {
        for mut scene in Scene::with_both_stores(REFUNDS) {
            scene.ask(refund());
            scene.approve();
            scene.keys = Some(keys.to_owned());
            if scene.store.is_shared() && keys == NEXT_KEY {
                // A store that was never opened with both keys is still sealed with the older one.
                assert!(scene.refused().contains("created with other keys"));
                continue;
            }
            assert_eq!(kind_and_code(&scene.outcome()), outcome);
            if outcome.0 == "suspended" {
                scene.approve();
                assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
            }
            assert_eq!(scene.tool.count(), 1);
        }
    }
}

/// I3. A request of a process without keys does not count in another process, with or without keys.
#[test]
fn i3_requests_of_a_process_without_keys_end_with_it() {
    for keys in [Some(KEY.to_owned()), None] {
        let mut scene = Scene { keys: None, ..Scene::new(REFUNDS) };
        scene.ask(refund());
        scene.approve();
        (scene.keys, scene.process) = (keys, OnceCell::new());
        let round = scene.resume();
        assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"));
        assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0));
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    }
}

/// I8. A shared store is not used without keys: it serves no requests, and nothing is written to it.
#[test]
fn i8_shared_store_is_not_used_without_keys() {
    let mut scene = Scene { keys: None, ..Scene::new(REFUNDS) }.with_shared_store();
    let mut session = scene.session();
    scene.model_calls(&[("c1", "refund", refund())]);
    let refused = scene.clock.block_on(session.run_round(&mut scene.history, &scene.tool)).unwrap_err();
    assert!(refused.to_string().contains("CALLGATE_KEYS"), "{refused}");
    let mut alone = scene.engine().session();
    let call = ToolCall::new("c2", "refund", refund());
    let outcome = scene.clock.block_on(alone.execute(call, &scene.tool));
    assert_eq!(kind_and_code(&outcome), ("denied", "store_unavailable"));
    let written = scene.clock.block_on(scene.store.records("calls", None, 1)).unwrap();
    assert_eq!((written.records.len(), scene.tool.count()), (0, 0));
}

/// I3. For a request that was removed from the history the one in the store applies; a request that no store has is not invented.
#[test]
fn i3_call_without_its_request_does_not_run() {
    for knows in [true, false] {
        let mut scene = Scene::refund(250);
        let asked = scene.request();
        scene.approve();
        scene.history =
            with_parts(&scene.history, |content| matches!(content, PartContent::Request(_)).then(Vec::new));
        if !knows {
            scene.store = Scene::new("").store;
        }
        let outcome = scene.outcome();
        if knows {
            assert_eq!(kind_and_code(&outcome), ("suspended", "approval_required"));
            assert_eq!(scene.request(), asked);
        } else {
            assert_eq!(kind_and_code(&outcome), ("indeterminate", "unfinished"));
            assert_eq!(scene.results().len(), 1);
        }
        assert_eq!(scene.tool.count(), 0);
    }
}
