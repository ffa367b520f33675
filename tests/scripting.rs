//! `around` policies: how scripts change a call, and the gates that they cannot bypass.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::call::Outcome;
use callgate::json::{Value, json};
use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};
use tokio::sync::Notify;

use crate::fixtures::{Tool, call, kind_and_code, noon, rules, run};

/// Rules with one script for every tool, and other policies.
fn with_script(script: &str, others: &str) -> String {
    let script = script.replace('\n', "\n        ");
    format!("policies:\n  - id: wrap\n    around:\n      script: |\n        {script}\n{others}")
}

struct Wrapped {
    outcome: Outcome,
    tool: Tool,
}

/// Executes one call through a script; the tool first fails with the errors in `fails`, then returns a result.
fn wrapped(script: &str, others: &str, input: Value, fails: &[&str]) -> Wrapped {
    let clock = noon();
    let engine = rules(&with_script(script, others)).clock(clock.clone()).build();
    let error =
        |kind: &&str| (Duration::ZERO, Err(ToolError::new(format!("tool says {kind}")).with_kind(*kind)));
    let returned = (Duration::ZERO, Ok(json!({ "found": 7 })));
    let tool = Tool::scripted(&clock, fails.iter().map(error).chain([returned]));
    let outcome = clock.block_on(engine.session().execute(call("search", input), &tool));
    Wrapped { outcome, tool }
}

#[test]
fn script_controls_whether_and_how_often_the_tool_runs() {
    let returned = json!({ "found": 7 });
    for (name, script, fails, outcome, output, inputs) in [
        ("once", "next(input)", &[][..], ("executed", "unmatched"), returned.clone(), json!([{ "q": 1 }])),
        ("never", "#{ known: true }", &[], ("answered", "answered"), json!({ "known": true }), json!([])),
        (
            "early",
            "if input.q == 1 { return 5; } next(input)",
            &[],
            ("answered", "answered"),
            json!(5),
            json!([]),
        ),
        (
            "twice",
            "next(input); next(input)",
            &[],
            ("executed", "unmatched"),
            returned.clone(),
            json!([{ "q": 1 }, { "q": 1 }]),
        ),
        (
            "other arguments",
            "input.q += 1; input.page = 1; next(input)",
            &[],
            ("executed", "unmatched"),
            returned.clone(),
            json!([{ "q": 2, "page": 1 }]),
        ),
        (
            "another result",
            "let out = next(input); out.found += 1; out",
            &[],
            ("executed", "unmatched"),
            json!({ "found": 8 }),
            json!([{ "q": 1 }]),
        ),
        (
            "a loop",
            "let tries = 0;\nloop {\n  try { return next(input); }\n  catch (error) { tries += 1; if tries == 3 || error.kind != \"timeout\" { throw error; } }\n}",
            &["timeout", "timeout"],
            ("executed", "unmatched"),
            returned.clone(),
            json!([{ "q": 1 }, { "q": 1 }, { "q": 1 }]),
        ),
        (
            "caught",
            "try { next(input) } catch (error) { #{ sorry: error.message, kind: error.kind } }",
            &["busy"],
            ("answered", "answered"),
            json!({ "sorry": "tool says busy", "kind": "busy" }),
            json!([{ "q": 1 }]),
        ),
    ] {
        let found = wrapped(script, "", json!({ "q": 1 }), fails);
        assert_eq!(kind_and_code(&found.outcome), outcome, "{name}: {:?}", found.outcome.error);
        assert_eq!(found.outcome.output, Some(output), "{name}");
        assert_eq!(json!(found.tool.inputs()), inputs, "{name}");
    }
}

#[test]
fn errors_pass_through_or_are_mapped() {
    for (script, end, error) in [
        ("next(input)", ("failed", "tool_error"), "tool says busy"),
        ("try { next(input) } catch (error) { throw error; }", ("failed", "tool_error"), "tool says busy"),
        (
            "try { next(input) } catch (error) { throw #{ message: `busy: ${error.message}`, kind: \"later\" }; }",
            ("failed", "later"),
            "busy: tool says busy",
        ),
        ("throw \"not today\";", ("failed", "thrown"), "not today"),
        ("throw #{ message: \"too long\", kind: \"too_long\" };", ("failed", "too_long"), "too long"),
    ] {
        let found = wrapped(script, "", json!({}), &["busy"]);
        assert_eq!(kind_and_code(&found.outcome), end, "{script}");
        assert_eq!(found.outcome.error.as_deref(), Some(error), "{script}");
    }
}

