//! An approval is bound to the identity of the requester and to the context values that policies read.

use callgate::json::{Value, json};
use callgate::message::{Approver, Dialect, approval_response};
use callgate::{OutcomeKind, ToolCall};
use proptest::prelude::*;

use super::scene::{REFUNDS, Scene};
use crate::fixtures::kind_and_code;

fn refund() -> Value {
    json!({ "amount": 250 })
}

fn ann() -> Value {
    json!({ "principal": "ann", "roles": ["agent", "night"], "tenant": "acme", "trace": "t-1", "plan": { "tier": 1 } })
}

/// Requested for `ann`, with and without keys, with both stores.
fn asked(rules: &str) -> Vec<Scene> {
    let with_keys = Scene::new(rules);
    let without = Scene { keys: None, ..Scene::new(rules) };
    let shared = Scene::new(rules).with_shared_store();
    let mut scenes = vec![with_keys, without, shared];
    for scene in &mut scenes {
        scene.context = ann();
        scene.ask(refund());
        assert_eq!(scene.requests().len(), 1, "{rules}");
    }
    scenes
}

fn with(change: impl Fn(&mut Value)) -> Value {
    let mut context = ann();
    change(&mut context);
    context
}

/// Rules with one more policy that reads something.
fn with_policy(policy: &str) -> String {
    format!("{REFUNDS}  - {policy}\n")
}

/// Approved for ann, resumed as another principal.
#[test]
fn i3_approval_is_bound_to_its_requester() {
    let others = [
        ("another principal", with(|context| context["principal"] = "bob".into())),
        ("the approver", with(|context| context["principal"] = "bea".into())),
        ("other roles", with(|context| context["roles"] = json!(["admin"]))),
        ("fewer roles", with(|context| context["roles"] = json!(["agent"]))),
        (
            "no roles",
            with(|context| {
                context.as_object_mut().unwrap().remove("roles");
            }),
        ),
        ("another tenant", with(|context| context["tenant"] = "umbrella".into())),
        ("nobody", json!({ "tenant": "acme" })),
        ("no context", Value::Null),
        ("a number", with(|context| context["principal"] = 42.into())),
    ];
    for (who, context) in others {
        for mut scene in asked(REFUNDS) {
            let token = scene.request().approval_token;
            scene.approve();
            scene.context = context.clone();
            for dialect in Dialect::ALL {
                scene.through(dialect);
            }
            let round = scene.resume();
            assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"), "{who}");
            assert_eq!((round.ignored.len(), scene.tool.count()), (1, 0), "{who}");
            assert_ne!(scene.request().approval_token, token, "{who}");
            // Nor does the request of the other principal then apply to ann.
            scene.approve();
            scene.context = ann();
            assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"), "{who}");
            assert_eq!(scene.tool.count(), 0, "{who}");
            scene.approve();
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{who}");
            assert_eq!(scene.tool.count(), 1, "{who}");
        }
    }
}

#[test]
fn equivalent_identities_are_equal() {
    for context in [
        with(|context| context["principal"] = "Ann\u{a0}".into()),
        with(|context| context["roles"] = json!(["night", "agent", "night"])),
        with(|context| context["trace"] = "t-2".into()),
        with(|context| {
            context.as_object_mut().unwrap().remove("plan");
        }),
        with(|context| context["more"] = json!([1])),
    ] {
        for mut scene in asked(REFUNDS) {
            scene.approve();
            scene.context = context.clone();
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{context}");
        }
    }
}

