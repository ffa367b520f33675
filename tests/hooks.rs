//! Host hooks in the chain, beside the policies and under the same rules.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::host::ClosureTools;
use callgate::json::{Value, json};
use callgate::lifecycle::{BeforeAction, ErrorAction, HookCall, ModelConfig, ToolHooks};
use callgate::{EngineBuilder, ToolDescriptor, ToolError};

use crate::fixtures::{Tool, call, kind_and_code, noon, rules, run};

fn outcome(engine: EngineBuilder, tool: &Tool, input: Value) -> callgate::Outcome {
    let clock = noon();
    let mut session = engine.clock(clock.clone()).build().session();
    run(&clock, &mut session, tool, &[call("pay", input)]).remove(0)
}

const NONE: &str = "policies: []";
const CAP: &str =
    "policies: [ { id: cap, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, deny: {} } ]";

#[test]
fn before_hooks_determine_the_outcome_of_a_call() {
    let tool = Tool::counting(&noon());
    for (says, kind, code, ran) in [
        (BeforeAction::Continue, "executed", "unmatched", true),
        (BeforeAction::Skip(json!("kept")), "answered", "answered", false),
        (BeforeAction::Block("not now".into()), "denied", "blocked", false),
        (BeforeAction::Halt("stop".into()), "halted", "halted", false),
        (BeforeAction::Edit(json!({ "amount": 500 })), "denied", "denied", false),
        (BeforeAction::Edit(json!("no object")), "denied", "invalid_arguments", false),
    ] {
        let before = tool.count();
        let hook = ToolHooks::new("hook").before(move |_| says.clone());
        let outcome = outcome(rules(CAP).middleware(hook), &tool, json!({ "amount": 5 }));
        assert_eq!(kind_and_code(&outcome), (kind, code));
        assert_eq!(tool.count() > before, ran, "{kind}");
    }
}

#[test]
fn hook_lifts_no_restriction_and_the_strictest_outcome_wins() {
    let tool = Tool::counting(&noon());
    let answering = ToolHooks::new("answers").before(|_| BeforeAction::Skip(json!(1)));
    let outcome_of =
        |engine: EngineBuilder| kind_and_code(&outcome(engine, &tool, json!({ "amount": 500 }))).0;
    assert_eq!(outcome_of(rules(CAP).middleware(answering.clone())), "denied");
    let halting = ToolHooks::new("halts").before(|_| BeforeAction::Halt("stop".into()));
    assert_eq!(outcome_of(rules(CAP).middleware(answering).middleware(halting)), "halted");
}

/// The chain waits for the hook's answer, which is as strict as an immediate one.
#[test]
fn before_hook_may_be_async() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let asks = |verdict: fn(u64) -> BeforeAction| {
        let clock = clock.clone();
        ToolHooks::new("asks a service").before_async(move |call: &HookCall<'_>| {
            let (clock, n) = (clock.clone(), call.input["n"].as_u64().unwrap());
            async move {
                callgate::Clock::sleep(&clock, Duration::from_secs(2)).await;
                verdict(n)
            }
        })
    };
    let edits = asks(|n| BeforeAction::Edit(json!({ "n": n + 1 })));
    let blocks =
        asks(
            |n| if n > 1 { BeforeAction::Block(format!("{n} is too much")) } else { BeforeAction::Continue },
        );
    let mut session = rules(NONE).clock(clock.clone()).middleware(edits).middleware(blocks).build().session();
    let mut run = |n: u64| clock.block_on(session.execute(call("pay", json!({ "n": n })), &tool));
    let (let_by, blocked) = (run(0), run(1));
    assert_eq!((kind_and_code(&let_by).0, &tool.inputs()[..]), ("executed", &[json!({ "n": 1 })][..]));
    assert_eq!(
        (kind_and_code(&blocked), blocked.reason.message.as_str()),
        (("denied", "blocked"), "2 is too much")
    );
}

#[test]
fn each_hook_sees_the_arguments_as_edited_by_the_previous_one() {
    let tool = Tool::counting(&noon());
    let add = |name: &str| {
        ToolHooks::new(name)
            .before(|call| BeforeAction::Edit(json!({ "n": call.input["n"].as_u64().unwrap() + 1 })))
    };
    outcome(rules(NONE).middleware(add("a")).middleware(add("b")), &tool, json!({ "n": 1 }));
    assert_eq!(tool.inputs(), [json!({ "n": 3 })]);
}

