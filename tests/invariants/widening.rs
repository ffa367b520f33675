//! Property test: a change that is not a widening makes nothing more permissive: no stream, no result and no later call.

use callgate::host::SystemClock;
use callgate::json::{Value, json};
use callgate::kernel::{Kernel, Layers};
use callgate::lifecycle::Chunk;
use callgate::policy::{self, CompiledPolicies, find_widenings};
use callgate::tools::ToolSet;
use callgate::{Engine, SessionState, ToolCall, ToolError, ToolExecutor, ToolResponse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;

use super::block_on;

/// The secrets that policies redact in these tests.
const SECRETS: [&str; 4] = ["078-05-1120", "ana@example.com", "4111 1111 1111 1111", "CASE-1234"];

/// Parts of policies that detect the secrets, or change what others see of them.
const STREAMS: [&str; 16] = [
    "redact: us_ssn",
    "redact: [email, us_ssn]",
    "redact: [payment_card, email]",
    "redact: email, with: hash",
    "redact: payment_card, with: remove",
    "redact: us_ssn, with: { keep_last: 4 }",
    "patterns: ['CASE-[0-9]+']",
    "patterns: ['CASE-[0-9]+', '[0-9]{4}']",
    "in: text, redact: [us_ssn, email]",
    "in: reasoning, redact: [us_ssn, email]",
    "drop: [ssn]",
    "drop: ['/#/']",
    "drop: { patterns: case, unit: line }",
    "replace: { pattern: '([0-9])', with: '$1.' }",
    "replace: { pattern: '#', with: '' }",
    "replace: { pattern: '-', with: '/' }",
];

const RESULTS: [&str; 15] = [
    "redact: { detect: us_ssn }",
    "redact: { detect: [us_ssn, email] }",
    "redact: { detect: [payment_card, email], in: output }",
    "redact: { detect: email, in: input }",
    "redact: { patterns: ['CASE-[0-9]+'], with: remove }",
    "redact: { patterns: ['ssn|#'], with: remove }",
    "redact: { patterns: ['CASE', '-'] }",
    "label: { add: [secret] }, match: { where: { path: $.output.text, contains: '@' } }",
    "label: { add: [secret] }, match: { where: { path: $.output.text, matches: '[0-9]{3}-[0-9]{2}' } }",
    "label: { add: [secret] }",
    "fact: { name: text, value: $.output.text }",
    "transform: { output: [ { path: $.output.text, replace: { pattern: '#', with: '' } } ] }",
    "deny: {}, match: { where: { path: '$.session.labels[*]', eq: secret } }",
    "deny: {}, match: { where: { path: $.session.facts.text, contains: CASE } }",
    "approval: {}, match: { where: { path: '$.session.labels[*]', eq: secret } }",
];

/// A bundle before and after an edit: some of these kinds, with stable ids and with priorities.
fn pairs(kinds: &'static [&'static str], of_stream: bool) -> impl Strategy<Value = (String, String)> {
    let one = move || {
        let part = (select(kinds), -1i32..2, select(&["enforce", "enforce", "enforce", "shadow", "off"][..]));
        part.prop_map(move |(kind, priority, mode)| {
            let kind = if of_stream { format!("stream: {{ {kind} }}") } else { kind.to_owned() };
            format!("priority: {priority}, mode: {mode}, {kind}")
        })
    };
    (vec(one(), 0..4), vec(one(), 0..3), vec(any::<bool>(), 4), vec(0u8..6, 4)).prop_map(
        move |(before, added, _, edits)| {
            let listed = |policies: &[(String, String)]| {
                let policies: Vec<String> =
                    policies.iter().map(|(id, policy)| format!("{{ id: {id}, {policy} }}")).collect();
                format!("policies: [ {} ]", policies.join(", "))
            };
            let named: Vec<(String, String)> =
                before.into_iter().enumerate().map(|(id, policy)| (format!("p{id}"), policy)).collect();
            let mut spare = added.iter();
            let mut after = Vec::new();
            for ((id, policy), edit) in named.iter().zip(edits) {
                match edit {
                    0 => {}
                    1 => after.extend(spare.next().map(|policy| (id.clone(), policy.clone()))),
                    _ => after.push((id.clone(), policy.clone())),
                }
            }
            after.extend(spare.enumerate().map(|(id, policy)| (format!("new{id}"), policy.clone())));
            (listed(&named), listed(&after))
        },
    )
}