/// Each way to read `context.plan`: values that are read are bound, and no others.
#[test]
fn i1_context_values_read_by_policies_are_bound() {
    let readers = [
        "{ id: r, match: { tool: refund, where: [ { path: $.context.plan.tier, gt: 5 } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { path: '$.context[\"plan\"]', exists: false } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { path: $.input.amount, gt: { path: $.context.plan.limit } } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { path: '$.input[?@ > $.context.plan.limit]', exists: true } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { path: $.context..tier, gt: 5, each: any } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { path: '$.context.*', exists: false } ] }, halt: {} }",
        "{ id: r, match: { tool: refund, where: [ { expr: 'context.plan.tier > 5' } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { expr: '\"nothing\" in context' } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { expr: 'input.amount > 900' }, { not: { path: $.context.plan, exists: true } } ] }, deny: {} }",
        "{ id: r, match: refund, approval: { message: 'On {{ context.plan.tier }}?' } }",
        "{ id: r, match: refund, approval: { message: 'Go?', card: { title: '{{ context.plan }}' } } }",
        "{ id: r, match: refund, transform: { input: [ { path: $.input.sig, template: 'by {{ context.plan.tier }}' } ] } }",
        "{ id: r, match: refund, rate_limit: { limit: 5, per: 1m, key: $.context.plan.name } }",
        "{ id: r, match: refund, cache: { ttl: 60s, key: { expr: 'context.plan' } } }",
        "{ id: r, match: refund, around: { script: 'let plan = context.plan; next(input)' } }",
        "{ id: r, match: refund, around: { script: 'let all = context; next(input)' } }",
        "{ id: r, match: { tool: refund, where: { path: $.context.plan.tier, gt: 5 } }, redact: { in: [input, output], detect: [email] } }",
    ];
    let changed = with(|context| context["plan"] = json!({ "tier": 2 }));
    for reader in readers {
        for mut scene in asked(&with_policy(reader)) {
            scene.approve();
            scene.context = changed.clone();
            let round = scene.resume();
            let told = format!("{reader}: {:?}", round.outcomes[0].reason);
            assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"), "{told}");
            assert!(round.ignored[0].why.contains("context"), "{:?}", round.ignored);
            assert_eq!(scene.tool.count(), 0, "{told}");
        }
        // The same with the original context.
        for mut scene in asked(&with_policy(reader)) {
            scene.approve();
            assert_eq!(kind_and_code(&scene.outcome()).0, "executed", "{reader}");
        }
    }
    for other in [
        "{ id: r, match: other, deny: { message: '{{ context.plan }}' } }",
        "{ id: r, match: refund, audit: { fields: [$.context.plan] } }",
        "{ id: r, mode: shadow, match: { tool: refund, where: [ { path: $.context.plan.tier, gt: 5 } ] }, deny: {} }",
        "{ id: r, mode: 'off', match: { tool: refund, where: [ { path: $.context.plan.tier, gt: 5 } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { path: $.context.region, eq: eu } ] }, deny: {} }",
        "{ id: r, match: { tool: refund, where: [ { expr: 'context.trace == \"t-2\"' } ] }, deny: {} }",
    ] {
        for mut scene in asked(&with_policy(other)) {
            scene.approve();
            scene.context = changed.clone();
            assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{other}");
        }
    }
}

/// Rules of a lower layer read the context, too.
#[test]
fn i1_context_values_read_by_lower_layers_are_bound() {
    let mut scene = Scene::new(REFUNDS);
    scene.context = ann();
    scene.layers = vec![
        "policies: [ { id: r, match: { tool: refund, where: [ { path: $.context.plan.tier, gt: 5 } ] }, deny: {} } ]".to_owned(),
    ];
    scene.ask(refund());
    scene.approve();
    scene.context["plan"] = json!({ "tier": 2 });
    assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
    assert_eq!(scene.tool.count(), 0);
}

/// A script's own request is repeated for another principal, from the start of the script; for the same principal the script continues.
#[test]
fn i3_request_of_a_script_is_bound_to_its_requester() {
    let script = "{ id: s, match: refund, around: { script: 'let lot = random(); approve(`For ${context.plan.tier}?`); next(input)' } }";
    for (context, runs) in [
        (ann(), true),
        (with(|context| context["trace"] = "t-2".into()), true),
        (with(|context| context["plan"] = json!({ "tier": 2 })), false),
        (with(|context| context["principal"] = "bob".into()), false),
        (json!({ "plan": { "tier": 1 } }), false),
    ] {
        for mut scene in asked(&format!("policies:\n  - {script}\n")) {
            scene.approve();
            scene.context = context.clone();
            let round = scene.resume();
            let told = format!("{context} {:?}", round.outcomes[0].reason);
            assert_eq!(round.outcomes[0].outcome == OutcomeKind::Executed, runs, "{told}");
            assert_eq!(scene.tool.count(), usize::from(runs), "{told}");
            if runs {
                continue;
            }
            assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"), "{told}");
            let tier = context["plan"]["tier"].to_string();
            assert_eq!(scene.request().message, Some(format!("For {tier}?")));
            scene.approve();
            assert_eq!(scene.outcome().outcome, OutcomeKind::Executed, "{told}");
        }
    }
}

/// For another principal the script would not require approval: the call runs neither with ann's approval nor without one.
#[test]
fn i3_script_that_would_not_ask_another_principal_does_not_run() {
    let rules = "policies:
  - { id: keep, priority: 9, match: refund, cache: { ttl: 60s, scope: shared } }
  - { id: s, match: refund, around: { script: 'if context.principal == \"ann\" { approve(\"Go?\"); } next(input)' } }
";
    for mut scene in asked(rules) {
        scene.approve();
        scene.context["principal"] = "bob".into();
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "approval_invalid"));
        assert_eq!(scene.tool.count(), 0);
    }
}