/// Of two `before` hooks the later one has the last word on the arguments, and handles errors first.
#[test]
fn hook_for_one_tool_overrides_hooks_for_all_tools() {
    let clock = noon();
    let failed = || (Duration::ZERO, Err(ToolError::new("down")));
    let tool = Tool::scripted(&clock, [failed()]);
    let hook = |name: &str, unit: &'static str| {
        ToolHooks::new(name)
            .before(move |_| BeforeAction::Edit(json!({ "unit": unit })))
            .on_error(move |_, _| ErrorAction::Recover(json!(unit)))
    };
    let engine = rules(NONE).clock(clock.clone());
    let engine =
        engine.middleware(hook("all", "celsius")).middleware(hook("one", "kelvin").for_tools(["lab"]));
    let mut session = engine.build().session();
    let outcomes = run(&clock, &mut session, &tool, &[call("lab", json!({})), call("weather", json!({}))]);
    assert_eq!(tool.inputs(), [json!({ "unit": "kelvin" }), json!({ "unit": "celsius" })]);
    let given: Vec<_> = outcomes.into_iter().map(|outcome| outcome.output.unwrap()).collect();
    assert_eq!(given, [json!("kelvin"), json!("celsius")]);
}

#[test]
fn metadata_reaches_rules_and_tool() {
    let tool = Tool::counting(&noon());
    let tag = ToolHooks::new("tag").before(|_| {
        BeforeAction::Annotate(callgate::json::Map::from_iter([("team".to_owned(), json!("red"))]))
    });
    let rule = "policies: [ { id: red, match: { tool: pay, where: [ { path: $.context.metadata.team, eq: red } ] }, \
                deny: {} } ]";
    assert_eq!(kind_and_code(&outcome(rules(rule).middleware(tag.clone()), &tool, json!({}))).0, "denied");
    outcome(rules(NONE).middleware(tag), &tool, json!({}));
    assert_eq!(tool.calls()[0].context, json!({ "metadata": { "team": "red" } }));
}

#[test]
fn panicking_hook_denies_before_the_call_and_changes_nothing_after() {
    let tool = Tool::counting(&noon());
    let before = ToolHooks::new("clumsy").before(|_| panic!("clumsy"));
    assert_eq!(
        kind_and_code(&outcome(rules(NONE).middleware(before), &tool, json!({}))),
        ("denied", "blocked")
    );
    let after = ToolHooks::new("clumsy").after(|_| panic!("clumsy"));
    assert_eq!(kind_and_code(&outcome(rules(NONE).middleware(after), &tool, json!({}))).0, "executed");
    let around = ToolHooks::new("clumsy").around(|_, _| panic!("clumsy"));
    assert_eq!(
        kind_and_code(&outcome(rules(NONE).middleware(around), &tool, json!({}))),
        ("failed", "internal_error")
    );
}

#[test]
fn around_hook_changes_the_result_calls_again_or_returns_early() {
    let tool = Tool::counting(&noon());
    let doubled = ToolHooks::new("twice").around(|_, mut next| {
        Box::pin(async move {
            let first = next.call().await?.as_u64().unwrap();
            let second = next.call().await?.as_u64().unwrap();
            Ok(json!([first, second]))
        })
    });
    let outcome_of = |hook| outcome(rules(NONE).middleware(hook), &tool, json!({ "q": 1 }));
    assert_eq!(outcome_of(doubled).output, Some(json!([1, 2])));
    let early = ToolHooks::new("early").around(|_, _| Box::pin(async { Ok(json!("cached")) }));
    assert_eq!(kind_and_code(&outcome_of(early)), ("answered", "answered"));
    let trimmed = ToolHooks::new("trim").around(|call, mut next| {
        let q = call.input["q"].clone();
        Box::pin(async move { next.call_with_input(json!({ "trimmed": q })).await })
    });
    assert_eq!(kind_and_code(&outcome_of(trimmed)).0, "executed");
    assert_eq!(tool.inputs().last(), Some(&json!({ "trimmed": 1 })));
}

#[test]
fn i1_arguments_changed_by_a_hook_pass_the_gate_again() {
    let tool = Tool::counting(&noon());
    let raise = ToolHooks::new("raise")
        .around(|_, mut next| Box::pin(async move { next.call_with_input(json!({ "amount": 500 })).await }));
    let stopped = outcome(rules(CAP).middleware(raise.clone()), &tool, json!({ "amount": 5 }));
    assert_eq!((stopped.outcome.name(), tool.count()), ("failed", 0));
    let ask = CAP.replace("deny: {}", "approval: {}");
    let asked = outcome(rules(&ask).middleware(raise), &tool, json!({ "amount": 5 }));
    assert_eq!((kind_and_code(&asked), tool.count()), (("suspended", "approval_required"), 0));
    assert_eq!(asked.approval.unwrap().input, json!({ "amount": 500 }));
}