/// I1: changed arguments are gated like a separate call.
#[test]
fn changed_arguments_are_gated_again() {
    let others = "
  - { id: large, match: { tool: search, where: { path: $.input.amount, gt: 100 } }, deny: { message: 'At most 100.', code: large } }
  - { id: person, match: { tool: search, where: { path: $.input.amount, eq: 77 } }, approval: { message: 'Really {{ input.amount }}?' } }
  - { id: stop, match: { tool: search, where: { path: $.input.amount, eq: 66 } }, halt: {} }
  - { id: canned, match: { tool: search, where: { path: $.input.amount, eq: 55 } }, respond: { output: canned } }
  - { id: shape, match: search, validate: { schema: { type: object, properties: { amount: { type: number } } } } }
  - { id: form, match: search, transform: { input: [ { path: $.input.currency, uppercase: true } ] } }";
    let with = |amount: &str| format!("input.amount = {amount}; next(input)");
    for (script, end, runs) in [
        (with("50"), ("executed", "unmatched"), 1),
        (with("250"), ("denied", "large"), 0),
        (with("77"), ("suspended", "approval_required"), 0),
        (with("66"), ("halted", "halted"), 0),
        (with("55"), ("answered", "answered"), 0),
        (with("\"many\""), ("halted", "undecided"), 0),
        ("next(#{ amount: true })".to_owned(), ("halted", "undecided"), 0),
        ("next(5)".to_owned(), ("halted", "undecided"), 0),
        (
            format!("try {{ {} }} catch (error) {{ error.kind + \": \" + error.message }}", with("250")),
            ("answered", "answered"),
            0,
        ),
        // Approval can be required only before the tool has run.
        (format!("next(input); {}", with("77")), ("failed", "denied"), 1),
    ] {
        let found = wrapped(&script, others, json!({ "amount": 5, "currency": "eur" }), &[]);
        assert_eq!(kind_and_code(&found.outcome), end, "{script}: {:?}", found.outcome.error);
        assert_eq!(found.tool.count(), runs, "{script}");
    }
    let suspended = wrapped(&with("77"), others, json!({ "amount": 5, "currency": "eur" }), &[]).outcome;
    let request = suspended.approval.unwrap();
    assert_eq!(
        request.input,
        json!({ "amount": 77, "currency": "EUR" }),
        "the request contains the changed arguments"
    );
    assert_eq!(request.message.as_deref(), Some("Really 77?"));
    let formed = wrapped("input.currency = \"chf\"; next(input)", others, json!({ "amount": 5 }), &[]);
    assert_eq!(formed.tool.inputs(), [json!({ "amount": 5, "currency": "CHF" })]);
    assert_eq!(
        formed.outcome.input,
        json!({ "amount": 5, "currency": "CHF" }),
        "the outcome reports the arguments that ran"
    );
}

#[test]
fn the_trace_names_the_policy_that_refuses_a_further_run() {
    for kind in ["halt", "deny"] {
        let others =
            format!("  - {{ id: bound, match: {{ where: {{ path: $.input.q, gt: 5 }} }}, {kind}: {{}} }}\n");
        let Wrapped { outcome, tool } =
            wrapped("next(input); next(#{ q: 9 })", &others, json!({ "q": 1 }), &[]);
        assert_eq!(tool.inputs(), [json!({ "q": 1 })], "{kind}");
        let traced: Vec<&str> = outcome.policies.iter().map(|policy| policy.id.as_str()).collect();
        assert!(traced.contains(&"bound"), "{kind}: {traced:?}");
    }
}

