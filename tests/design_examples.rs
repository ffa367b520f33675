//! The policy language as documented: every example loads without diagnostics.

use callgate::diagnostic::render;
use callgate::policy;

fn assert_loads(rules: &str) {
    let built = policy::build_texts([("rules.yaml", rules)]);
    let found = render::text(&built.diagnostics, &built.sources, false);
    assert!(built.diagnostics.is_empty() && built.policies.is_some(), "{rules}\n{found}");
}

/// A rules file with one policy with this `match` and kind.
fn policy(matcher: &str, kind: &str) -> String {
    format!("policies:\n  - id: p\n    match: {matcher}\n    {kind}\n")
}

#[test]
fn complete_rules_file_loads() {
    assert_loads(
        r#"callgate: 1                        # format version
defaults:                          # one per bundle: files that disagree are an error
  unmatched: allow                 # allow | deny | approval, for calls that no `allow`, `approval` or `respond` policy matches
  absent: no_match                 # no_match | match, for tests on absent fields in restricting policies
policies:
  - id: refunds-need-a-person      # unique in the bundle
    description: Refunds above 100 are confirmed by a person.
    mode: enforce                  # enforce | shadow | off
    priority: 0
    match:
      tool: [createRefund, "refund.*", "/^admin/"]    # exact, glob with *, /regex/; a list is "any of"; omit: every tool
      server: "*"                                     # MCP: the server's name; `tool:` is the upstream tool's own name
      where:                                          # all must hold
        - { path: $.input.amount, gt: 100 }
        - not: { path: "$.context.roles[*]", eq: finance-lead }
    approval:
      message: "Refund {{ input.amount }} to {{ input.customer }}?"
      expires: 24h
"#,
    );
}

#[test]
fn example_of_every_kind_loads() {
    for kind in [
        r#"deny:       { message: "Not outside {{ context.tenant }}", code: outside_tenant }"#,
        "allow:      {}",
        r#"halt:       { message: "Stop the run" }"#,
        "validate:   { schema: tool }                       # the tool's own schema, or inline, or { file: x.json }",
        r#"approval:   { message: "…", expires: 24h, approvers: [finance-lead], quorum: 1, edits: [$.input.note], remember: { scope: arguments, for: 8h } }"#,
        r#"transform:
      input:    [ { path: $.input.subject, trim: true }, { path: $.input.limit, default: 10 }, { path: $.input.cc, remove: true },
                  { path: $.input.limit, clamp: { max: 100 } }, { path: $.input.to, lowercase: true }, { path: $.input.q, rename: query },
                  { path: $.input.body, replace: { pattern: "\\s+", with: " " } }, { path: $.input.sig, template: "by {{ context.principal }}" },
                  { path: $.input.region, set: eu } ]
      output:   [ { path: $.output.debug, remove: true } ]"#,
        r#"redact:     { in: [input, output], detect: [email, payment_card], patterns: ["CASE-\\d+"], with: mask }"#,
        r#"redact:     { in: [input, output], detect: [email, payment_card], with: { keep_last: 4 } }"#,
        "respond:    { output: { ok: true } }",
        r#"recover:    { on: ["/invalid/"], message: "Error: {{ error }}. {{ suggestion }}", attempts: 2 }"#,
        "label:      { add: [untrusted-content] }",
        "fact:       { name: order, key: $.input.order_id, value: $.output }",
        "audit:      { fields: [$.input.amount] }",
    ] {
        assert_loads(&policy("\"*\"", kind));
    }
}

#[test]
fn examples_of_stream_policies_load() {
    let matcher = "{ where: { path: \"$.session.labels[*]\", eq: untrusted-content } }";
    for kind in [
        r#"stream:     { redact: [us_ssn], drop: ["/profanity/"] }"#,
        r#"stream:     { redact: [us_ssn, email], patterns: ["CASE-\\d+"], with: { keep_last: 4 }, in: [text, reasoning] }"#,
        r#"stream:     { replace: [ { pattern: "(\\w+)@corp", with: "$1" } ], drop: { patterns: [darn, "/d[ea]ng/"], unit: chunk } }"#,
    ] {
        assert_loads(&policy(matcher, kind));
        assert_loads(&policy("{ where: { expr: 'context.tenant == \"a\"' } }", kind));
        assert_loads(&format!("policies: [ {{ id: p, {kind} }} ]"));
    }
}

