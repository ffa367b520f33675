//! Approvals that hooks require: they share the request of the policies, and changed requirements need a new approval.

use std::time::Duration;

use callgate::json::json;
use callgate::lifecycle::{BeforeAction, RequiredApproval, ToolHooks};
use callgate::message::Approver;

use super::hooks::{NONE, before, scene_with_hooks};
use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

fn requires(message: &'static str) -> Vec<ToolHooks> {
    before(move |_| BeforeAction::RequireApproval(RequiredApproval::new(message)))
}

#[test]
fn hook_can_require_an_approval_that_resumes_like_a_policys() {
    for conversation in ["shared", "own"] {
        let mut scene = Scene::new(NONE);
        if conversation == "shared" {
            scene = scene.with_shared_store();
        }
        scene.hooks = requires("A large refund?");
        scene.ask(json!({ "amount": 1 }));
        let request = scene.request();
        assert_eq!(
            (request.message.as_deref(), &request.policies[..]),
            (Some("A large refund?"), &["hook".to_owned()][..])
        );
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
        assert_eq!(scene.tool.count(), 1);
        assert!(scene.resume().outcomes.is_empty());
    }
    let mut scene = scene_with_hooks(NONE, requires("A large refund?"), json!({ "amount": 1 }));
    scene.deny(Some("no"));
    assert_eq!((kind_and_code(&scene.outcome()), scene.tool.count()), (("denied", "approval_denied"), 0));
}

#[test]
fn hook_requirement_joins_the_request_of_the_policies() {
    let required = RequiredApproval {
        approvers: vec!["role:finance".into()],
        expires: Some(Duration::from_secs(60)),
        ..RequiredApproval::new("Flagged by the risk service.")
    };
    let hook = |required: RequiredApproval| before(move |_| BeforeAction::RequireApproval(required.clone()));
    let mut scene = scene_with_hooks(REFUNDS, hook(required.clone()), json!({ "amount": 250 }));
    let request = scene.request();
    assert_eq!(request.message.as_deref(), Some("Refund 250? Flagged by the risk service."));
    assert_eq!(request.policies, ["ask", "hook"]);
    assert_eq!(request.expires_at.as_deref(), Some("2026-01-01T12:01:00Z"));
    // The hook can set the approvers as well.
    scene.approve();
    let round = scene.resume();
    assert_eq!((kind_and_code(&round.outcomes[0]).0, scene.tool.count()), ("suspended", 0));
    let finance = || Approver { roles: vec!["finance".into()], ..Approver::new("bea") };
    scene.answer_as(finance(), scene.approval());
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    let mut scene = scene_with_hooks(REFUNDS, hook(required), json!({ "amount": 250 }));
    scene.answer_as(finance(), scene.approval());
    scene.advance(61);
    assert_eq!((kind_and_code(&scene.outcome()), scene.tool.count()), (("denied", "approval_expired"), 0));
}

/// I6. An approval counts for a hook while its requirement is unchanged.
#[test]
fn i6_changed_hook_requirement_needs_approval_again_and_removed_one_does_not() {
    let changed: [(&str, Vec<ToolHooks>); 4] = [
        ("message", requires("The recipient is on a list. Refund?")),
        (
            "id",
            vec![
                ToolHooks::new("other")
                    .before(|_| BeforeAction::RequireApproval(RequiredApproval::new("Refund?"))),
            ],
        ),
        (
            "approvers",
            before(|_| {
                BeforeAction::RequireApproval(RequiredApproval {
                    approvers: vec!["role:finance".into()],
                    ..RequiredApproval::new("Refund?")
                })
            }),
        ),
        (
            "expiry",
            before(|_| {
                BeforeAction::RequireApproval(RequiredApproval {
                    expires: Some(Duration::from_secs(9)),
                    ..RequiredApproval::new("Refund?")
                })
            }),
        ),
    ];
    for (what, hooks) in changed {
        let mut scene = scene_with_hooks(NONE, requires("Refund?"), json!({ "amount": 1 }));
        let first = scene.request();
        scene.approve();
        scene.hooks = hooks;
        assert_eq!((kind_and_code(&scene.outcome()).0, scene.tool.count()), ("suspended", 0), "{what}");
        assert_ne!(scene.request().approval_token, first.approval_token, "{what}");
    }
    let mut scene = scene_with_hooks(NONE, requires("Refund?"), json!({ "amount": 1 }));
    scene.approve();
    scene.hooks = Vec::new();
    assert_eq!(kind_and_code(&scene.outcome()).0, "executed");
}

#[test]
fn stricter_approval_satisfies_a_hook_requirement_and_weaker_does_not() {
    for (says, kind) in
        [(BeforeAction::Block("no".into()), "denied"), (BeforeAction::Halt("no".into()), "halted")]
    {
        let mut hooks = requires("Refund?");
        hooks.push(ToolHooks::new("strict").before(move |_| says.clone()));
        let mut scene = Scene::new(NONE);
        scene.hooks = hooks;
        let round = scene.ask(json!({}));
        assert_eq!(round.outcomes[0].outcome.name(), kind);
    }
    let mut hooks = requires("Refund?");
    hooks.push(ToolHooks::new("answers").before(|_| BeforeAction::Skip(json!("kept"))));
    let mut scene = scene_with_hooks(NONE, hooks, json!({}));
    scene.approve();
    let outcome = scene.outcome();
    assert_eq!(
        (outcome.outcome.name(), outcome.output, scene.tool.count()),
        ("answered", Some(json!("kept")), 0)
    );
}

/// A remembered approval satisfies policies, never hooks.
#[test]
fn remembered_approval_does_not_satisfy_a_hook() {
    let rules =
        "policies: [ { id: ask, match: refund, approval: { remember: { scope: arguments, for: 8h } } } ]";
    for (says, kind) in [
        (BeforeAction::RequireApproval(RequiredApproval::new("Sure?")), "suspended"),
        (BeforeAction::Skip(json!("kept")), "answered"),
        (BeforeAction::Block("no".into()), "denied"),
        (BeforeAction::Continue, "executed"),
    ] {
        let mut scene = scene_with_hooks(rules, Vec::new(), json!({ "amount": 1 }));
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()).0, "executed");
        scene.hooks = before(move |_| says.clone());
        scene.model_calls(&[("c2", "refund", json!({ "amount": 1 }))]);
        let round = scene.round();
        assert_eq!(round.outcomes[0].outcome.name(), kind);
        assert_eq!(scene.tool.count(), if kind == "executed" { 2 } else { 1 });
    }
}
