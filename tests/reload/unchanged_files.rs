//! A reload compiles only files that have changed, and reports what a load of all files would report.

use std::sync::Arc;

use callgate::diagnostic::render;
use callgate::policy::{self, CompiledPolicies};

use super::TestDir;

fn loaded(dir: &TestDir) -> CompiledPolicies {
    policy::build(&[dir.path("")]).policies.unwrap()
}

/// The policies that a reload takes over.
fn reused_ids(dir: &TestDir, before: &CompiledPolicies) -> Vec<String> {
    let after = policy::rebuild(&[dir.path("")], before).policies.unwrap();
    let is_reused = |policy: &&Arc<_>| before.policies().iter().any(|known| Arc::ptr_eq(known, policy));
    after.policies().iter().filter(is_reused).map(|policy| policy.id.clone()).collect()
}

fn denying(id: &str) -> String {
    format!("policies: [ {{ id: {id}, match: pay, deny: {{}} }} ]\n")
}

#[test]
fn only_policies_of_changed_files_are_compiled_again() {
    let files = [("a.yaml", denying("a")), ("b.yaml", denying("b")), ("c.yaml", denying("c"))];
    let dir = TestDir::new(&files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let before = loaded(&dir);
    assert_eq!(reused_ids(&dir, &before), ["a", "b", "c"]);
    dir.write("b.yaml", &denying("other"));
    assert_eq!(reused_ids(&dir, &before), ["a", "c"]);
    // The same text again.
    dir.write("b.yaml", &denying("b"));
    assert_eq!(reused_ids(&dir, &before), ["a", "b", "c"]);
}

#[test]
fn definitions_in_other_files_do_not_keep_policies_from_being_reused() {
    let dir = TestDir::new(&[
        ("a.yaml", "let: { most: '2' }\ndefaults: { unmatched: deny }\n"),
        ("b.yaml", "policies: [ { id: b, match: { tool: pay, where: input.amount > most }, deny: {} } ]\n"),
        ("c.yaml", "policies: [ { id: c, match: pay, allow: {} } ]\n"),
    ]);
    let before = loaded(&dir);
    dir.write("c.yaml", "policies: [ { id: c, match: pay, approval: {} } ]\n");
    assert_eq!(reused_ids(&dir, &before), ["b"]);
    dir.write("a.yaml", "let: { most: '3' }\ndefaults: { unmatched: deny }\n");
    assert_eq!(reused_ids(&dir, &before), [""; 0]);
}

/// A regular expression that takes a 64th of what the bundle may take.
const LARGE: &str = "(?:[a-z]{100}){80}";

fn many_large_expressions(file: &str, count: usize) -> String {
    let policies = (0..count).map(|number| {
        format!("  - {{ id: {file}-{number}, match: {{ tool: pay, where: [ {{ path: $.input.to, matches: \"{LARGE}\" }} ] }}, deny: {{}} }}\n")
    });
    format!("policies:\n{}", policies.collect::<String>())
}

/// Policies with many values and tool patterns: `groups` has the group of a thousand names.
fn many_values_and_patterns(file: &str, values: usize, policies: usize) -> String {
    let values = vec!["1"; values].join(",");
    let patterned = (0..policies).map(|number| {
        format!("  - {{ id: {file}-{number}, match: {{ tool: \"@thousand\" }}, deny: {{}} }}\n")
    });
    format!(
        "policies:\n  - {{ id: {file}, match: pay, respond: {{ output: [{values}] }} }}\n{}",
        patterned.collect::<String>()
    )
}

fn group_of_a_thousand() -> String {
    let names: Vec<String> = (0..1_000).map(|number| format!("t{number}")).collect();
    format!("groups: {{ thousand: [{}] }}\n", names.join(","))
}

#[test]
fn mistakes_across_files_are_reported_as_for_a_load_of_all_files() {
    let mistakes = [
        ("an id of an unchanged file", denying("a"), denying("a"), "duplicate id `a`"),
        (
            "one policy with an error",
            denying("a"),
            "policies: [ { id: b, deny: {} } ]\n".to_owned(),
            "a `deny` policy needs `match`",
        ),
        (
            "too much memory with unchanged files",
            many_large_expressions("a", 30),
            many_large_expressions("b", 40),
            "the regular expressions of this bundle use too much memory in total",
        ),
        (
            "too many values with unchanged files",
            many_values_and_patterns("a", 600_000, 0),
            many_values_and_patterns("b", 600_000, 0),
            "the bundle has more than 1,000,000 values",
        ),
        (
            "too many tool patterns with unchanged files",
            many_values_and_patterns("a", 0, 600),
            many_values_and_patterns("b", 0, 600),
            "the policies of a bundle have at most 1000000 tool patterns",
        ),
    ];
    for (mistake, unchanged, text, expected) in mistakes {
        let dir = TestDir::new(&[
            ("a.yaml", &unchanged),
            ("b.yaml", &denying("b")),
            ("groups.yaml", &group_of_a_thousand()),
        ]);
        let before = loaded(&dir);
        dir.write("b.yaml", &text);
        let [rebuilt, built] = [policy::rebuild(&[dir.path("")], &before), policy::build(&[dir.path("")])]
            .map(|built| {
                assert!(built.policies.is_none(), "{mistake}");
                render::text(&built.diagnostics, &built.sources, false)
            });
        assert!(built.contains(expected), "{mistake}: {built}");
        assert_eq!(rebuilt, built, "{mistake}");
    }
}