#[test]
fn every_form_of_match_loads() {
    for matcher in [
        "sendEmail",
        "\"*\"",
        "[createRefund, \"refund.*\", \"/^admin/\"]",
        "{ tool: sendEmail }",
        "{ tool: [sendEmail, sendSms], server: \"mail-*\" }",
        "{ server: mail }",
        "{ where: { path: $.input.amount, gt: 100 } }",
    ] {
        assert_loads(&policy(matcher, "deny: {}"));
    }
}

#[test]
fn every_condition_loads() {
    for test in [
        "{ path: $.input.amount, eq: 100 }",
        "{ path: $.input.amount, ne: null }",
        "{ path: $.input.amount, gt: 100 }",
        "{ path: $.input.amount, gte: 100, lt: 200.5 }",
        "{ path: $.input.amount, lte: -1 }",
        "{ path: $.input.region, in: [eu, us] }",
        "{ path: $.input.region, not_in: [eu, 1, null] }",
        "{ path: $.input.tags, contains: urgent }",
        "{ path: $.input.name, starts_with: a }",
        "{ path: $.input.name, ends_with: [a, b] }",
        "{ path: $.input.name, matches: \"^[a-z]+$\" }",
        "{ path: $.input.name, exists: false }",
        "{ path: $.input.name, type: string }",
        "{ path: $.input.name, type: [string, \"null\"] }",
        "{ path: $.input.name, length: 3 }",
        "{ path: $.input.name, length: { gt: 3, lte: 10 } }",
        "{ path: $.input.file, inside: /srv/data }",
        "{ path: $.input.file, inside: [/srv/data, /tmp], base: /srv }",
        "{ path: $.input.url, host: [example.com, \"*.example.com\"] }",
        "{ path: $.input.to, domain: example.com }",
        "{ path: $.tool, eq: a }",
        "{ path: $.server, eq: a }",
        "{ path: $.id, eq: a }",
        "{ path: $.context.principal, eq: ana }",
        "{ path: $.session.labels, contains: untrusted-content }",
        "{ path: $.session.facts.order, exists: true }",
        "{ path: $.session.calls.sendEmail, gte: 3 }",
        "{ path: $.annotations.destructiveHint, eq: true }",
        "{ path: $.input.tenant, ne: { path: $.context.tenant } }",
        "{ path: $.input.region, not_in: { path: \"$.context.regions[*]\" } }",
        "{ path: $.input.file, inside: { path: $.context.home } }",
        "{ path: \"$.input.to[*]\", each: any, ends_with: \"@example.com\" }",
        "{ path: \"$.input.to[*]\", each: every, ends_with: \"@example.com\" }",
        "{ path: \"$.input.to[*]\", each: none, ends_with: \"@example.com\" }",
        "{ path: \"$.input.to[*]\", ends_with: \"@example.com\" }",
        "{ path: $.input.amount, gt: 100, absent: match }",
        "{ path: $.input.amount, gt: 100, absent: no_match }",
        "{ all: [{ path: $.id, eq: a }, { path: $.id, eq: b }] }",
        "{ any: [{ path: $.id, eq: a }, { not: { path: $.id, eq: b } }] }",
        "{ not: { any: [{ all: [{ path: $.id, eq: a }] }] } }",
        "{ expr: \"input.amount > 100 && tool != \\\"ping\\\"\" }",
        "{ expr: \"session.facts.order[input.order_id].status == \\\"pending\\\"\" }",
    ] {
        assert_loads(&policy(&format!("{{ where: [{test}] }}"), "deny: {}"));
    }
}

#[test]
fn file_without_policies_loads() {
    assert_loads("policies: []\n");
    assert_loads("callgate: 1\ndefaults: { unmatched: deny, absent: match }\npolicies: []\n");
}

#[test]
fn settle_policies_can_read_the_output() {
    assert_loads(&policy("{ where: [{ path: $.output.status, eq: failed }] }", "label: { add: [seen] }"));
    assert_loads(&policy("{ where: [{ path: $.error, exists: true }] }", "audit: {}"));
}
