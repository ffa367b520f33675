//! The JSON Schemas of rules files and test files: up to date, valid, and consistent with `callgate check`.

use std::fs;

use callgate::policy;
use serde_json::Value;

use super::TestDir;

fn schema_text(of: &str) -> String {
    TestDir::new(&[]).run(&["schema", of]).stdout
}

/// `UPDATE_GENERATED=1 cargo test` regenerates the files.
#[test]
fn schemas_in_the_repository_are_up_to_date() {
    for of in ["rules", "tests", "gateway", "identity", "notifications", "events"] {
        let path = crate::fixtures::root().join(format!("schemas/{of}.schema.json"));
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            fs::write(&path, schema_text(of)).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == schema_text(of),
            "schemas/{of}.schema.json is stale: run `UPDATE_GENERATED=1 cargo test`"
        );
    }
    assert_eq!(TestDir::new(&[]).run(&["schema"]).stdout, schema_text("rules"));
}

fn validator(of: &str) -> jsonschema::Validator {
    let schema = serde_json::from_str(&schema_text(of)).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    jsonschema::draft202012::new(&schema).unwrap()
}

fn read(yaml: &str) -> Value {
    let yaml: serde_yaml::Value = serde_yaml::from_str(yaml).unwrap();
    serde_json::to_value(yaml).unwrap()
}

const RULES: [&str; 10] = [
    "policies: []",
    include_str!("../../policies/starter/rules.yaml"),
    include_str!("../../policies/email-calendar/sending.yaml"),
    include_str!("../../policies/filesystem/access.yaml"),
    include_str!("../../policies/git/branches.yaml"),
    include_str!("../../policies/payments/names.yaml"),
    "let: { x: { every: { expr: input.a, min: 1, any: [ item > 1, { domain: example.com } ] } } }
policies: [{ id: a, match: { tool: t, where: { none: { path: '$.input.to[*]', as: one, not: { path: $one.b, eq: 1 } } } }, deny: {} }]",
    r#"
callgate: 1
defaults: { unmatched: allow, absent: no_match }
policies:
  - id: refunds-need-a-person
    description: Refunds above 100 are confirmed by a person.
    mode: enforce
    priority: 0
    match:
      tool: [createRefund, "refund.*", "/^admin/"]
      server: "*"
      where:
        - { path: $.input.amount, gt: 100 }
        - not: { path: "$.context.roles[*]", eq: finance-lead }
    approval: { message: "Refund {{ input.amount }} to {{ input.customer }}?", expires: 24h }
"#,
    r#"
policies:
  - { id: a, match: t, deny: { message: "Not outside {{ context.tenant }}", code: outside_tenant } }
  - { id: b, match: t, allow: {} }
  - { id: c, match: t, halt: { message: "Stop the run" } }
  - { id: d, match: t, validate: { schema: tool } }
  - { id: e, match: t, approval: { message: "…", expires: 24h, approvers: [finance-lead], quorum: 1, edits: [$.input.note],
                                   remember: { scope: arguments, for: 8h } } }
  - id: f
    transform:
      input: [ { path: $.input.subject, trim: true }, { path: $.input.limit, default: 10 }, { path: $.input.cc, remove: true },
               { path: $.input.limit, clamp: { max: 100 } }, { path: $.input.to, lowercase: true }, { path: $.input.q, rename: query },
               { path: $.input.body, replace: { pattern: "\\s+", with: " " } },
               { path: $.input.sig, template: "by {{ context.principal }}" }, { path: $.input.region, set: eu } ]
      output: [ { path: $.output.debug, remove: true } ]
  - { id: g, redact: { in: [input, output], detect: [email, payment_card], patterns: ["CASE-\\d+"], with: mask } }
  - { id: h, redact: { detect: email, with: { keep_last: 4 } } }
  - { id: i, match: t, respond: { output: { ok: true } } }
  - { id: j, recover: { on: ["/invalid/"], message: "Error: {{ error }}. {{ suggestion }}", attempts: 2 } }
  - { id: k, label: { add: [untrusted-content] } }
  - { id: l, fact: { name: order, key: $.input.order_id, value: $.output } }
  - { id: m, audit: { fields: [$.input.amount] } }
"#,
    r#"
policies:
  - id: tests
    match:
      where:
        - any: [ { path: $.input.a, in: [1, 2] }, { path: $.input.f, inside: /srv }, { path: $.input.u, host: "*.example.com" } ]
        - { path: $.input.to, domain: [example.com] }
        - { path: "$.input.items[*]", each: every, length: { lte: 10 } }
        - { path: $.input.x, exists: true, type: [string, number] }
        - expr: input.a > 1
    deny: {}
"#,
];

#[test]
fn schema_and_check_accept_the_same_rules() {
    let validator = validator("rules");
    for rules in RULES {
        let errors: Vec<_> = validator.iter_errors(&read(rules)).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{rules}");
        let built = policy::build_texts([("rules.yaml", rules)]);
        let text = callgate::diagnostic::render::text(&built.diagnostics, &built.sources, false);
        assert!(built.policies.is_some(), "{text}");
    }
}

