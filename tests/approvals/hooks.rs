//! Host hooks around suspended and resumed calls: they take part as in live calls, and exactly the approved call runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::ToolError;
use callgate::json::{Map, Value, json};
use callgate::lifecycle::{BeforeAction, ErrorAction, HookCall, RequiredApproval, ToolHooks};
use callgate::message::{Approver, ResponsePart};
use proptest::prelude::*;

use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

pub const NONE: &str = "policies: []";
const ASK: &str =
    "policies: [ { id: ask, match: refund, approval: { message: 'Refund?', edits: [$.input.limit] } } ]";

/// A scene with these hooks in which the model asks for a refund.
pub fn scene_with_hooks(rules: &str, hooks: Vec<ToolHooks>, input: Value) -> Scene {
    let mut scene = Scene::new(rules);
    scene.hooks = hooks;
    scene.ask(input);
    scene
}

pub fn before(says: impl Fn(&HookCall<'_>) -> BeforeAction + Send + Sync + 'static) -> Vec<ToolHooks> {
    vec![ToolHooks::new("hook").before(says)]
}

/// A hook that returns the first value until the call is suspended, and the second from then on.
fn changing_hooks(first: BeforeAction, then: BeforeAction) -> Vec<ToolHooks> {
    let count = Arc::new(AtomicUsize::new(0));
    before(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => first.clone(),
        _ => then.clone(),
    })
}

fn with_limit(call: &HookCall<'_>) -> BeforeAction {
    let mut input = call.input.clone();
    input["limit"] = 10.into();
    BeforeAction::Edit(input)
}

fn plus_one(call: &HookCall<'_>) -> BeforeAction {
    BeforeAction::Edit(json!({ "amount": call.input["amount"].as_u64().unwrap() + 1 }))
}

#[test]
fn i1_hook_edits_are_shown_in_the_request_and_run() {
    for (hook, shown) in [
        (with_limit as fn(&HookCall<'_>) -> BeforeAction, json!({ "amount": 1, "limit": 10 })),
        (plus_one, json!({ "amount": 2 })),
    ] {
        let mut scene = scene_with_hooks(ASK, before(hook), json!({ "amount": 1 }));
        assert_eq!(scene.request().input, Some(shown.clone()));
        assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!((kind_and_code(&outcome), &outcome.input), (("executed", "approved"), &shown));
        assert_eq!(scene.tool.inputs(), [shown]);
        assert!(scene.resume().outcomes.is_empty());
    }
}

#[test]
fn hook_that_now_blocks_the_call_overrides_its_approval() {
    for (says, kind, code) in [
        (BeforeAction::Block("not any more".into()), "denied", "blocked"),
        (BeforeAction::Halt("stop".into()), "halted", "halted"),
        (BeforeAction::Skip(json!("kept")), "answered", "answered"),
        (BeforeAction::Edit(json!("no object")), "denied", "invalid_arguments"),
    ] {
        let mut scene =
            scene_with_hooks(ASK, changing_hooks(BeforeAction::Continue, says), json!({ "amount": 1 }));
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), (kind, code));
        assert_eq!(scene.tool.count(), 0, "{kind}");
    }
}

#[test]
fn i1_different_hook_edits_on_resume_require_approval_again() {
    // With or without a policy that requires approval of the other arguments.
    for amount in [500, 5] {
        let hooks = changing_hooks(
            BeforeAction::Edit(json!({ "amount": 250 })),
            BeforeAction::Edit(json!({ "amount": amount })),
        );
        let mut scene = scene_with_hooks(REFUNDS, hooks, json!({ "amount": 250 }));
        let first = scene.request();
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("suspended", "approval_required"), "{amount}");
        let second = scene.request();
        assert_eq!((second.input.clone(), scene.tool.count()), (Some(json!({ "amount": amount })), 0));
        assert_eq!(
            (&second.policies, second.approval_token == first.approval_token),
            (&first.policies, false)
        );
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()).0, "executed", "{amount}");
        assert_eq!(scene.tool.inputs(), [json!({ "amount": amount })]);
    }
}

