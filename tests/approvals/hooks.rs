//! Hooks of the host's around calls that are suspended and resumed: they take part as in live calls, and what was approved is what runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::ToolError;
use callgate::json::{Map, Value, json};
use callgate::lifecycle::{Before, HookCall, OnError, RequiredApproval, ToolHooks};
use callgate::message::{Approver, ResponsePart};
use proptest::prelude::*;

use super::scene::{REFUNDS, Scene};
use crate::workshop::ended;

pub const NONE: &str = "policies: []";
const ASK: &str =
    "policies: [ { id: ask, match: refund, approval: { message: 'Refund?', edits: [$.input.limit] } } ]";

/// A scene in which the model asks for a refund, with these hooks.
pub fn asked(rules: &str, hooks: Vec<ToolHooks>, input: Value) -> Scene {
    let mut scene = Scene::new(rules);
    scene.hooks = hooks;
    scene.ask(input);
    scene
}

pub fn before(says: impl Fn(&HookCall<'_>) -> Before + Send + Sync + 'static) -> Vec<ToolHooks> {
    vec![ToolHooks::new("hook").before(says)]
}

/// A hook that says the first of these until the call was asked about, and the second from then on.
fn turning(first: Before, then: Before) -> Vec<ToolHooks> {
    let count = Arc::new(AtomicUsize::new(0));
    before(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => first.clone(),
        _ => then.clone(),
    })
}

fn with_limit(call: &HookCall<'_>) -> Before {
    let mut input = call.input.clone();
    input["limit"] = 10.into();
    Before::Edit(input)
}

fn plus_one(call: &HookCall<'_>) -> Before {
    Before::Edit(json!({ "amount": call.input["amount"].as_u64().unwrap() + 1 }))
}