#[test]
fn each_run_counts_and_acquires_limits_once() {
    let others = "
  - { id: once, match: { tool: search, where: { path: $.session.calls.search, gte: 2 } }, deny: { code: enough } }
  - { id: rate, match: search, rate_limit: { limit: 2, per: 1h } }
  - { id: by-page, match: { tool: search, where: { path: $.input.page, exists: true } }, rate_limit: { limit: 1, per: 1h, key: $.input.page } }";
    let twice = wrapped("next(input); next(input)", others, json!({}), &[]);
    assert_eq!(
        (twice.outcome.outcome, twice.tool.count()),
        (OutcomeKind::Executed, 2),
        "each run acquires one"
    );
    let one = "\n  - { id: rate, match: search, rate_limit: { limit: 1, per: 1h } }";
    let second = wrapped("next(input); next(input)", one, json!({}), &[]);
    assert_eq!((kind_and_code(&second.outcome), second.tool.count()), (("failed", "rate_limited"), 1));
    let slot = "\n  - { id: slot, match: search, concurrency: { max: 1 } }";
    let within = wrapped("next(input); next(input)", slot, json!({}), &[]);
    assert_eq!(
        (within.outcome.outcome, within.tool.count()),
        (OutcomeKind::Executed, 2),
        "a call has one slot"
    );
    let thrice = wrapped("next(input); next(input); next(input)", others, json!({}), &[]);
    assert_eq!(
        (kind_and_code(&thrice.outcome), thrice.tool.count()),
        (("failed", "enough"), 2),
        "the session counts each run"
    );
    assert_eq!(thrice.outcome.attempts, Some(2), "the outcome reports runs that already happened");
    let once = "\n  - { id: once, match: search, rate_limit: { limit: 1, per: run } }";
    let other = wrapped("input.page = 1; next(input)", once, json!({}), &[]);
    assert_eq!(other.outcome.outcome, OutcomeKind::Executed, "the call already holds the limit");
    let pages = wrapped("input.page = 1; next(input); input.page = 2; next(input)", others, json!({}), &[]);
    assert_eq!(kind_and_code(&pages.outcome), ("executed", "unmatched"), "{:?}", pages.outcome.error);
    assert_eq!(pages.outcome.attempts, Some(2));
}

#[test]
fn priority_determines_nesting() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: outer-cache, match: search, cache: { ttl: 1h } }
          - { id: wrap, match: search, around: { script: 'let out = next(input); out.found += 1; out' } }
          - { id: again, match: search, retry: { attempts: 2, idempotent: true } }
          - { id: late, match: search, timeout: 5s }",
    )
    .clock(clock.clone())
    .build();
    let tool = Tool::scripted(
        &clock,
        [(Duration::from_secs(9), Ok(json!({ "found": 1 }))), (Duration::ZERO, Ok(json!({ "found": 2 })))],
    );
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    assert_eq!(outcomes[0].output, Some(json!({ "found": 3 })));
    assert_eq!(
        (outcomes[1].outcome, &outcomes[1].output),
        (OutcomeKind::Cached, &Some(json!({ "found": 3 })))
    );
    let engine = rules(
        "policies:
          - { id: inner-cache, priority: -1, match: search, cache: { ttl: 1h } }
          - { id: wrap, match: search, around: { script: 'next(input)' } }",
    )
    .clock(clock.clone())
    .build();
    let tool = Tool::counting(&clock);
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    assert_eq!(outcomes[1].outcome, OutcomeKind::Cached, "an unchanged result keeps its outcome");
}

#[test]
fn answers_that_replace_the_tool_result_are_not_cached() {
    for (script, cached) in [
        ("next(input)", true),
        ("#{}", false),
        ("try { next(input) } catch (error) { 0 }", false),
        ("let out = next(input); 1", true),
    ] {
        let clock = noon();
        let text = with_script(script, "\n  - { id: c, match: search, cache: { ttl: 1h } }");
        let engine = rules(&text).clock(clock.clone()).build();
        let fails = (Duration::ZERO, Err(ToolError::new("down")));
        let returned = (Duration::ZERO, Ok(json!(1)));
        let tool = Tool::scripted(
            &clock,
            if script.contains("catch") { [fails.clone(), fails] } else { [returned.clone(), returned] },
        );
        let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
        assert_eq!(outcomes[1].outcome == OutcomeKind::Cached, cached, "{script}");
    }
}