#[test]
fn request_about_changed_arguments_keeps_expiry_and_requirements_of_the_first() {
    let rules = REFUNDS.replace("expires: 24h", "expires: 1h, approvers: ['role:finance'], quorum: 2");
    let hooks = changing_hooks(BeforeAction::Continue, BeforeAction::Edit(json!({ "amount": 5 })));
    let mut scene = scene_with_hooks(&rules, hooks, json!({ "amount": 250 }));
    let yes_of = |scene: &mut Scene, name: &str| {
        scene.answer_as(Approver { roles: vec!["finance".into()], ..Approver::new(name) }, scene.approval());
    };
    yes_of(&mut scene, "bea");
    yes_of(&mut scene, "cid");
    scene.advance(60);
    assert_eq!(kind_and_code(&scene.outcome()).0, "suspended");
    let request = scene.request();
    assert!(request.message.unwrap().contains("not those that were approved"));
    assert_eq!(request.expires_at.as_deref(), Some("2026-01-01T13:01:00Z"));
    yes_of(&mut scene, "bea");
    assert_eq!((kind_and_code(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    yes_of(&mut scene, "cid");
    assert_eq!(kind_and_code(&scene.outcome()).0, "executed");
}

#[test]
fn annotations_reach_policies_and_tool_on_resume() {
    let tag = |team: &str| BeforeAction::Annotate(Map::from_iter([("team".to_owned(), json!(team))]));
    let rules = format!(
        "{REFUNDS}  - {{ id: red, match: {{ tool: refund, where: [ {{ path: $.context.metadata.team, eq: red }} ] }}, deny: {{}} }}\n"
    );
    let mut scene =
        scene_with_hooks(&rules, changing_hooks(tag("blue"), tag("blue")), json!({ "amount": 250 }));
    scene.approve();
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.calls()[0].context["metadata"], json!({ "team": "blue" }));
    let mut scene =
        scene_with_hooks(&rules, changing_hooks(tag("blue"), tag("red")), json!({ "amount": 250 }));
    scene.approve();
    assert_eq!((kind_and_code(&scene.outcome()), scene.tool.count()), (("denied", "denied"), 0));
}

/// I10. Redaction that depends on an annotation applies to every outcome, whatever the response.
#[test]
fn i10_redaction_by_annotation_applies_to_outcomes_of_resumed_calls() {
    let rules = format!(
        "{ASK_LONG}  - {{ id: hide, match: {{ where: [ {{ path: $.context.metadata.team, eq: red }} ] }}, redact: {{ in: [input, output], detect: [email] }} }}\n"
    );
    let tag = BeforeAction::Annotate(Map::from_iter([("team".to_owned(), json!("red"))]));
    type Answer = fn(&mut Scene);
    let answers: [(&str, Answer); 5] = [
        ("denied", |scene| scene.deny(None)),
        ("denied", |scene| scene.advance(48 * 3600)),
        ("aborted", |scene| scene.answer(ResponsePart { cancel: true, approved: false, ..scene.approval() })),
        ("answered", |scene| {
            scene.answer(ResponsePart { output: Some(json!("ask eve@example.com")), ..scene.approval() })
        }),
        ("executed", Scene::approve),
    ];
    for (kind, answer) in answers {
        let hooks = changing_hooks(tag.clone(), tag.clone());
        let mut scene = scene_with_hooks(&rules, hooks, json!({ "to": "ana@example.com" }));
        assert!(!format!("{:?}", scene.request().input).contains("ana@"));
        answer(&mut scene);
        let outcome = scene.outcome();
        assert_eq!(outcome.outcome.name(), kind);
        let told = callgate::json::to_string(&outcome).unwrap();
        assert!(!told.contains("ana@") && !told.contains("eve@"), "{kind}: {told}");
    }
}

const ASK_LONG: &str = "policies:
  - { id: ask, match: refund, approval: { message: 'Refund?', expires: 24h } }
";

#[test]
fn hooks_wrap_a_resumed_call_and_observe_its_end() {
    let ends = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&ends);
    let hook = ToolHooks::new("hook")
        .around(|_, mut next| Box::pin(async move { Ok(json!({ "wrapped": next.call().await? })) }))
        .after(move |end| heard.lock().unwrap().push(end.outcome.outcome.name()));
    let mut scene = scene_with_hooks(ASK, vec![hook], json!({ "amount": 1 }));
    scene.approve();
    assert_eq!(scene.outcome().output, Some(json!({ "wrapped": 1 })));
    assert_eq!(*ends.lock().unwrap(), ["executed"]);
}

#[test]
fn i1_arguments_passed_by_a_wrapper_are_approved_and_run() {
    let raise = |to: u64| {
        ToolHooks::new("raise").around(move |_, mut next| {
            Box::pin(async move { next.call_with_input(json!({ "amount": to })).await })
        })
    };
    let mut scene = scene_with_hooks(REFUNDS, vec![raise(250)], json!({ "amount": 5 }));
    assert_eq!(scene.request().input, Some(json!({ "amount": 250 })));
    scene.approve();
    scene.hooks = vec![raise(500)];
    assert_eq!((kind_and_code(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "amount": 500 })));
    scene.approve();
    assert_eq!(kind_and_code(&scene.outcome()).0, "executed");
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 500 })]);
    // Without the wrapper the call would run with arguments that no approver saw, although no policy requires approval of them.
    let mut scene = scene_with_hooks(REFUNDS, vec![raise(250)], json!({ "amount": 5 }));
    scene.approve();
    scene.hooks = before(|_| BeforeAction::Edit(json!({ "amount": 6 })));
    assert_eq!((kind_and_code(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "amount": 6 })));
}