#[test]
fn error_can_be_replaced_or_recovered_and_hooks_end_in_reverse_order() {
    let clock = noon();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hook = |name: &'static str, fate: ErrorAction| {
        let heard = Arc::clone(&heard);
        ToolHooks::new(name).on_error(move |_, _| fate.clone()).after(move |end| {
            heard.lock().unwrap().push(format!("{name} {}", end.outcome.outcome));
        })
    };
    for (fate, kind, told) in [
        (ErrorAction::Keep, "failed", "boom"),
        (ErrorAction::Replace(ToolError::new("mended")), "failed", "mended"),
        (ErrorAction::Recover(json!("try 5")), "recovered", "try 5"),
    ] {
        let tool = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("boom")))]);
        let engine = rules(NONE).middleware(hook("a", ErrorAction::Keep)).middleware(hook("b", fate));
        let outcome = outcome(engine, &tool, json!({}));
        let said = outcome.error.or(outcome.output.map(|output| output.as_str().unwrap().to_owned()));
        assert_eq!((outcome.outcome.name(), said.as_deref()), (kind, Some(told)));
        assert_eq!(
            heard.lock().unwrap().drain(..).collect::<Vec<_>>(),
            [format!("b {kind}"), format!("a {kind}")]
        );
    }
}

#[test]
fn i10_hook_results_are_redacted() {
    let clock = noon();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("boom")))]);
    let rule = "policies: [ { id: hide, redact: { in: [output], detect: [email] } } ]";
    let telling = ToolHooks::new("tells").on_error(|_, _| ErrorAction::Recover(json!("ask ana@example.com")));
    let outcome = outcome(rules(rule).middleware(telling), &tool, json!({}));
    assert!(!outcome.output.unwrap().to_string().contains("ana@"));
}

/// Their futures are awaited, in order.
#[test]
fn after_and_error_hooks_may_be_async() {
    let clock = noon();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("boom")))]);
    let hook = |name: &'static str| {
        let (heard, on_error, after) = (Arc::clone(&heard), clock.clone(), clock.clone());
        ToolHooks::new(name)
            .on_error_async(move |call, error| {
                let (clock, message) =
                    (on_error.clone(), format!("{name}: {} of {}", error.message, call.tool));
                async move {
                    callgate::Clock::sleep(&clock, Duration::from_secs(2)).await;
                    ErrorAction::Replace(ToolError::new(message))
                }
            })
            .after_async(move |end| {
                let (clock, heard) = (after.clone(), Arc::clone(&heard));
                let line = format!("{name} {}", end.outcome.error.clone().unwrap_or_default());
                async move {
                    callgate::Clock::sleep(&clock, Duration::from_secs(2)).await;
                    heard.lock().unwrap().push(line);
                }
            })
    };
    let engine = rules(NONE).clock(clock.clone()).middleware(hook("a")).middleware(hook("b"));
    let mut session = engine.build().session();
    let outcome = run(&clock, &mut session, &tool, &[call("pay", json!({}))]).remove(0);
    assert_eq!(outcome.error.as_deref(), Some("a: b: boom of pay of pay"));
    let told = "a: b: boom of pay of pay";
    assert_eq!(*heard.lock().unwrap(), [format!("b {told}"), format!("a {told}")]);
}

fn tool_descriptor(name: &str, server: Option<&str>) -> ToolDescriptor {
    let description = format!("{name} of {}", server.unwrap_or("all"));
    callgate::json::from_value(json!({ "name": name, "server": server, "description": description })).unwrap()
}