#[test]
fn i1_what_a_hook_makes_of_the_arguments_is_asked_about_and_runs() {
    for (hook, shown) in [
        (with_limit as fn(&HookCall<'_>) -> Before, json!({ "amount": 1, "limit": 10 })),
        (plus_one, json!({ "amount": 2 })),
    ] {
        let mut scene = asked(ASK, before(hook), json!({ "amount": 1 }));
        assert_eq!(scene.request().input, Some(shown.clone()));
        assert_eq!(ended(&scene.outcome()), ("suspended", "approval_required"));
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!((ended(&outcome), &outcome.input), (("executed", "approved"), &shown));
        assert_eq!(scene.tool.inputs(), [shown]);
        assert!(scene.resume().outcomes.is_empty());
    }
}

#[test]
fn a_hook_that_is_against_the_call_by_now_stops_it_whatever_was_approved() {
    for (says, kind, code) in [
        (Before::Block("not any more".into()), "denied", "blocked"),
        (Before::Halt("stop".into()), "halted", "halted"),
        (Before::Skip(json!("kept")), "answered", "answered"),
        (Before::Edit(json!("no object")), "denied", "invalid_arguments"),
    ] {
        let mut scene = asked(ASK, turning(Before::Continue, says), json!({ "amount": 1 }));
        scene.approve();
        assert_eq!(ended(&scene.outcome()), (kind, code));
        assert_eq!(scene.tool.count(), 0, "{kind}");
    }
}

#[test]
fn i1_arguments_that_hooks_make_otherwise_by_now_are_asked_about_anew() {
    // Whether a policy asks about the other arguments or not.
    for amount in [500, 5] {
        let hooks =
            turning(Before::Edit(json!({ "amount": 250 })), Before::Edit(json!({ "amount": amount })));
        let mut scene = asked(REFUNDS, hooks, json!({ "amount": 250 }));
        let first = scene.request();
        scene.approve();
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("suspended", "approval_required"), "{amount}");
        let second = scene.request();
        assert_eq!((second.input.clone(), scene.tool.count()), (Some(json!({ "amount": amount })), 0));
        assert_eq!(
            (&second.policies, second.approval_token == first.approval_token),
            (&first.policies, false)
        );
        scene.approve();
        assert_eq!(ended(&scene.outcome()).0, "executed", "{amount}");
        assert_eq!(scene.tool.inputs(), [json!({ "amount": amount })]);
    }
}

#[test]
fn a_request_about_other_arguments_says_so_expires_and_demands_what_the_first_one_did() {
    let rules = REFUNDS.replace("expires: 24h", "expires: 1h, approvers: ['role:finance'], quorum: 2");
    let hooks = turning(Before::Continue, Before::Edit(json!({ "amount": 5 })));
    let mut scene = asked(&rules, hooks, json!({ "amount": 250 }));
    let yes_of = |scene: &mut Scene, name: &str| {
        scene.answer_as(Approver { roles: vec!["finance".into()], ..Approver::new(name) }, scene.yes());
    };
    yes_of(&mut scene, "bea");
    yes_of(&mut scene, "cid");
    scene.advance(60);
    assert_eq!(ended(&scene.outcome()).0, "suspended");
    let request = scene.request();
    assert!(request.message.unwrap().contains("not those that were approved"));
    assert_eq!(request.expires_at.as_deref(), Some("2026-01-01T13:01:00Z"));
    yes_of(&mut scene, "bea");
    assert_eq!((ended(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    yes_of(&mut scene, "cid");
    assert_eq!(ended(&scene.outcome()).0, "executed");
}

#[test]
fn annotations_reach_policies_and_the_tool_when_a_call_resumes() {
    let tag = |team: &str| Before::Annotate(Map::from_iter([("team".to_owned(), json!(team))]));
    let rules = format!(
        "{REFUNDS}  - {{ id: red, match: {{ tool: refund, where: [ {{ path: $.context.metadata.team, eq: red }} ] }}, deny: {{}} }}\n"
    );
    let mut scene = asked(&rules, turning(tag("blue"), tag("blue")), json!({ "amount": 250 }));
    scene.approve();
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.calls()[0].context["metadata"], json!({ "team": "blue" }));
    let mut scene = asked(&rules, turning(tag("blue"), tag("red")), json!({ "amount": 250 }));
    scene.approve();
    assert_eq!((ended(&scene.outcome()), scene.tool.count()), (("denied", "denied"), 0));
}

/// I10. What is hidden only because of an annotation is hidden in every outcome, however the call was answered.
#[test]
fn i10_what_an_annotation_hides_is_hidden_in_every_outcome_of_a_resumed_call() {
    let rules = format!(
        "{ASK_LONG}  - {{ id: hide, match: {{ where: [ {{ path: $.context.metadata.team, eq: red }} ] }}, redact: {{ in: [input, output], detect: [email] }} }}\n"
    );
    let tag = Before::Annotate(Map::from_iter([("team".to_owned(), json!("red"))]));
    type Answer = fn(&mut Scene);
    let answers: [(&str, Answer); 5] = [
        ("denied", |scene| scene.deny(None)),
        ("denied", |scene| scene.advance(48 * 3600)),
        ("aborted", |scene| scene.answer(ResponsePart { cancel: true, approved: false, ..scene.yes() })),
        ("answered", |scene| {
            scene.answer(ResponsePart { output: Some(json!("ask eve@example.com")), ..scene.yes() })
        }),
        ("executed", Scene::approve),
    ];
    for (kind, answer) in answers {
        let hooks = turning(tag.clone(), tag.clone());
        let mut scene = asked(&rules, hooks, json!({ "to": "ana@example.com" }));
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
fn hooks_wrap_a_resumed_call_and_hear_of_its_end() {
    let ends = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&ends);
    let hook = ToolHooks::new("hook")
        .around(|_, mut next| Box::pin(async move { Ok(json!({ "wrapped": next.call().await? })) }))
        .after(move |end| heard.lock().unwrap().push(end.outcome.outcome.name()));
    let mut scene = asked(ASK, vec![hook], json!({ "amount": 1 }));
    scene.approve();
    assert_eq!(scene.outcome().output, Some(json!({ "wrapped": 1 })));
    assert_eq!(*ends.lock().unwrap(), ["executed"]);
}

#[test]
fn i1_other_arguments_that_a_hook_calls_with_are_what_is_asked_about_and_what_runs() {
    let raise = |to: u64| {
        ToolHooks::new("raise").around(move |_, mut next| {
            Box::pin(async move { next.with_input(json!({ "amount": to })).await })
        })
    };
    let mut scene = asked(REFUNDS, vec![raise(250)], json!({ "amount": 5 }));
    assert_eq!(scene.request().input, Some(json!({ "amount": 250 })));
    scene.approve();
    scene.hooks = vec![raise(500)];
    assert_eq!((ended(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "amount": 500 })));
    scene.approve();
    assert_eq!(ended(&scene.outcome()).0, "executed");
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 500 })]);
    // Without the wrapper the call runs with arguments that nobody has seen, although no policy asks about them.
    let mut scene = asked(REFUNDS, vec![raise(250)], json!({ "amount": 5 }));
    scene.approve();
    scene.hooks = before(|_| Before::Edit(json!({ "amount": 6 })));
    assert_eq!((ended(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "amount": 6 })));
}

