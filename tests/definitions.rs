//! Names that a bundle defines: which definition counts, data files, layers, and what their changes mean for a reload.

use std::fs;
use std::path::PathBuf;

use callgate::json::{Value, json};
use callgate::policy::{self, LoadedBundle, find_widenings};
use callgate::{Engine, load_layer, load_text};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::fixtures::{Tool, call, kind_and_code, noon, run};

fn messages(built: &LoadedBundle) -> Vec<String> {
    built.diagnostics.iter().map(|problem| format!("{} {}", problem.code.id, problem.message)).collect()
}

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> (TempDir, Vec<PathBuf>) {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let paths = vec![directory.path().to_owned()];
    (directory, paths)
}

/// The code of the outcome of one call.
fn code(built: LoadedBundle, tool: &str, input: Value) -> String {
    let problems = messages(&built);
    let policies = built.policies.unwrap_or_else(|| panic!("{problems:?}"));
    let clock = noon();
    let engine = Engine::builder(policies.into()).clock(clock.clone()).build();
    let tool_double = Tool::counting(&clock);
    let outcomes = run(&clock, &mut engine.session(), &tool_double, &[call(tool, input)]);
    kind_and_code(&outcomes[0]).1.to_owned()
}

const SHIPPED: &str = "
defaults:
  groups: { paying: [pay] }
  data: { never_above: 50 }
  let: { amount: input.amount }