#[test]
fn edits_by_an_approver_pass_the_hooks_again() {
    let edited = |scene: &Scene, limit: u64| ResponsePart {
        edited_input: Some(json!({ "amount": 1, "limit": limit })),
        ..scene.approval()
    };
    let default_limit = |call: &HookCall<'_>| match call.input.get("limit") {
        Some(_) => BeforeAction::Continue,
        None => with_limit(call),
    };
    let mut scene = scene_with_hooks(ASK, before(default_limit), json!({ "amount": 1 }));
    scene.answer(edited(&scene, 20));
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 1, "limit": 20 })]);
    // A hook reverts the edit: the arguments that would run require approval.
    let mut scene = scene_with_hooks(ASK, before(with_limit), json!({ "amount": 1 }));
    scene.answer(edited(&scene, 20));
    assert_eq!((kind_and_code(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "amount": 1, "limit": 10 })));
    scene.approve();
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 1, "limit": 10 })]);
}

#[test]
fn edit_is_ignored_when_hooks_now_produce_other_arguments() {
    let hooks =
        changing_hooks(BeforeAction::Edit(json!({ "limit": 1 })), BeforeAction::Edit(json!({ "limit": 2 })));
    let mut scene = scene_with_hooks(ASK, hooks, json!({}));
    scene.answer(ResponsePart { edited_input: Some(json!({ "limit": 5 })), ..scene.approval() });
    assert_eq!((kind_and_code(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "limit": 2 })));
}

/// A guard sees the arguments that run, even if a wrapper replaces them.
#[test]
fn guards_see_the_arguments_that_wrappers_call_with() {
    let script = "policies:
  - id: raise
    match: refund
    around: { script: 'next(#{ amount: 500 })' }";
    let raise = ToolHooks::new("raise")
        .around(|_, mut next| Box::pin(async move { next.call_with_input(json!({ "amount": 500 })).await }));
    let large = |says: fn() -> BeforeAction| {
        ToolHooks::new("guard").before(move |call| match call.input["amount"].as_u64() {
            Some(501..) | Some(101..=500) => says(),
            _ => BeforeAction::Continue,
        })
    };
    for (rules, hooks) in [(script, vec![]), (NONE, vec![raise])] {
        let round_of = |says: fn() -> BeforeAction| {
            let mut scene = Scene::new(rules);
            scene.hooks = hooks.iter().cloned().chain([large(says)]).collect();
            let round = scene.ask(json!({ "amount": 5 }));
            (scene, round.outcomes[0].outcome.name())
        };
        for (says, kind) in [
            ((|| BeforeAction::Block("no".into())) as fn() -> BeforeAction, ["denied", "failed"]),
            (|| BeforeAction::Halt("no".into()), ["halted", "halted"]),
            (|| BeforeAction::Skip(json!("kept")), ["answered", "answered"]),
        ] {
            let (scene, came) = round_of(says);
            assert!(kind.contains(&came) && scene.tool.count() == 0, "{came}");
        }
        let (mut scene, came) = round_of(|| BeforeAction::RequireApproval(RequiredApproval::new("500?")));
        assert_eq!((came, scene.tool.count()), ("suspended", 0));
        assert_eq!(scene.request().input, Some(json!({ "amount": 500 })));
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()).0, "executed");
        assert_eq!(scene.tool.inputs(), [json!({ "amount": 500 })]);
    }
}

