//! Changes between request and response: identity, arguments, policies, tool.

use callgate::ToolDescriptor;
use callgate::json::{Value, json};
use callgate::message::PartContent;

use super::scene::{REFUNDS, Scene, with_parts, with_request};
use crate::fixtures::kind_and_code;

fn refund() -> Value {
    json!({ "amount": 250, "note": "late" })
}

/// Rules with one more policy.
fn with_policy(policy: &str) -> String {
    format!("{REFUNDS}  - {policy}\n")
}

/// I3. A request of another conversation or tenant is ignored, whatever the response: approval is requested again.
#[test]
fn i3_request_of_another_conversation_or_tenant_is_ignored() {
    type Move = fn(&mut Scene);
    let moves: [(&str, Move); 4] = [
        ("conversation", |scene| scene.conversation = "other".to_owned()),
        ("tenant", |scene| scene.context["tenant"] = "umbrella".into()),
        ("no tenant", |scene| scene.context = json!({ "principal": "ana" })),
        ("null for a string", |scene| scene.context["tenant"] = Value::Null),
    ];
    for (what, moved) in moves {
        for shared in [false, true] {
            for mut scene in Scene::each(REFUNDS, &refund()) {
                if shared {
                    scene = scene.with_shared_store();
                }
                let answered = scene.request().approval_token;
                scene.approve();
                moved(&mut scene);
                let round = scene.resume();
                assert_eq!(kind_and_code(&round.outcomes[0]), ("suspended", "approval_required"), "{what}");
                assert_eq!(round.ignored.len(), 1, "{what}");
                assert_ne!(scene.request().approval_token, answered, "{what}");
                assert_eq!(scene.tool.count(), 0, "{what}");
                scene.approve();
                assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"), "{what}");
            }
        }
    }
}

/// I1. Arguments that changed in the history require approval again; other spellings of equal JSON do not.
#[test]
fn i1_call_with_changed_arguments_requires_approval_again() {
    for (input, same) in [
        (json!({ "amount": 251, "note": "late" }), false),
        (json!({ "amount": "250", "note": "late" }), false),
        (json!({ "amount": 250 }), false),
        (json!({ "amount": 250, "note": "late", "more": null }), false),
        (json!({ "note": "late", "amount": 250.0 }), true),
    ] {
        for mut scene in Scene::each(REFUNDS, &refund()) {
            scene.approve();
            scene.history = with_parts(&scene.history, |content| match content {
                PartContent::Call(call) => Some(vec![callgate::message::Part::call(
                    call.id.clone(),
                    call.name.clone(),
                    input.clone(),
                )]),
                _ => None,
            });
            let outcome = scene.outcome();
            assert_eq!(outcome.outcome.name() == "executed", same, "{input}");
            assert_eq!(scene.tool.count(), usize::from(same), "{input}");
            if !same {
                assert_eq!(scene.requests().len(), 1, "{input}");
            }
        }
    }
}

/// I3. A call of another tool in the position of an approved call does not run.
#[test]
fn i3_approved_call_does_not_run_with_another_tool() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        scene.history = with_parts(&scene.history, |content| match content {
            PartContent::Call(call) => {
                Some(vec![callgate::message::Part::call(call.id.clone(), "wipe", call.input.clone())])
            }
            _ => None,
        });
        scene.resume();
        assert_eq!(scene.tool.count(), 0);
        // Nor does it run if the request was changed as well.
        let mut forged = Scene { keys: scene.keys.clone(), ..Scene::asked(REFUNDS, refund()) };
        forged.approve();
        forged.history = with_request(&forged.history, |request| request.tool_name = Some("wipe".into()));
        forged.resume();
        assert_eq!(forged.tool.count(), 0);
    }
}

/// I6. An approval depends on what a policy does, not on its description or position.
#[test]
fn i6_approval_counts_while_the_policy_does_the_same() {
    let described = REFUNDS.replace("- id: ask", "- id: ask\n    description: Large refunds");
    let moved = format!(
        "policies:\n  - {{ id: first, match: other, deny: {{}} }}\n{}",
        REFUNDS.trim_start_matches("policies:\n")
    );
    for (what, rules, runs) in [
        ("the same", REFUNDS.to_owned(), true),
        ("described", described, true),
        ("moved", moved, true),
        ("another bound", REFUNDS.replace("gt: 100", "gt: 101"), false),
        ("another question", REFUNDS.replace("Refund {{", "Pay {{"), false),
        ("approvers", REFUNDS.replace("expires: 24h", "expires: 24h, approvers: [bea]"), false),
        ("another name", REFUNDS.replace("id: ask", "id: asks"), false),
    ] {
        for mut scene in Scene::each(REFUNDS, &refund()) {
            scene.approve();
            scene.rules = rules.clone();
            let outcome = scene.outcome();
            let expected = if runs { ("executed", "approved") } else { ("suspended", "approval_required") };
            assert_eq!(kind_and_code(&outcome), expected, "{what}");
            assert_eq!(scene.tool.count(), usize::from(runs), "{what}");
            assert_eq!(scene.requests().len(), usize::from(!runs), "{what}");
        }
    }
}