/// In one process: only the store has the request.
#[test]
fn i3_approval_in_the_store_is_bound_to_its_requester() {
    for (context, outcome) in [
        (ann(), "executed"),
        (with(|context| context["principal"] = "bob".into()), "suspended"),
        (with(|context| context["roles"] = json!([])), "suspended"),
    ] {
        let scene = Scene { context: ann(), ..Scene::new(REFUNDS).with_shared_store() };
        let run = |scene: &Scene| {
            let mut session = scene.session().with_call_recording();
            let call = ToolCall::new("c1", "refund", refund()).with_context(scene.context.clone());
            scene.clock.block_on(session.execute(call, &scene.tool))
        };
        let asked = run(&scene);
        assert_eq!(asked.outcome.name(), "suspended");
        let answer = callgate::message::ResponsePart {
            approval_token: asked.approval.unwrap().approval_token,
            ..approval_response("approval_c1", true)
        };
        scene.clock.block_on(scene.ledger().record_answer(&scene.name("c1"), &answer)).unwrap();
        let scene = Scene { context: context.clone(), ..scene };
        assert_eq!(run(&scene).outcome.name(), outcome, "{context}");
        assert_eq!(scene.tool.count(), usize::from(outcome == "executed"), "{context}");
    }
}

/// A remembered approval for ann depends on her identity at that time.
#[test]
fn i3_remembered_approval_is_bound_to_its_requester() {
    let rules = "policies:
  - id: ask
    match: { tool: refund, where: [ { path: $.context.plan.tier, lt: 9 } ] }
    approval: { message: 'Go?', remember: { scope: arguments, for: 8h } }
";
    for (context, runs) in [
        (ann(), true),
        (with(|context| context["trace"] = "t-2".into()), true),
        (with(|context| context["principal"] = "ANN".into()), true),
        (with(|context| context["principal"] = "bob".into()), false),
        (with(|context| context["principal"] = 42.into()), false),
        (with(|context| context["roles"] = json!(["admin"])), false),
        (with(|context| context["plan"] = json!({ "tier": 2 })), false),
    ] {
        for mut scene in asked(rules) {
            scene.approve();
            assert_eq!(scene.outcome().outcome.name(), "executed");
            scene.context = context.clone();
            scene.model_calls(&[("c2", "refund", refund())]);
            let outcome = scene.round().outcomes.remove(0);
            assert_eq!(outcome.outcome == OutcomeKind::Executed, runs, "{context}");
        }
    }
}

/// The sealed requester is the one who asked, even if another principal resumes.
#[test]
fn i3_requester_cannot_approve_by_resuming_as_another_principal() {
    let rules = "policies: [ { id: ask, match: refund, approval: { approvers: [bea, ann] } } ]";
    for mut scene in asked(rules) {
        scene.answer_as(Approver::new("ann"), scene.approval());
        scene.context["principal"] = "zoe".into();
        let round = scene.resume();
        assert_eq!(round.outcomes[0].outcome.name(), "suspended");
        assert_eq!(scene.tool.count(), 0);
    }
}

fn member() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["principal", "roles", "tenant", "plan", "region", "trace"])
}

fn value() -> impl Strategy<Value = Option<Value>> {
    let values = vec![
        json!(null),
        json!(1),
        json!("ann"),
        json!("eu"),
        json!(["agent"]),
        json!([]),
        json!({ "tier": 1 }),
        json!(true),
        json!("acme"),
    ];
    proptest::option::of(proptest::sample::select(values))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A changed value that policies read requires approval again; a changed value that they do not read does not.
    #[test]
    fn i1_changed_value_requires_approval_only_if_read(
        read in proptest::collection::btree_set(member(), 0..3),
        changes in proptest::collection::btree_map(member(), value(), 1..4),
        by_expression in any::<bool>(),
        dialect in proptest::sample::select(Dialect::ALL.to_vec()),
        shared in any::<bool>(),
    ) {
        let readers: String = read.iter().map(|name| match by_expression {
            true => format!("  - {{ id: {name}, match: {{ tool: refund, where: [ {{ expr: '(context.{name} ?? 1) == \"never\"' }} ] }}, allow: {{}} }}\n"),
            false => format!("  - {{ id: {name}, match: {{ tool: refund, where: [ {{ path: $.context.{name}, eq: never }} ] }}, allow: {{}} }}\n"),
        }).collect();
        let mut scene = Scene { context: ann(), ..Scene::new(&format!("{REFUNDS}{readers}")) };
        if shared {
            scene = scene.with_shared_store();
        }
        scene.ask(refund());
        scene.approve();
        for (name, value) in &changes {
            let context = scene.context.as_object_mut().unwrap();
            match value {
                Some(value) => context.insert((*name).to_owned(), value.clone()),
                None => context.remove(name),
            };
        }
        let differs = |name: &str| {
            let (before, after) = (ann().get(name).cloned(), scene.context.get(name).cloned());
            // Absent and null both mean no principal and no tenant, unless a policy distinguishes them.
            match read.contains(name) {
                true => before != after,
                false => before.unwrap_or_default() != after.unwrap_or_default(),
            }
        };
        let bound = ["principal", "roles", "tenant"].into_iter().chain(read.iter().copied());
        let asks = bound.into_iter().any(differs);
        scene.through(dialect);
        let outcome = scene.outcome();
        let expected = if asks { ("suspended", "approval_required") } else { ("executed", "approved") };
        prop_assert_eq!(kind_and_code(&outcome), expected, "{:?} read, {:?}", read, changes);
        prop_assert_eq!(scene.tool.count(), usize::from(!asks));
    }
}