#[test]
fn schema_and_check_reject_the_same_rules() {
    let validator = validator("rules");
    for rules in [
        "{}",
        "polices: []",
        "policies: {}",
        "{ policies: [], defaults: { unmatched: block } }",
        "policies: [{ match: t, deny: {} }]",
        "policies: [{ id: a, match: t }]",
        "policies: [{ id: a, match: t, denny: {} }]",
        "policies: [{ id: a, match: t, deny: {}, allow: {} }]",
        "policies: [{ id: a, deny: {} }]",
        "policies: [{ id: a, approval: {} }]",
        "policies: [{ id: a, match: t, mode: of, deny: {} }]",
        "policies: [{ id: a, match: t, deny: { mesage: x } }]",
        "policies: [{ id: a, match: { tools: t }, deny: {} }]",
        "policies: [{ id: a, match: { where: [ { eq: 1 } ] }, deny: {} }]",
        "policies: [{ id: a, match: { where: [ { path: $.input.a, eq: 1, not: { path: $.input.b, eq: 1 } } ] }, deny: {} }]",
        "policies: [{ id: a, match: { where: [ { path: $.input.a, type: text } ] }, deny: {} }]",
        "policies: [{ id: a, redact: { detect: [email], with: { keep_last: 0 } } }]",
    ] {
        assert!(!validator.is_valid(&read(rules)), "the schema accepts {rules}");
        assert!(policy::build_texts([("rules.yaml", rules)]).policies.is_none(), "the check accepts {rules}");
    }
}

#[test]
fn schema_and_check_accept_the_same_tests() {
    let validator = validator("tests");
    for tests in [
        include_str!("../../policies/starter/rules.test.yaml"),
        include_str!("../../policies/retail/rules.test.yaml"),
        include_str!("../../policies/pii/redact.test.yaml"),
        include_str!("../../policies/git/rules.test.yaml"),
        include_str!("../../policies/payments/tools.test.yaml"),
        r#"
callgate: 1
tools: [ { name: t, description: d, input_schema: { type: object }, annotations: { readOnlyHint: true }, server: s } ]
context: { principal: ana }
clock: 2026-01-01T12:00:00Z
stubs: [ { match: { tool: "get_*", server: s, where: { path: $.input.a, eq: 1 } }, returns: null } ]
cases:
  - name: everything
    context: { roles: [lead] }
    clock: 2026-01-01T14:00:00+02:00
    session: { labels: [l], facts: { f: 1 }, calls: { t: 2 }, iteration: 3 }
    stubs: [ { match: t, answers: [ { fails: again }, { returns: 1, takes: 2s } ] } ]
    steps:
      - { tool: t, id: a, server: s, input: { a: 1 }, context: { x: 1 }, fails: { message: m, kind: timeout }, takes: 1s, expect: failed }
      - { wait: 61s }
      - { round: [ { tool: t, expect: executed }, { tool: t } ] }
    call: { tool: t }
    expect:
      outcome: executed
      policy: p
      code: c
      message: { contains: a, matches: b }
      question: q
      input: {}
      output: null
      error: e
      where: { path: $.output, eq: 1 }
      policies: [p]
      not_policies: p
      runs: 1
    rows: [ { name: n, tool: u, input: { a: 2 }, returns: 1 }, { expect: denied } ]
"#,
    ] {
        let errors: Vec<_> = validator.iter_errors(&read(tests)).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{tests}");
        let beside = |name: &str| crate::fixtures::root().join("policies/retail").join(name);
        let loaded =
            callgate_policy_tests::load_texts([(beside("a.test.yaml").display().to_string(), tests)]);
        let text = callgate::diagnostic::render::text(&loaded.diagnostics, &loaded.sources, false);
        assert!(loaded.diagnostics.is_empty(), "{text}");
    }
}

#[test]
fn schema_and_check_reject_the_same_tests() {
    let validator = validator("tests");
    for tests in [
        "{}",
        "cases: []",
        "cases: [ { call: { tool: t }, expect: denied } ]",
        "cases: [ { name: a, cal: { tool: t }, expect: denied } ]",
        "cases: [ { name: a, call: { input: {} }, expect: denied } ]",
        "cases: [ { name: a, call: { tool: t, expect: denied } } ]",
        "cases: [ { name: a, call: { tool: t }, expect: deny } ]",
        "cases: [ { name: a, call: { tool: t }, expect: { outcome: blocked } } ]",
        "cases: [ { name: a, call: { tool: t }, expect: { runs: -1 } } ]",
        "cases: [ { name: a, call: { tool: t }, expect: { where: { eq: 1 } } } ]",
        "cases: [ { name: a, call: { tool: t }, rows: [], expect: denied } ]",
        "cases: [ { name: a, steps: [ { tool: t, wait: 1s, expect: denied } ] } ]",
        "cases: [ { name: a, steps: [ { input: {}, expect: denied } ] } ]",
        "cases: [ { name: a, steps: [ { round: [ { expect: denied } ] } ] } ]",
        "{ stubs: [ { returns: 1 } ], cases: [ { name: a, call: { tool: t }, expect: denied } ] }",
        "{ tools: 7, cases: [ { name: a, call: { tool: t }, expect: denied } ] }",
        "{ clock: 7, cases: [ { name: a, call: { tool: t }, expect: denied } ] }",
    ] {
        assert!(!validator.is_valid(&read(tests)), "the schema accepts {tests}");
        assert!(
            callgate_policy_tests::load_texts([("a.test.yaml", tests)]).diagnostics.has_errors(),
            "the check accepts {tests}"
        );
    }
}