/// I6. A response to the new request counts.
#[test]
fn i6_renewed_request_can_be_approved() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        scene.rules = REFUNDS.replace("gt: 100", "gt: 101");
        assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
        assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
        assert_eq!((scene.tool.count(), scene.results().len()), (1, 1));
    }
}

#[test]
fn i6_added_policy_requires_its_own_approval() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        scene.rules = with_policy("{ id: more, match: refund, approval: { message: 'Really?' } }");
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("suspended", "approval_required"));
        // The earlier approval is kept: only the new policy requires approval.
        assert_eq!(outcome.approval.unwrap().policies, ["more"]);
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    }
}

#[test]
fn i6_approval_still_counts_after_its_policy_is_removed() {
    for (approves, outcome) in [(true, ("executed", "approved")), (false, ("denied", "approval_denied"))] {
        for mut scene in Scene::each(REFUNDS, &refund()) {
            scene.rules = "policies: [ { id: other, match: other, deny: {} } ]".to_owned();
            // A request stays pending even if no policy requires approval any more.
            assert_eq!(kind_and_code(&scene.outcome()), ("suspended", "approval_required"));
            if approves {
                scene.approve()
            } else {
                scene.deny(None)
            }
            let ended_as = scene.outcome();
            assert_eq!(ended_as.outcome.name(), outcome.0);
            assert_eq!(scene.tool.count(), usize::from(approves));
        }
    }
}

/// I6. An approval satisfies only its own request: any other restriction applies when the call runs.
#[test]
fn i6_approved_call_is_evaluated_against_current_rules() {
    for (policy, outcome) in [
        ("{ id: no, match: refund, deny: { code: closed } }", ("denied", "closed")),
        ("{ id: stop, match: refund, halt: {} }", ("halted", "halted")),
        (
            "{ id: form, match: refund, validate: { schema: { required: [to] } } }",
            ("invalid", "schema_violation"),
        ),
        ("{ id: say, match: refund, respond: { output: closed } }", ("answered", "answered")),
    ] {
        for mut scene in Scene::each(REFUNDS, &refund()) {
            scene.approve();
            scene.rules = with_policy(policy);
            let ended_as = scene.outcome();
            assert_eq!(kind_and_code(&ended_as), outcome, "{policy}");
            assert_eq!((scene.tool.count(), scene.results().len()), (0, 1), "{policy}");
            scene.rules = REFUNDS.to_owned();
            assert!(scene.resume().outcomes.is_empty(), "{policy}");
        }
    }
}

#[test]
fn i6_approved_call_consumes_limits() {
    let limited = with_policy("{ id: few, match: refund, rate_limit: { limit: 1, per: 1h } }");
    for mut scene in Scene::each(&limited, &refund()) {
        scene.model_calls(&[("c2", "refund", json!({ "amount": 3 }))]);
        assert_eq!(scene.round().outcomes[0].outcome.name(), "executed");
        scene.approve();
        assert_eq!(kind_and_code(&scene.outcome()), ("denied", "rate_limited"));
        assert_eq!(scene.tool.count(), 1);
    }
}

fn tool(name: &str, schema: Value) -> ToolDescriptor {
    callgate::json::from_value(json!({ "name": name, "input_schema": schema })).unwrap()
}

#[test]
fn tool_that_is_gone_or_changed_its_schema_does_not_run() {
    let loose = json!({ "type": "object" });
    let strict = json!({ "type": "object", "required": ["currency"] });
    for (tools, outcome) in [
        (vec![tool("refund", loose.clone())], ("executed", "approved")),
        (vec![tool("refund", json!({ "required": ["amount"] }))], ("executed", "approved")),
        (vec![tool("refund", strict)], ("invalid", "schema_violation")),
        (vec![tool("pay", loose.clone())], ("invalid", "schema_unavailable")),
    ] {
        let mut scene = Scene::new(REFUNDS);
        scene.tools = vec![tool("refund", loose.clone())];
        scene.ask(refund());
        scene.approve();
        scene.tools = tools;
        assert_eq!(kind_and_code(&scene.outcome()), outcome);
        assert_eq!(scene.tool.count(), usize::from(outcome.0 == "executed"));
        assert_eq!(scene.results().len(), 1);
    }
}