#[test]
fn failing_script_reports_its_position_and_blocks_the_call() {
    for (script, message, runs) in [
        (
            "let a = 1;\nif input.missing { next(input) }",
            "the script of `wrap` failed before the tool was called: the object has no key `missing` (rules.yaml:6:18)",
            0,
        ),
        (
            "let out = next(input);\n\nout.nothing",
            "the script of `wrap` failed after the tool was called: the object has no key `nothing` (rules.yaml:7:13)",
            1,
        ),
        ("loop { }", "takes too many steps", 0),
        ("input.q > \"1\"", "cannot compare values of different types", 0),
        ("for i in range(0, 100) { next(input); }", "more than 64 effects", 64),
    ] {
        let found = wrapped(script, "", json!({ "q": 1 }), &[]);
        // If a limit ends the script after the tool was called, its effects are unknown.
        let end = if message.contains("effects") { "indeterminate" } else { "failed" };
        assert_eq!(kind_and_code(&found.outcome), (end, "script_error"), "{script}");
        let error = found.outcome.error.unwrap();
        assert!(error.contains(message), "{script}: {error}");
        assert_eq!(
            (found.tool.count(), found.outcome.reason.policy.as_deref()),
            (runs, Some("wrap")),
            "{script}"
        );
    }
}

#[test]
fn script_files_are_loaded_and_errors_point_into_them() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("rules.yaml", "policies: [ { id: wrap, around: { file: wrap.rhai } } ]");
    let load = || Engine::from_paths(&[directory.path().to_owned()]);
    assert!(load().unwrap_err().to_string().contains("wrap.rhai` does not exist"));
    write("wrap.rhai", "// first\nlet out = nxt(input);\nout\n");
    let error = load().unwrap_err().to_string();
    assert!(
        error.contains("wrap.rhai:2:11") && error.contains("did you mean `next(input, options?)`?"),
        "{error}"
    );
    write("wrap.rhai", "// first\nlet out = next(input);\nout.missing\n");
    let (clock, engine) = (noon(), load().unwrap());
    let outcome =
        clock.block_on(engine.session().execute(call("search", json!({})), &Tool::counting(&clock)));
    assert!(outcome.error.as_deref().unwrap().contains("wrap.rhai:3:"), "{:?}", outcome.error);
    let before = engine.revision();
    write("wrap.rhai", "next(input)\n");
    assert_ne!(load().unwrap().revision(), before, "the script is part of the revision");
}

#[test]
fn undecided_condition_denies_and_shadow_mode_runs_no_script() {
    let condition = "match: { tool: search, where: { path: $.input.q, gt: 1 } }";
    for (mode, end, runs) in
        [("enforce", ("denied", "undecided"), 0), ("shadow", ("executed", "unmatched"), 1)]
    {
        let clock = noon();
        let text = format!(
            "policies: [ {{ id: wrap, mode: {mode}, {condition}, around: {{ script: 'next(input)' }} }} ]"
        );
        let engine = rules(&text).clock(clock.clone()).build();
        let tool = Tool::counting(&clock);
        let outcome = clock.block_on(engine.session().execute(call("search", json!({ "q": "2" })), &tool));
        assert_eq!((kind_and_code(&outcome), tool.count()), (end, runs), "{mode}");
        let absent = clock.block_on(engine.session().execute(call("search", json!({})), &tool));
        assert_eq!(absent.outcome, OutcomeKind::Executed, "{mode}");
    }
}