#[test]
fn hooks_recover_errors_of_resumed_calls() {
    let recover = ToolHooks::new("mend").on_error_async(|_, error| {
        let message = error.message.clone();
        async move { ErrorAction::Recover(json!(format!("{message}: try later"))) }
    });
    let mut scene = scene_with_hooks(ASK, vec![recover], json!({}));
    scene.tool =
        crate::fixtures::Tool::scripted(&scene.clock, [(Duration::ZERO, Err(ToolError::new("down")))]);
    scene.approve();
    let outcome = scene.outcome();
    assert_eq!((outcome.outcome.name(), outcome.output), ("recovered", Some(json!("down: try later"))));
}

/// The behaviour of a hook at one point of a call.
#[derive(Clone, Debug)]
enum HookEffect {
    Nothing,
    Edit(u64),
    Tag(&'static str),
    Skip,
    Block,
    Require(&'static str),
    /// Calls `next` with this.
    Wrap(u64),
}

fn hook_effect() -> impl Strategy<Value = HookEffect> {
    let amount = prop_oneof![Just(5), Just(250), Just(500)];
    let amounts = prop_oneof![Just(5), Just(250), Just(500)];
    prop_oneof![
        2 => Just(HookEffect::Nothing),
        3 => amount.prop_map(HookEffect::Edit),
        1 => prop_oneof![Just("red"), Just("blue")].prop_map(HookEffect::Tag),
        1 => Just(HookEffect::Skip),
        1 => Just(HookEffect::Block),
        2 => prop_oneof![Just("One?"), Just("Two?")].prop_map(HookEffect::Require),
        3 => amounts.prop_map(HookEffect::Wrap),
    ]
}

fn hook(id: &str, does: &HookEffect) -> ToolHooks {
    let hook = ToolHooks::new(id);
    match does.clone() {
        HookEffect::Wrap(amount) => hook.around(move |_, mut next| {
            Box::pin(async move { next.call_with_input(json!({ "amount": amount })).await })
        }),
        does => hook.before(move |_| match &does {
            HookEffect::Nothing | HookEffect::Wrap(_) => BeforeAction::Continue,
            HookEffect::Edit(amount) => BeforeAction::Edit(json!({ "amount": amount })),
            HookEffect::Tag(team) => {
                BeforeAction::Annotate(Map::from_iter([("team".to_owned(), json!(team))]))
            }
            HookEffect::Skip => BeforeAction::Skip(json!("kept")),
            HookEffect::Block => BeforeAction::Block("no".into()),
            HookEffect::Require(message) => BeforeAction::RequireApproval(RequiredApproval::new(*message)),
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// I1, I2. Whatever hooks do from process to process, a call that requires approval runs once, with arguments from an approved
    /// request.
    #[test]
    fn i1_only_approved_arguments_run_whatever_hooks_do(
        turns in proptest::collection::vec((hook_effect(), hook_effect()), 2..6),
        rules in prop_oneof![Just(NONE), Just(REFUNDS), Just(ASK)],
    ) {
        let mut scene = Scene::new(rules);
        let hooks = |(one, two): &(HookEffect, HookEffect)| vec![hook("one", one), hook("two", two)];
        scene.hooks = hooks(&turns[0]);
        scene.ask(json!({ "amount": 250 }));
        let mut approved = Vec::new();
        for turn in &turns[1..] {
            let Some(request) = scene.requests().pop() else { break };
            prop_assert_eq!(scene.tool.count(), 0);
            approved.extend(request.input);
            scene.approve();
            scene.hooks = hooks(turn);
            let outcome = scene.resume().outcomes.remove(0);
            if outcome.outcome.name() != "suspended" {
                break;
            }
        }
        let ran = scene.tool.inputs();
        prop_assert!(ran.len() <= 1, "{ran:?}");
        let wraps = turns.iter().any(|(one, two)| [one, two].iter().any(|does| matches!(does, HookEffect::Wrap(_))));
        if let (Some(ran), false) = (ran.first(), approved.is_empty()) {
            // Arguments from a wrapper run if no policy requires approval of them.
            let asks = rules == ASK || rules == REFUNDS && ran["amount"].as_u64() > Some(100);
            prop_assert!(wraps && !asks || approved.contains(ran), "{ran} was not among {approved:?}");
        }
        if !ran.is_empty() {
            prop_assert!(scene.resume().outcomes.is_empty());
        }
    }
}