fn texts() -> impl Strategy<Value = String> {
    let piece = select(
        &[
            "078-05-1120",
            "0#78-05-1120",
            "078-05-11#20",
            "ssn 078051120",
            "ana@example.com",
            "a#na@example.com",
            "ana@exa#mple.com",
            "4111 1111 1111 1111",
            "4111#1111#1111#1111",
            "CASE-1234",
            "CA#SE-1234",
            "CASE/1234",
            "ssn",
            "#",
            "-",
            "case",
            "the",
            "\n",
        ][..],
    );
    vec((piece, select(&[" ", " ", "", "\n"][..])), 1..8)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, space)| format!("{piece}{space}")).collect())
}

/// Only letters and digits: a secret is readable even with other characters between its parts.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The secrets that a reader of this text learns.
fn revealed_secrets(text: &str) -> Vec<&'static str> {
    SECRETS.into_iter().filter(|secret| plain(text).contains(&plain(secret))).collect()
}

fn compile(rules: &str) -> CompiledPolicies {
    let built = policy::build_texts([("rules.yaml", rules)]);
    built.policies.unwrap_or_else(|| panic!("{rules}: {:?}", built.diagnostics))
}

fn stream_output(rules: &str, text: &str, reasoning: bool) -> String {
    let layers: Layers = [Arc::new(compile(rules))].into_iter().collect();
    let (tools, keys) = (ToolSet::default(), crate::fixtures::keys());
    let kernel = Kernel {
        layers: &layers,
        tools: &tools,
        clock: &SystemClock,
        keys: &keys,
        listener: None,
        task: &callgate::call::Task::NONE,
        round: None,
    };
    let mut filter = kernel.stream_filter(&Value::Null, &SessionState::default());
    let delta = text.to_owned();
    let chunk = if reasoning {
        Chunk::Reasoning { id: "a".into(), delta }
    } else {
        Chunk::Text { id: "a".into(), delta }
    };
    let mut passed = filter.push(chunk);
    passed.extend(filter.finish());
    let shown = passed.into_iter().map(|chunk| match chunk {
        Chunk::Text { delta, .. } | Chunk::Reasoning { delta, .. } => delta,
        other => panic!("{other:?}"),
    });
    shown.collect()
}

/// A tool that returns its argument.
struct EchoTool;

impl ToolExecutor for EchoTool {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(json!({ "text": call.input["text"] }).into())
    }
}

/// What a reader of the results of two calls sees, and whether the second one reached its tool.
fn call_twice(rules: &str, text: &str) -> (String, bool) {
    let engine = Engine::new(Arc::new(compile(rules)));
    let mut session = engine.session();
    let mut seen = String::new();
    let mut ran = false;
    for id in ["c1", "c2"] {
        let call = ToolCall::new(id, "say", json!({ "text": text }));
        let outcome = block_on(session.execute(call, &EchoTool));
        seen.push_str(&outcome.output.clone().unwrap_or_default().to_string());
        seen.push_str(&outcome.input.to_string());
        seen.push('\n');
        ran = outcome.outcome == callgate::OutcomeKind::Executed;
    }
    (seen, ran)
}