#[test]
fn time_randomness_and_options_come_from_the_host() {
    let clock = noon();
    let script = "let began = now();\nlet out = next(input, #{ trace: \"x\", was: options.trace });\n#{ ms: now() - began, chance: random(), out: out }";
    let engine = rules(&with_script(script, "")).clock(clock.clone()).seed(7).build();
    let tool = Tool::scripted(&clock, [(Duration::from_millis(1500), Ok(json!(1)))]);
    let traced = call("search", json!({})).with_options(json!({ "trace": "host" }));
    let first = clock.block_on(engine.session().execute(traced.clone(), &tool)).output.unwrap();
    assert_eq!((&first["ms"], &first["out"]), (&json!(1500), &json!(1)));
    assert!((0.0..1.0).contains(&first["chance"].as_f64().unwrap()));
    assert_eq!(tool.calls()[0].options, json!({ "trace": "x", "was": "host" }));
    let engine = rules(&with_script(script, "")).clock(clock.clone()).seed(7).build();
    let again = clock.block_on(engine.session().execute(traced, &tool)).output.unwrap();
    assert_eq!(again["chance"], first["chance"], "a seed makes random numbers reproducible");
}

#[test]
fn script_cache_respects_ttl_and_scope() {
    let script = "let known = cache_get(input.q);\nif !is_null(known) { return known; }\nlet out = next(input);\ncache_set(input.q, out, \"60s\");\nout";
    let clock = noon();
    let engine = rules(&with_script(script, "")).clock(clock.clone()).build();
    let tool = Tool::counting(&clock);
    let of =
        |principal: &str| call("search", json!({ "q": [1] })).with_context(json!({ "principal": principal }));
    let one = |call: ToolCall| clock.block_on(engine.session().execute(call, &tool)).outcome.name();
    assert_eq!([one(of("ana")), one(of("ana")), one(of("bob"))], ["executed", "answered", "executed"]);
    clock.advance(Duration::from_secs(60));
    assert_eq!(one(of("ana")), "executed");
}

#[test]
fn script_audit_entries_are_redacted() {
    let script = "audit(#{ phase: \"start\", to: input.to });\nlet out = next(input);\naudit(#{ phase: \"end\", found: out });\nout";
    let others = "\n  - { id: hide, match: '*', redact: { in: [input, output], detect: [email] } }";
    let clock = noon();
    let engine = rules(&with_script(script, others)).clock(clock.clone()).build();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!({ "mail": "bob@example.com" })))]);
    let outcome =
        clock.block_on(engine.session().execute(call("send", json!({ "to": "ana@example.com" })), &tool));
    let entries: Vec<Value> = outcome.audit.iter().map(|entry| json!(entry.fields)).collect();
    assert_eq!(
        entries,
        [
            json!({ "phase": "start", "to": "[email]" }),
            json!({ "phase": "end", "found": { "mail": "[email]" } })
        ]
    );
    assert!(!callgate::json::to_string(&outcome).unwrap().contains("example.com"));
}

#[test]
fn script_can_require_approval_before_acting() {
    let script = "if input.amount > 100 { approve(`Pay ${input.amount}?`); }\nnext(input)";
    let large = wrapped(script, "", json!({ "amount": 250 }), &[]);
    assert_eq!((kind_and_code(&large.outcome), large.tool.count()), (("suspended", "approval_required"), 0));
    let request = large.outcome.approval.unwrap();
    assert_eq!(request.message.as_deref(), Some("Pay 250?"));
    assert_eq!(request.policies, ["wrap"]);
    assert_eq!(wrapped(script, "", json!({ "amount": 5 }), &[]).outcome.outcome, OutcomeKind::Executed);
    let audited = "audit(#{ asked: true }); approve(\"Really?\"); next(input)";
    assert_eq!(
        wrapped(audited, "", json!({}), &[]).outcome.outcome,
        OutcomeKind::Suspended,
        "an audit entry is not an action"
    );
    let once = "\n  - { id: once, rate_limit: { limit: 1, per: run } }";
    let held = wrapped("approve(\"Really?\"); next(input)", once, json!({}), &[]);
    assert_eq!(
        held.outcome.outcome,
        OutcomeKind::Suspended,
        "a limit that the call holds is not acquired again"
    );
    let late = wrapped("next(input); approve(\"Was that right?\");", "", json!({}), &[]);
    assert_eq!((kind_and_code(&late.outcome), late.tool.count()), (("failed", "denied"), 1));
}