policies:
  - { id: never, match: { tool: \"@paying\", where: amount > data.never_above }, deny: { code: never } }
";

#[test]
fn another_file_replaces_a_default_whole() {
    let adapted =
        "groups: { paying: [\"send_*\"] }\ndata: { never_above: 5 }\nlet: { amount: input.total }\n";
    let built = policy::build_texts([("a.yaml", SHIPPED), ("b.yaml", adapted)]);
    assert_eq!(code(built, "send_money", json!({"total": 6})), "never");
    let built = policy::build_texts([("a.yaml", SHIPPED), ("b.yaml", adapted)]);
    assert_eq!(code(built, "pay", json!({"amount": 60})), "unmatched");
    let built = policy::build_texts([("a.yaml", SHIPPED)]);
    assert_eq!(code(built, "pay", json!({"amount": 60})), "never");
    // The order of the files makes no difference.
    let built = policy::build_texts([("0.yaml", adapted), ("a.yaml", SHIPPED)]);
    assert_eq!(code(built, "send_money", json!({"total": 6})), "never");
}

#[test]
fn functions_of_several_files_use_each_other() {
    let fee = "functions: \"fn fee(x) { x * rate() }\"\npolicies:\n  - { id: large, match: { tool: pay, where: fee(input.amount) > 5 }, deny: { code: large } }\n";
    let rate = "functions: \"// half\\nfn rate() { 0.5 }\"\n";
    for files in [[("a.yaml", fee), ("b.yaml", rate)], [("a.yaml", rate), ("b.yaml", fee)]] {
        assert_eq!(code(policy::build_texts(files), "pay", json!({"amount": 12})), "large");
        assert_eq!(code(policy::build_texts(files), "pay", json!({"amount": 8})), "unmatched");
    }
}

#[test]
fn errors_in_functions_are_reported_where_they_stand() {
    let fine = "functions: \"fn fee(x) { x * 2 }\"\npolicies: []\n";
    for (broken, code) in [
        ("functions: |\n  fn half(x) { x /\n", "CG305"),
        ("functions: |\n  fn half(x) { y }\n", "CG305"),
        ("functions: |\n  fn half(x) { fee(x, 2) }\n", "CG305"),
        ("functions: |\n  fn half(x) { x }\n  fn fee(x) { x }\n", "CG405"),
    ] {
        let built = policy::build_texts([("a.yaml", fine), ("b.yaml", broken)]);
        let problem = built.diagnostics.iter().next().unwrap();
        let location = built.sources.locate(problem.span.unwrap()).unwrap();
        assert_eq!((problem.code.id, location.file.as_str()), (code, "b.yaml"), "{}", problem.message);
        assert!(location.line >= 2, "{location:?}");
    }
}

#[test]
fn two_definitions_of_a_name_are_an_error() {
    for (a, b) in [
        ("data: { x: 1 }\n", "data: { x: 2 }\n"),
        ("data: { x: 1 }\n", "data: { x: 1 }\n"),
        ("defaults: { data: { x: 1 } }\n", "defaults: { data: { x: 2 } }\npolicies: []\n"),
        ("groups: { x: [a] }\n", "groups: { x: [b] }\n"),
        ("let: { x: input.a }\n", "let: { x: input.b }\n"),
        ("functions: \"fn a() { 1 }\"\n", "functions: \"fn a() { 1 }\"\n"),
        ("functions: \"fn a() { 1 }\"\n", "functions: \"fn b() { 1 } fn a(x) { x }\"\n"),
    ] {
        let built = policy::build_texts([("a.yaml", format!("{a}policies: []\n")), ("b.yaml", b.to_owned())]);
        let found = messages(&built);
        assert!(found.iter().any(|found| found.starts_with("CG405")), "{a}{b}: {found:?}");
    }
    let same = "defaults: { data: { x: 1 } }\npolicies: []\n";
    assert_eq!(messages(&policy::build_texts([("a.yaml", same), ("b.yaml", same)])), Vec::<String>::new());
}

#[test]
fn constants_are_read_from_files() {
    let (_directory, paths) = directory(&[
        (
            "rules.yaml",
            "data:\n  blocked: { file: blocked.csv, column: iban }\n  rates: { file: rates.csv, key: code, types: { rate: number, open: boolean } }\n  \
             names: { file: names.json }\npolicies:\n  \
             - { id: blocked, match: { tool: pay, where: input.iban in data.blocked }, deny: { code: blocked } }\n  \
             - { id: rate, match: { tool: rate, where: 'data.rates[input.code].rate > 0.1 && data.rates[input.code].open' }, deny: { code: rate } }\n  \
             - { id: name, match: { tool: name, where: { expr: input.name, in: { expr: data.names.list } } }, deny: { code: name } }\n",
        ),
        ("blocked.csv", "iban,why\nDE01,fraud\n\"DE,02\",\"a \"\"b\"\"\"\n"),
        ("rates.csv", "code,rate,open\nA,0.1,true\nB,0.10000000000000000001,true\nC,5,false\n"),
        ("names.json", "{\"list\": [\"ana\", \"bob\"]}"),
        // Beside the rules, and not rules.
        ("limits.yaml", "pay: 5\n"),
        (
            "more.yaml",
            "data:\n  limits: { file: limits.yaml }\npolicies:\n  - { id: limit, match: { tool: limit, where: input.n > data.limits.pay }, deny: { code: limit } }\n",
        ),
    ]);
    for (tool, input, wanted) in [
        ("pay", json!({"iban": "DE01"}), "blocked"),
        ("pay", json!({"iban": "DE,02"}), "blocked"),
        ("pay", json!({"iban": "DE03"}), "unmatched"),
        ("rate", json!({"code": "A"}), "unmatched"),
        ("rate", json!({"code": "B"}), "rate"),
        ("rate", json!({"code": "C"}), "unmatched"),
        ("rate", json!({"code": "D"}), "undecided"),
        ("name", json!({"name": "bob"}), "name"),
        ("name", json!({"name": "eve"}), "unmatched"),
        ("limit", json!({"n": 6}), "limit"),
        ("limit", json!({"n": 5}), "unmatched"),
    ] {
        assert_eq!(code(policy::build(&paths), tool, input.clone()), wanted, "{tool} {input}");
    }
}

#[test]
fn invalid_data_files_are_errors_with_the_reason() {
    let rules = |options: &str| format!("data:\n  x: {{ {options} }}\npolicies: []\n");
    for (options, file, text, problem) in [
        ("file: x.csv", "x.csv", "a,b\n1,2\n", "needs either `column`"),
        ("file: x.csv, column: c", "x.csv", "a,b\n1,2\n", "no column `c`: it has a, b"),
        ("file: x.csv, column: a", "x.csv", "a,b\n1\n", "record"),
        ("file: x.csv, column: a", "x.csv", "a,a\n1,2\n", "the column `a` twice"),
        ("file: x.csv, key: a", "x.csv", "a,b\n1,2\n1,3\n", "two rows have the key `1`"),
        (
            "file: x.csv, key: a, types: { b: number }",
            "x.csv",
            "a,b\n1,2\n2,x\n",
            "line 3: `x` is not a number",
        ),
        ("file: x.csv, key: a, types: { b: date }", "x.csv", "a,b\n1,2\n", "one of string, number, boolean"),
        ("file: x.json", "x.json", "{\"a\": }", "invalid JSON in `x.json`"),
        ("file: x.json, column: a", "x.json", "[]", "are for CSV files"),
        ("file: y.json", "x.json", "[]", "y.json"),
    ] {
        let (_directory, paths) = directory(&[("rules.yaml", &rules(options)), (file, text)]);
        let built = policy::build(&paths);
        let found = messages(&built);
        assert!(found.len() == 1 && found[0].contains(problem), "{options}: {found:?}");
        assert!(built.policies.is_none(), "{options}");
    }
}

#[test]
fn a_layer_sees_the_names_of_the_bundle_and_redefines_none() {
    let bundle = load_text(&format!("functions: \"fn twice(x) {{ x * 2 }}\"\n{SHIPPED}")).unwrap();
    let layer = "let: { twofold: twice(amount) }\npolicies:\n  - { id: layer, match: { tool: \"@paying\", where: twofold > data.never_above }, deny: { code: layer } }\n";
    let clock = noon();
    let layer = load_layer(layer, &bundle).unwrap();
    let revision = format!("{}+{}", bundle.revision(), layer.revision());
    let engine = Engine::builder(bundle.clone()).clock(clock.clone()).build();
    let tool = Tool::counting(&clock);
    let calls = [call("pay", json!({"amount": 26})), call("pay", json!({"amount": 25}))];
    let outcomes = run(&clock, &mut engine.session().with_layer(layer), &tool, &calls);
    assert_eq!(kind_and_code(&outcomes[0]), ("denied", "layer"));
    assert_eq!(kind_and_code(&outcomes[1]), ("executed", "unmatched"));
    assert_eq!(outcomes[1].revision, revision);
    for redefinition in [
        "data: { never_above: 5000 }",
        "groups: { paying: [] }",
        "let: { amount: \"0\" }",
        "functions: \"fn other() { 1 }\"",
    ] {
        let error = load_layer(redefinition, &bundle).unwrap_err().to_string();
        assert!(error.contains("CG405"), "{redefinition}: {error}");
    }
}

/// A changed definition changes what policies that name it mean, and no others.
#[test]
fn a_changed_definition_counts_as_a_change_of_the_policies_that_reach_it() {
    let rules = |limit: &str, group: &str, text: &str| {
        let rules = format!(
            "groups: {{ paying: {group} }}\ndata: {{ limit: {limit} }}\nfunctions: \"fn fee(x) {{ {text} }}\"\nlet:\n  total: input.amount + fee(input.amount)\n  \
             large: total > data.limit\npolicies:\n  - {{ id: large, match: {{ tool: pay, where: large }}, deny: {{}} }}\n  \
             - {{ id: group, match: \"@paying\", approval: {{}} }}\n  - {{ id: other, match: x, deny: {{}} }}\n"
        );
        load_text(&rules).unwrap()
    };
    let before = rules("100", "[pay]", "x");
    let digests = |policies: &callgate::CompiledPolicies| -> Vec<(String, String)> {
        policies
            .policies()
            .iter()
            .map(|policy| (policy.id.clone(), policy.behaviour_digest.to_string()))
            .collect()
    };
    for (after, changed) in [
        (rules("100", "[pay]", "x"), vec![]),
        (rules("101", "[pay]", "x"), vec!["large"]),
        (rules("100", "[pay]", "x * 1"), vec!["large"]),
        (rules("100", "[pay, send]", "x"), vec!["group"]),
    ] {
        let (old, new) = (digests(&before), digests(&after));
        let found: Vec<&str> =
            old.iter().zip(&new).filter(|(a, b)| a.1 != b.1).map(|(a, _)| a.0.as_str()).collect();
        assert_eq!(found, changed);
        assert_eq!(before.revision() == after.revision(), changed.is_empty());
        let widened: Vec<String> =
            find_widenings(&before, &after).into_iter().filter_map(|widening| widening.policy).collect();
        assert_eq!(widened, changed, "a change that may allow more is reported");
    }
}

/// Named values that use each other in the longest row, each nested as deep as an expression can be, fit the stack of a thread.
#[test]
fn the_deepest_named_values_are_evaluated_in_a_small_stack() {
    let nest = |inner: &str| format!("{}{inner}{}", "(".repeat(20), " + 1)".repeat(20));
    let mut rules = String::from("let:\n  l0: input.n\n");
    for level in 1..64 {
        rules.push_str(&format!("  l{level}: {}\n", nest(&format!("l{}", level - 1))));
    }
    rules
        .push_str("policies:\n  - { id: p, match: { tool: t, where: l63 == 1261 }, deny: { code: deep } }\n");
    let built = policy::build_texts([("rules.yaml", rules)]);
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let found = thread.spawn(move || code(built, "t", json!({"n": 1}))).unwrap().join().unwrap();
    assert_eq!(found, "deep");
}

/// Rules with named values, and the same rules with each name replaced by its definition.
const NAMED: &str = "
groups: { paying: [pay, \"send_*\"] }
data: { factor: 2 }
functions: \"fn twice(x) { x * data.factor }\"
let:
  total: input.a + twice(input.b)
  large: total > input.c
  has_a: { path: $.input.a, exists: true }
  equal: { path: $.input.a, eq: { expr: input.b } }
  both: [has_a, large]
";
const INLINED: &str = "
policies:
  - { id: deny, match: { tool: [pay, \"send_*\"], where: input.a + input.b * 2 > input.c }, deny: { code: large } }
  - { id: test, match: { tool: [pay, \"send_*\"], where: { not: { path: $.input.a, eq: { path: $.input.b } } } }, deny: { code: test } }
  - { id: both, match: { tool: ask, where: { all: [{ path: $.input.a, exists: true }, { expr: input.a + input.b * 2 > input.c }] } }, approval: {} }
  - { id: allow, match: { tool: get, where: input.a + input.b * 2 <= (input.c ?? 3) }, allow: {} }
";
const WITH_NAMES: &str = "
policies:
  - { id: deny, match: { tool: \"@paying\", where: large }, deny: { code: large } }
  - { id: test, match: { tool: \"@paying\", where: { not: equal } }, deny: { code: test } }
  - { id: both, match: { tool: ask, where: both }, approval: {} }
  - { id: allow, match: { tool: get, where: { expr: total, lte: { expr: input.c ?? 3 } } }, allow: {} }
";

fn odd_value() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        4 => (-3i64..9).prop_map(|number| Some(json!(number))),
        1 => Just(None),
        1 => prop_oneof![Just(json!(null)), Just(json!("4")), Just(json!(true)), Just(json!([1])), Just(json!({}))]
            .prop_map(Some),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// A name stands for its definition, whatever the call: outcomes are the same, and so are the policies that take part.
    #[test]
    fn names_stand_for_their_definitions(
        values in proptest::array::uniform3(odd_value()),
        tool in prop_oneof![Just("pay"), Just("send_x"), Just("ask"), Just("get"), Just("other")],
    ) {
        let members = ["a", "b", "c"].into_iter().zip(values);
        let input: Value = members.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let outcome = |rules: &str| {
            let clock = noon();
            let rules = format!("defaults: {{ unmatched: deny }}\n{rules}");
            let engine = Engine::builder(load_text(&rules).unwrap()).clock(clock.clone()).build();
            let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &[call(tool, input.clone())]);
            let took_part: Vec<_> =
                outcomes[0].policies.iter().map(|policy| (policy.id.clone(), policy.undecided)).collect();
            (outcomes[0].outcome, outcomes[0].reason.code.clone(), took_part)
        };
        prop_assert_eq!(outcome(&format!("{NAMED}{WITH_NAMES}")), outcome(INLINED), "{} {}", tool, input);
    }
}

#[test]
fn a_rules_file_cannot_be_hidden_as_data() {
    let deny = "policies:\n  - { id: no, match: pay, deny: {} }\n";
    for hidden in [deny, "groups: { a: [x] }\n", "defaults: { unmatched: deny }\npolicies: []\n"] {
        let (_directory, paths) = directory(&[
            ("security.yaml", hidden),
            ("a.yaml", "data: { x: { file: security.yaml } }\npolicies: []\n"),
        ]);
        let built = policy::build(&paths);
        let found = messages(&built);
        assert!(
            found.iter().any(|found| found.contains("CG313 this file is a rules file")),
            "{hidden}: {found:?}"
        );
        assert!(built.policies.is_none());
    }
}

/// In place of a list, an agent could pass a string or an object, also through a function.
#[test]
fn a_function_looks_only_into_lists() {
    let rules = "functions: |\n  fn has_admin(roles) { \"admin\" in roles }\npolicies:\n  - { id: p, match: t, deny: { code: admin } }\n"
        .replace("match: t", "match: { tool: t, where: has_admin(input.roles) }");
    for (roles, wanted) in [
        (json!(["admin"]), "admin"),
        (json!(["clerk"]), "unmatched"),
        (json!({"0": "admin"}), "undecided"),
        (json!("clerk,admin"), "undecided"),
        (json!("clerk"), "undecided"),
    ] {
        let built = policy::build_texts([("rules.yaml", rules.clone())]);
        assert_eq!(code(built, "t", json!({"roles": roles})), wanted, "{roles}");
    }
}

/// Each name stands many times in the next one: without bounds, what is known of them grows exponentially.
#[test]
fn definitions_that_use_each_other_often_load_within_bounds() {
    let mut lets = String::from("let:\n  l0: input.a + session.facts.b\n  l1: l0 + l0\n");
    for level in 2..64 {
        lets.push_str(&format!("  l{level}: l{} + l{} + l{}\n", level - 1, level - 2, level - 1));
    }
    let built = policy::build_texts([(
        "rules.yaml",
        format!("{lets}policies:\n  - {{ id: p, match: {{ tool: t, where: l63 > 0 }}, deny: {{}} }}\n"),
    )]);
    assert_eq!(messages(&built), Vec::<String>::new());
    let mut groups = String::from("groups:\n  g0: [a, b]\n");
    for level in 1..60 {
        groups.push_str(&format!("  g{level}: [\"@g{0}\", \"@g{0}\"]\n", level - 1));
    }
    let built = policy::build_texts([("rules.yaml", format!("{groups}policies: []\n"))]);
    let found = messages(&built);
    assert!(found[0].contains("a group has at most 1000 patterns"), "{found:?}");
    let many: String = (0..1_001).map(|group| format!("  g{group}: [t]\n")).collect();
    let built = policy::build_texts([("rules.yaml", format!("groups:\n{many}policies: []\n"))]);
    assert!(messages(&built)[0].contains("at most 1000 groups"));
}

/// The script of a policy is a part of what the policy means, and so are the definitions that it reaches.
#[test]
fn the_digest_of_a_policy_covers_its_script_and_what_it_reaches() {
    let rules = |limit: u32, percent: u32, other: u32, script: &str| {
        format!(
            "data: {{ limit: {limit}, other: {other} }}\nfunctions: \"fn fee(x) {{ x * {percent} }}\"\nlet: {{ top: data.limit }}\n\
             policies: [{{ id: p, match: pay, deny: {{ script: \"{script}\" }} }}]\n"
        )
    };
    let digest = |text: String| {
        let policies = load_text(&text).unwrap();
        policies.policies()[0].behaviour_digest
    };
    let script = "fee(input.amount) > top";
    let base = digest(rules(1, 2, 3, script));
    assert_eq!(base, digest(rules(1, 2, 4, script)));
    assert_ne!(base, digest(rules(5, 2, 3, script)));
    assert_ne!(base, digest(rules(1, 5, 3, script)));
    assert_ne!(base, digest(rules(1, 2, 3, "fee(input.amount) >= top")));
}

#[test]
fn detectors_can_be_a_constant() {
    let load = |data: &str| {
        load_text(&format!(
            "data: {data}\npolicies:\n  - {{ id: p, match: {{ tool: t, where: 'detects(input.text, data.leaks.sent)' }}, deny: {{ code: leak }} }}\n"
        ))
    };
    for (data, expected) in [("[payment_card]", "leak"), ("payment_card", "leak"), ("email", "unmatched")] {
        let clock = noon();
        let rules = load(&format!("{{ leaks: {{ sent: {data} }} }}")).unwrap();
        let engine = Engine::builder(rules).clock(clock.clone()).build();
        let leak = json!({ "text": "card 4111 1111 1111 1111" });
        let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &[call("t", leak)]);
        assert_eq!(kind_and_code(&outcomes[0]).1, expected, "{data}");
    }
    for (data, problem) in [
        ("{ leaks: { sent: [payment_kard] } }", "unknown detector `payment_kard`"),
        ("{ leaks: { sent: [] } }", "must be string literals"),
        ("{ leaks: { sent: [1] } }", "must be string literals"),
        ("{ leaks: { send: [email] } }", "has no key `sent`"),
        ("{ other: 1 }", "unknown constant `data.leaks`"),
    ] {
        let error = load(data).unwrap_err().to_string();
        assert!(error.contains(problem), "{data}: {error}");
    }
}

#[test]
fn the_digest_of_an_approval_covers_its_approvers() {
    let digest = |approvers: &str, other: u32| {
        let text = format!(
            "data: {{ approvers: {approvers}, other: {other} }}\npolicies: [{{ id: p, match: pay, approval: {{ approvers: {{ data: approvers }} }} }}]\n"
        );
        load_text(&text).unwrap().policies()[0].behaviour_digest
    };
    assert_eq!(digest("[ana]", 1), digest("[ana]", 2));
    assert_ne!(digest("[ana]", 1), digest("[ana, bob]", 1));
}

#[test]
fn conditions_read_constants_by_path() {
    let load = |condition: &str| {
        load_text(&format!(
            "data: {{ limits: {{ pay: 100, 'a key': 5 }}, blocked: [eve, mallory], rows: [{{ max: 7 }}] }}\n\
             policies:\n  - {{ id: p, match: {{ tool: t, where: {condition} }}, deny: {{ code: held }} }}\n"
        ))
    };
    for (condition, input, expected) in [
        ("{ path: $.input.n, gt: { path: $.data.limits.pay } }", json!({ "n": 101 }), "held"),
        ("{ path: $.input.n, gt: { path: $.data.limits.pay } }", json!({ "n": 100 }), "unmatched"),
        ("{ path: $.input.n, gt: { path: \"$.data.limits['a key']\" } }", json!({ "n": 6 }), "held"),
        ("{ path: $.input.n, eq: { path: '$.data.rows[0].max' } }", json!({ "n": 7 }), "held"),
        ("{ path: $.input.to, in: { path: $.data.blocked } }", json!({ "to": "eve" }), "held"),
        (
            "{ any_of: { path: $.data.blocked, eq: { path: $.input.to } } }",
            json!({ "to": "mallory" }),
            "held",
        ),
        ("{ path: $.data.blocked, contains: { path: $.input.to } }", json!({ "to": "ana" }), "unmatched"),
        ("{ path: $.input.n, gt: { path: $.data.limits.pay } }", json!({ "n": "101" }), "undecided"),
    ] {
        let clock = noon();
        let rules = load(condition).unwrap_or_else(|error| panic!("{condition}: {error}"));
        let engine = Engine::builder(rules).clock(clock.clone()).build();
        let calls = [call("t", input.clone())];
        let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &calls);
        assert_eq!(kind_and_code(&outcomes[0]).1, expected, "{condition} {input}");
    }
    for (path, problem) in [
        ("$.data.limit.pay", "did you mean"),
        ("$.data.limits.send", "has no key `send`"),
        ("'$.data.blocked[*]'", "names and indices only"),
    ] {
        let error = load(&format!("{{ path: $.input.n, in: {{ path: {path} }} }}")).unwrap_err().to_string();
        assert!(error.contains(problem), "{path}: {error}");
    }
}