fn is_widening(before: &str, after: &str) -> bool {
    !find_widenings(&compile(before), &compile(after)).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stream_change_that_is_not_a_widening_reveals_no_more((before, after) in pairs(&STREAMS, true), texts in vec(texts(), 4)) {
        if is_widening(&before, &after) {
            return Ok(());
        }
        for text in &texts {
            for reasoning in [false, true] {
                let (was, is) = (stream_output(&before, text, reasoning), stream_output(&after, text, reasoning));
                let known = revealed_secrets(&was);
                prop_assert!(
                    revealed_secrets(&is).iter().all(|secret| known.contains(secret)),
                    "{text:?}: {was:?} became {is:?}\n{before}\n{after}"
                );
            }
        }
    }

    #[test]
    fn result_change_that_is_not_a_widening_reveals_and_allows_no_more(
        (before, after) in pairs(&RESULTS, false),
        texts in vec(texts(), 2),
    ) {
        if is_widening(&before, &after) {
            return Ok(());
        }
        for text in &texts {
            let ((was, ran), (is, runs)) = (call_twice(&before, text), call_twice(&after, text));
            let known = revealed_secrets(&was);
            prop_assert!(
                revealed_secrets(&is).iter().all(|secret| known.contains(secret)) && (ran || !runs),
                "{text:?}: {was:?} became {is:?}; the second call ran: {ran}, then {runs}\n{before}\n{after}"
            );
        }
    }
}

/// Variants of one policy from which edits are drawn: every pair `(before, after)` of a row is compared on calls.
const ROWS: [&[&str]; 7] = [
    &[
        "match: pay, deny: {}",
        "match: [pay, send], deny: {}",
        "match: '*', deny: {}",
        "match: { tool: pay, where: { path: $.input.amount, gt: 1 } }, deny: {}",
        "match: { tool: pay, where: { path: $.input.amount, gt: 2 } }, deny: {}",
        "match: { tool: pay, where: { path: $.input.amount, gte: 1 } }, deny: {}",
        "match: { tool: pay, where: { path: $.input.amount, gte: 2 } }, deny: {}",
        "match: { tool: pay, where: { path: $.input.amount, gte: 1, lt: 3 } }, deny: {}",
        "match: { tool: pay, where: { path: $.input.amount, gt: 0, lte: 3 } }, deny: {}",
        "match: { tool: pay, where: [ { path: $.input.amount, gte: 2 }, { path: $.input.to, in: [ana] } ] }, deny: {}",
        "match: { tool: pay, where: [ { path: $.input.amount, gte: 2 }, { path: $.input.to, in: [ana, eve] } ] }, deny: {}",
        "match: { tool: pay, where: { path: $.input.to, not_in: [ana, eve] } }, deny: {}",
        "match: { tool: pay, where: { path: $.input.to, not_in: [ana] } }, deny: { message: No. }",
        "match: { tool: pay, where: { path: $.input.to, in: [ana, 1] } }, deny: {}",
        "match: { tool: pay, where: { path: '$.input.tags[*]', each: none, lt: 2 } }, deny: {}",
        "match: { tool: pay, where: { path: '$.input.tags[*]', each: none, lt: 1 } }, deny: {}",
        "match: { tool: pay, where: { path: '$.input.tags[*]', each: every, lt: 2 } }, deny: {}",
        "match: { tool: pay, where: { path: '$.input.tags[*]', each: every, lt: 1 } }, deny: {}",
    ],
    &[
        "match: pay, allow: {}",
        "match: [pay, send], allow: {}",
        "match: { tool: pay, where: { path: $.input.amount, lt: 2 } }, allow: {}",
        "match: { tool: pay, where: { path: $.input.amount, lt: 1 } }, allow: {}",
        "match: { tool: pay, where: { path: $.input.amount, lte: 1 } }, allow: {}",
        "match: { tool: pay, where: { path: $.input.to, in: [ana, eve] } }, allow: {}",
        "match: { tool: pay, where: { path: $.input.to, in: [ana] } }, allow: {}",
        "match: pay, deny: {}",
        "match: pay, approval: {}",
        "match: [pay, send], approval: { quorum: 2 }",
    ],
    &[
        "match: pay, approval: {}",
        "match: '*', approval: {}",
        "match: pay, approval: { approvers: [ana] }",
        "match: pay, halt: {}",
        "match: { where: { path: $.context.role, eq: clerk } }, halt: {}",
    ],
    &[
        "match: pay, validate: { schema: { properties: { amount: { maximum: 2 } } } }",
        "match: '*', validate: { schema: { properties: { amount: { maximum: 2 } } } }",
        "match: pay, validate: { schema: { properties: { amount: { maximum: 1 } } } }",
    ],
    &[
        "match: pay, transform: { input: [ { path: $.input.amount, clamp: { max: 1 } } ] }",
        "match: '*', transform: { input: [ { path: $.input.amount, clamp: { max: 1 } } ] }",
        "match: pay, transform: { input: [ { path: $.input.amount, clamp: { max: 2 } } ] }",
    ],
    &["match: pay, respond: { output: 1 }", "match: '*', respond: { output: 1 }", "match: pay, deny: {}"],
    &[
        "match: pay, rate_limit: { limit: 1, per: run }",
        "match: pay, rate_limit: { limit: 2, per: run }",
        "match: '*', rate_limit: { limit: 1, per: run }",
    ],
];