#[test]
fn what_an_approver_edits_passes_hooks_again() {
    let edited = |scene: &Scene, limit: u64| ResponsePart {
        edited_input: Some(json!({ "amount": 1, "limit": limit })),
        ..scene.yes()
    };
    let default_limit = |call: &HookCall<'_>| match call.input.get("limit") {
        Some(_) => Before::Continue,
        None => with_limit(call),
    };
    let mut scene = asked(ASK, before(default_limit), json!({ "amount": 1 }));
    scene.answer(edited(&scene, 20));
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 1, "limit": 20 })]);
    // A hook that changes it back: the approver is asked about what would run.
    let mut scene = asked(ASK, before(with_limit), json!({ "amount": 1 }));
    scene.answer(edited(&scene, 20));
    assert_eq!((ended(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "amount": 1, "limit": 10 })));
    scene.approve();
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.inputs(), [json!({ "amount": 1, "limit": 10 })]);
}

#[test]
fn an_edit_of_what_hooks_make_otherwise_by_now_counts_for_nothing() {
    let hooks = turning(Before::Edit(json!({ "limit": 1 })), Before::Edit(json!({ "limit": 2 })));
    let mut scene = asked(ASK, hooks, json!({}));
    scene.answer(ResponsePart { edited_input: Some(json!({ "limit": 5 })), ..scene.yes() });
    assert_eq!((ended(&scene.outcome()).0, scene.tool.count()), ("suspended", 0));
    assert_eq!(scene.request().input, Some(json!({ "limit": 2 })));
}

/// A guard sees what runs, also where something around the call puts other arguments in their place.
#[test]
fn guards_see_the_arguments_that_wrappers_call_with() {
    let script = "policies:
  - id: raise
    match: refund
    around: { script: 'next(#{ amount: 500 })' }";
    let raise = ToolHooks::new("raise")
        .around(|_, mut next| Box::pin(async move { next.with_input(json!({ "amount": 500 })).await }));
    let large = |says: fn() -> Before| {
        ToolHooks::new("guard").before(move |call| match call.input["amount"].as_u64() {
            Some(501..) | Some(101..=500) => says(),
            _ => Before::Continue,
        })
    };
    for (rules, hooks) in [(script, vec![]), (NONE, vec![raise])] {
        let round_of = |says: fn() -> Before| {
            let mut scene = Scene::new(rules);
            scene.hooks = hooks.iter().cloned().chain([large(says)]).collect();
            let round = scene.ask(json!({ "amount": 5 }));
            (scene, round.outcomes[0].outcome.name())
        };
        for (says, kind) in [
            ((|| Before::Block("no".into())) as fn() -> Before, ["denied", "failed"]),
            (|| Before::Halt("no".into()), ["halted", "halted"]),
            (|| Before::Skip(json!("kept")), ["answered", "answered"]),
        ] {
            let (scene, came) = round_of(says);
            assert!(kind.contains(&came) && scene.tool.count() == 0, "{came}");
        }
        let (mut scene, came) = round_of(|| Before::RequireApproval(RequiredApproval::new("500?")));
        assert_eq!((came, scene.tool.count()), ("suspended", 0));
        assert_eq!(scene.request().input, Some(json!({ "amount": 500 })));
        scene.approve();
        assert_eq!(ended(&scene.outcome()).0, "executed");
        assert_eq!(scene.tool.inputs(), [json!({ "amount": 500 })]);
    }
}