/// The descriptor is that of the call's own server, or of a tool without a server; tools of the session shadow the engine's.
#[test]
fn every_hook_gets_the_descriptor_of_the_tool() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |point: &'static str, descriptor: Option<&ToolDescriptor>, seen: &Arc<Mutex<Vec<String>>>| {
        let known = descriptor.and_then(|descriptor| descriptor.description.clone());
        seen.lock().unwrap().push(format!("{point} {}", known.unwrap_or_else(|| "unknown".to_owned())));
    };
    let of = || Arc::clone(&seen);
    let (matching, before, around, on_error, after) = (of(), of(), of(), of(), of());
    let hook = ToolHooks::new("ear")
        .with_filter(move |call| {
            note("matching", call.descriptor, &matching);
            true
        })
        .before(move |call| {
            note("before", call.descriptor, &before);
            BeforeAction::Continue
        })
        .around(move |call, mut next| {
            note("around", call.descriptor, &around);
            Box::pin(async move { next.call().await })
        })
        .on_error(move |call, _| {
            note("on_error", call.descriptor, &on_error);
            ErrorAction::Keep
        })
        .after(move |end| note("after", end.descriptor, &after));
    let clock = noon();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("boom")))]);
    let engine = rules(NONE).tools([tool_descriptor("pay", None), tool_descriptor("pay", Some("bank"))]);
    let mut session = engine.middleware(hook).build().session().with_tools([tool_descriptor("look", None)]);
    for (of, expected) in [
        (call("pay", json!({})), "pay of all"),
        (call("pay", json!({})).with_server("bank"), "pay of bank"),
        (call("pay", json!({})).with_server("shop"), "pay of all"),
        (call("look", json!({})), "look of all"),
        (call("nothing", json!({})), "unknown"),
    ] {
        clock.block_on(session.execute(of, &tool));
        let mut seen: Vec<String> = std::mem::take(&mut *seen.lock().unwrap());
        seen.dedup();
        let points = ["matching", "before", "matching", "around", "matching", "on_error", "after"];
        assert_eq!(seen, points.map(|point| format!("{point} {expected}")));
    }
}

/// One rule for all hooks: `before` and `after` see every call as it arrived; wrappers see the calls that pass the gate.
#[test]
fn hooks_see_malformed_unknown_and_unoffered_calls_by_one_rule() {
    let clock = noon();
    let tools = ClosureTools::new()
        .with_tool("look", async |_| Ok(json!(1)))
        .with_tool("pay", async |_| Ok(json!(2)));
    for (what, tool, input, offers, expected, points) in [
        ("valid", "look", json!({}), true, ("executed", "unmatched"), "before around after"),
        ("malformed", "look", json!("{ \"a\": "), true, ("denied", "invalid_arguments"), "before after"),
        ("an array", "look", json!([1]), true, ("denied", "invalid_arguments"), "before after"),
        ("unknown", "nothing", json!({}), false, ("failed", "tool_error"), "before around error after"),
        ("unknown, with an offer", "nothing", json!({}), true, ("denied", "not_offered"), "before after"),
        ("not offered", "pay", json!({}), true, ("denied", "not_offered"), "before after"),
        ("both", "pay", json!("{"), true, ("denied", "invalid_arguments"), "before after"),
    ] {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let of = || Arc::clone(&seen);
        let (before, around, error, after) = (of(), of(), of(), of());
        let sent = input.clone();
        let hook = ToolHooks::new("ear")
            .before(move |call| {
                assert_eq!(call.input, sent);
                before.lock().unwrap().push("before".to_owned());
                BeforeAction::Continue
            })
            .around(move |_, mut next| {
                around.lock().unwrap().push("around".to_owned());
                Box::pin(async move { next.call().await })
            })
            .on_error(move |_, _| {
                error.lock().unwrap().push("error".to_owned());
                ErrorAction::Keep
            })
            .after(move |end| {
                assert!(!end.outcome.reason.message.is_empty());
                after.lock().unwrap().push("after".to_owned());
            });
        let mut session = rules(NONE).middleware(hook).build().session();
        if offers {
            let config = ModelConfig { tools: vec![tool_descriptor("look", None)], ..ModelConfig::default() };
            let config = session.begin(config).unwrap();
            clock.block_on(session.before_model(config)).unwrap();
        }
        let outcome = clock.block_on(session.execute(call(tool, input), &tools));
        assert_eq!(kind_and_code(&outcome), expected, "{what}");
        assert_eq!(seen.lock().unwrap().join(" "), points, "{what}");
    }
}

#[test]
fn hook_can_repair_malformed_arguments() {
    let tool = Tool::counting(&noon());
    let mend = ToolHooks::new("mend").before(|call| match call.input.as_str() {
        Some("{ \"a\": 1") => BeforeAction::Edit(json!({ "a": 1 })),
        _ => BeforeAction::Continue,
    });
    let outcome = outcome(rules(NONE).middleware(mend), &tool, json!("{ \"a\": 1"));
    assert_eq!((kind_and_code(&outcome).0, tool.inputs()), ("executed", vec![json!({ "a": 1 })]));
}