/// A tool that waits until the test notifies it, and counts waiting calls.
#[derive(Clone, Default)]
struct Waiting {
    inside: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl ToolExecutor for Waiting {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let gone = self.go.notified();
        self.inside.fetch_add(1, Ordering::SeqCst);
        gone.await;
        Ok(call.input.clone().into())
    }
}

/// A pending script does not block a thread.
#[test]
fn ten_thousand_calls_await_next_on_two_threads() {
    const CALLS: usize = 10_000;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let engine =
        rules(&with_script("input.number += 1;\nlet out = next(input);\nout.back = true;\nout", "")).build();
    let waiting = Waiting::default();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..CALLS)
            .map(|number| {
                let (engine, waiting) = (engine.clone(), waiting.clone());
                tokio::spawn(async move {
                    engine.session().execute(call("search", json!({ "number": number })), &waiting).await
                })
            })
            .collect();
        while waiting.inside.load(Ordering::SeqCst) < CALLS {
            tokio::task::yield_now().await;
        }
        waiting.go.notify_waiters();
        for (number, task) in tasks.into_iter().enumerate() {
            let outcome = task.await.unwrap();
            assert_eq!(outcome.output, Some(json!({ "number": number + 1, "back": true })));
        }
    });
}

/// A script reads the names of its bundle.
#[test]
fn scripts_read_the_names_of_the_bundle() {
    let clock = noon();
    let text = "
data: { pages: 3, known: [a, b, c, d, e, f, g, h, i] }
functions: \"fn twice(x) { x * 2 }\"
groups: { searches: [search] }
let:
  size: input.q + data.pages
  user: context.user
policies:
  - id: wrap
    around:
      script: 'let out = next(#{ q: twice(size), known: \"a\" in data.known, group: is_tool(\"@searches\"), user: user ?? \"nobody\" }); out'
";
    let engine = rules(text).clock(clock.clone()).build();
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!({ "found": 7 })))]);
    let outcome = clock.block_on(engine.session().execute(call("search", json!({ "q": 1 })), &tool));
    assert_eq!(kind_and_code(&outcome).0, "executed", "{outcome:?}");
    assert_eq!(tool.inputs(), [json!({ "q": 8, "known": true, "group": true, "user": "nobody" })]);
}

/// What an `around` policy means includes the definitions that its script reaches.
#[test]
fn the_digest_of_a_wrapper_covers_the_definitions_that_it_reaches() {
    let digest = |pages: u32, other: u32| {
        let text = format!(
            "data: {{ pages: {pages}, other: {other} }}\nlet: {{ size: data.pages }}\npolicies: [{{ id: p, around: {{ script: \"next(#{{ q: size }})\" }} }}]"
        );
        let policies = callgate::load_text(&text).unwrap();
        policies.policies()[0].behaviour_digest
    };
    assert_eq!(digest(1, 2), digest(1, 3));
    assert_ne!(digest(1, 2), digest(2, 2));
}

/// `print` and `debug` write to the trace of the outcome: once for a run, whatever its replays, redacted, and at most 64 lines.
#[test]
fn scripts_print_to_the_trace() {
    let others = "  - { id: hide, match: \"*\", redact: { in: [input, output], detect: [payment_card] } }\n";
    let script = "print(\"first\"); debug(input.card); let out = next(input); print(out); for i in 0..100 { print(i); } out";
    let input = json!({ "card": "4111 1111 1111 1111" });
    let Wrapped { outcome, .. } = wrapped(script, others, input, &[]);
    let printed = &outcome.policies.iter().find(|policy| policy.id == "wrap").unwrap().printed;
    assert_eq!(printed.len(), 64, "{printed:?}");
    assert_eq!(printed[..4], ["first", "\"[payment_card]\"", "{\"found\":7}", "0"]);
    let Wrapped { outcome, .. } = wrapped("print(`before`); throw `no`;", "", json!({}), &[]);
    assert_eq!(outcome.policies[0].printed, ["before"]);
    let Wrapped { outcome, .. } = wrapped("next(input)", "", json!({}), &[]);
    assert!(outcome.policies[0].printed.is_empty());
}
