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

#[test]
fn mistakes_across_files_are_reported_as_for_a_load_of_all_files() {
    let mistakes = [
        ("an id of an unchanged file", denying("a-0"), "duplicate id `a-0`"),
        (
            "one policy with an error",
            "policies: [ { id: b, deny: {} } ]\n".to_owned(),
            "a `deny` policy needs `match`",
        ),
        (
            "too much memory with unchanged files",
            many_large_expressions("b", 40),
            "the regular expressions of this bundle use too much memory in total",
        ),
    ];
    for (mistake, text, expected) in mistakes {
        let dir = TestDir::new(&[("a.yaml", &many_large_expressions("a", 30)), ("b.yaml", &denying("b"))]);
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