#[test]
fn hooks_recover_the_errors_of_resumed_calls() {
    let recover = ToolHooks::new("mend").on_error_async(|_, error| {
        let message = error.message.clone();
        async move { OnError::Recover(json!(format!("{message}: try later"))) }
    });
    let mut scene = asked(ASK, vec![recover], json!({}));
    scene.tool =
        crate::workshop::Tool::scripted(&scene.clock, [(Duration::ZERO, Err(ToolError::new("down")))]);
    scene.approve();
    let outcome = scene.outcome();
    assert_eq!((outcome.outcome.name(), outcome.output), ("recovered", Some(json!("down: try later"))));
}

/// What a hook does at one point of a call's life.
#[derive(Clone, Debug)]
enum Does {
    Nothing,
    Edit(u64),
    Tag(&'static str),
    Skip,
    Block,
    Require(&'static str),
    /// It calls what it wraps with this.
    Wrap(u64),
}

fn does() -> impl Strategy<Value = Does> {
    let amount = prop_oneof![Just(5), Just(250), Just(500)];
    let amounts = prop_oneof![Just(5), Just(250), Just(500)];
    prop_oneof![
        2 => Just(Does::Nothing),
        3 => amount.prop_map(Does::Edit),
        1 => prop_oneof![Just("red"), Just("blue")].prop_map(Does::Tag),
        1 => Just(Does::Skip),
        1 => Just(Does::Block),
        2 => prop_oneof![Just("One?"), Just("Two?")].prop_map(Does::Require),
        3 => amounts.prop_map(Does::Wrap),
    ]
}

fn hook(id: &str, does: &Does) -> ToolHooks {
    let hook = ToolHooks::new(id);
    match does.clone() {
        Does::Wrap(amount) => hook.around(move |_, mut next| {
            Box::pin(async move { next.with_input(json!({ "amount": amount })).await })
        }),
        does => hook.before(move |_| match &does {
            Does::Nothing | Does::Wrap(_) => Before::Continue,
            Does::Edit(amount) => Before::Edit(json!({ "amount": amount })),
            Does::Tag(team) => Before::Annotate(Map::from_iter([("team".to_owned(), json!(team))])),
            Does::Skip => Before::Skip(json!("kept")),
            Does::Block => Before::Block("no".into()),
            Does::Require(message) => Before::RequireApproval(RequiredApproval::new(*message)),
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// I1, I2. Whatever hooks do from one process to the next, a call that people were asked about runs once, with arguments that were
    /// shown in a request that was approved.
    #[test]
    fn i1_whatever_hooks_do_from_process_to_process_what_was_approved_is_what_runs(
        turns in proptest::collection::vec((does(), does()), 2..6),
        rules in prop_oneof![Just(NONE), Just(REFUNDS), Just(ASK)],
    ) {
        let mut scene = Scene::new(rules);
        let hooks = |(one, two): &(Does, Does)| vec![hook("one", one), hook("two", two)];
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
        let wraps = turns.iter().any(|(one, two)| [one, two].iter().any(|does| matches!(does, Does::Wrap(_))));
        if let (Some(ran), false) = (ran.first(), approved.is_empty()) {
            // What something around the call puts in its place runs where no policy asks about it.
            let asks = rules == ASK || rules == REFUNDS && ran["amount"].as_u64() > Some(100);
            prop_assert!(wraps && !asks || approved.contains(ran), "{ran} was not among {approved:?}");
        }
        if !ran.is_empty() {
            prop_assert!(scene.resume().outcomes.is_empty());
        }
    }
}
