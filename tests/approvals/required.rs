//! Approvals that hooks require: one request with the policies' own, and asked again where the hook requires another one.

use std::time::Duration;

use callgate::json::json;
use callgate::lifecycle::{Before, RequiredApproval, ToolHooks};
use callgate::message::Approver;

use super::hooks::{NONE, asked, before};
use super::scene::{REFUNDS, Scene};
use crate::workshop::ended;

fn requires(message: &'static str) -> Vec<ToolHooks> {
    before(move |_| Before::RequireApproval(RequiredApproval::new(message)))
}

#[test]
fn a_hook_can_require_an_approval_which_resumes_like_a_policys() {
    for conversation in ["shared", "own"] {
        let mut scene = Scene::new(NONE);
        if conversation == "shared" {
            scene = scene.sharing();
        }
        scene.hooks = requires("A large refund?");
        scene.ask(json!({ "amount": 1 }));
        let request = scene.request();
        assert_eq!(
            (request.message.as_deref(), &request.policies[..]),
            (Some("A large refund?"), &["hook".to_owned()][..])
        );
        scene.approve();
        assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
        assert_eq!(scene.tool.count(), 1);
        assert!(scene.resume().outcomes.is_empty());
    }
    let mut scene = asked(NONE, requires("A large refund?"), json!({ "amount": 1 }));
    scene.deny(Some("no"));
    assert_eq!((ended(&scene.outcome()), scene.tool.count()), (("denied", "approval_denied"), 0));
}

#[test]
fn a_hooks_requirement_joins_the_one_request_of_the_policies() {
    let required = RequiredApproval {
        approvers: vec!["role:finance".into()],
        expires: Some(Duration::from_secs(60)),
        ..RequiredApproval::new("Flagged by the risk service.")
    };
    let hook = |required: RequiredApproval| before(move |_| Before::RequireApproval(required.clone()));
    let mut scene = asked(REFUNDS, hook(required.clone()), json!({ "amount": 250 }));
    let request = scene.request();
    assert_eq!(request.message.as_deref(), Some("Refund 250? Flagged by the risk service."));
    assert_eq!(request.policies, ["ask", "hook"]);
    assert_eq!(request.expires_at.as_deref(), Some("2026-01-01T12:01:00Z"));
    // Who may answer is the hook's word as well.
    scene.approve();
    let round = scene.resume();
    assert_eq!((ended(&round.outcomes[0]).0, scene.tool.count()), ("suspended", 0));
    let finance = || Approver { roles: vec!["finance".into()], ..Approver::new("bea") };
    scene.answer_as(finance(), scene.yes());
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    let mut scene = asked(REFUNDS, hook(required), json!({ "amount": 250 }));
    scene.answer_as(finance(), scene.yes());
    scene.advance(61);
    assert_eq!((ended(&scene.outcome()), scene.tool.count()), (("denied", "approval_expired"), 0));
}

/// I6. An approval counts for a hook while it states the same.
#[test]
fn i6_a_requirement_that_changed_is_asked_about_anew_and_one_that_is_gone_is_not() {
    let changed: [(&str, Vec<ToolHooks>); 4] = [
        ("message", requires("The recipient is on a list. Refund?")),
        (
            "id",
            vec![
                ToolHooks::new("other").before(|_| Before::RequireApproval(RequiredApproval::new("Refund?"))),
            ],
        ),
        (
            "approvers",
            before(|_| {
                Before::RequireApproval(RequiredApproval {
                    approvers: vec!["role:finance".into()],
                    ..RequiredApproval::new("Refund?")
                })
            }),
        ),
        (
            "expiry",
            before(|_| {
                Before::RequireApproval(RequiredApproval {
                    expires: Some(Duration::from_secs(9)),
                    ..RequiredApproval::new("Refund?")
                })
            }),
        ),
    ];
    for (what, hooks) in changed {
        let mut scene = asked(NONE, requires("Refund?"), json!({ "amount": 1 }));
        let first = scene.request();
        scene.approve();
        scene.hooks = hooks;
        assert_eq!((ended(&scene.outcome()).0, scene.tool.count()), ("suspended", 0), "{what}");
        assert_ne!(scene.request().approval_token, first.approval_token, "{what}");
    }
    let mut scene = asked(NONE, requires("Refund?"), json!({ "amount": 1 }));
    scene.approve();
    scene.hooks = Vec::new();
    assert_eq!(ended(&scene.outcome()).0, "executed");
}

#[test]
fn what_is_stricter_than_a_requirement_counts_and_what_is_not_comes_after_it() {
    for (says, kind) in [(Before::Block("no".into()), "denied"), (Before::Halt("no".into()), "halted")] {
        let mut hooks = requires("Refund?");
        hooks.push(ToolHooks::new("strict").before(move |_| says.clone()));
        let mut scene = Scene::new(NONE);
        scene.hooks = hooks;
        let round = scene.ask(json!({}));
        assert_eq!(round.outcomes[0].outcome.name(), kind);
    }
    let mut hooks = requires("Refund?");
    hooks.push(ToolHooks::new("answers").before(|_| Before::Skip(json!("kept"))));
    let mut scene = asked(NONE, hooks, json!({}));
    scene.approve();
    let outcome = scene.outcome();
    assert_eq!(
        (outcome.outcome.name(), outcome.output, scene.tool.count()),
        ("answered", Some(json!("kept")), 0)
    );
}

/// What policies remember lifts policies, and nothing that hooks say.
#[test]
fn an_approval_that_is_remembered_lifts_no_hook() {
    let rules =
        "policies: [ { id: ask, match: refund, approval: { remember: { scope: arguments, for: 8h } } } ]";
    for (says, kind) in [
        (Before::RequireApproval(RequiredApproval::new("Sure?")), "suspended"),
        (Before::Skip(json!("kept")), "answered"),
        (Before::Block("no".into()), "denied"),
        (Before::Continue, "executed"),
    ] {
        let mut scene = asked(rules, Vec::new(), json!({ "amount": 1 }));
        scene.approve();
        assert_eq!(ended(&scene.outcome()).0, "executed");
        scene.hooks = before(move |_| says.clone());
        scene.model_calls(&[("c2", "refund", json!({ "amount": 1 }))]);
        let round = scene.round();
        assert_eq!(round.outcomes[0].outcome.name(), kind);
        assert_eq!(scene.tool.count(), if kind == "executed" { 2 } else { 1 });
    }
}