fn calls() -> Vec<ToolCall> {
    let inputs = [
        json!({ "amount": 0, "to": "ana", "tags": [0] }),
        json!({ "amount": 1, "to": "eve", "tags": [1, 2] }),
        json!({ "amount": 2, "to": "bob", "tags": [] }),
        json!({ "amount": 3, "to": 1, "tags": ["x"] }),
        json!({ "amount": "3", "to": null, "tags": "x" }),
        json!({}),
    ];
    ["pay", "send"]
        .into_iter()
        .flat_map(|tool| inputs.iter().map(move |input| ToolCall::new("c1", tool, input.clone())))
        .map(|call| call.with_context(json!({ "role": "clerk" })))
        .collect()
}

/// The strictness of the outcomes of a call that is made twice in a session.
fn outcomes(rules: &str, call: &ToolCall) -> Vec<u8> {
    let engine = Engine::new(Arc::new(compile(rules)));
    let mut session = engine.session();
    let strictness = |outcome: &callgate::Outcome| match outcome.outcome {
        callgate::OutcomeKind::Executed => 0,
        callgate::OutcomeKind::Answered => 1,
        callgate::OutcomeKind::Suspended => 2,
        callgate::OutcomeKind::Halted => 4,
        _ => 3,
    };
    ["c1", "c2"]
        .into_iter()
        .map(|id| {
            let call = ToolCall { id: id.to_owned(), ..call.clone() };
            strictness(&block_on(session.execute(call, &EchoTool)))
        })
        .collect()
}

#[test]
fn no_policy_change_that_is_not_a_widening_makes_a_call_more_permissive() {
    let (mut free, mut kept) = (0, 0);
    for unmatched in ["allow", "deny", "approval"] {
        for row in ROWS {
            for (before, after) in row.iter().flat_map(|before| row.iter().map(move |after| (before, after)))
            {
                let rules = |policy: &str| {
                    format!(
                        "{{ defaults: {{ unmatched: {unmatched} }}, policies: [ {{ id: a, {policy} }} ] }}"
                    )
                };
                let (before, after) = (rules(before), rules(after));
                if before == after {
                    continue;
                }
                if is_widening(&before, &after) {
                    kept += 1;
                    continue;
                }
                free += 1;
                for call in calls() {
                    let (was, is) = (outcomes(&before, &call), outcomes(&after, &call));
                    assert!(
                        was.iter().zip(&is).all(|(was, is)| is >= was),
                        "{was:?} {is:?}\n{before}\n{after}\n{call:?}"
                    );
                }
            }
        }
    }
    assert!(free > 60 && kept > 200, "{free} free, {kept} held");
}
