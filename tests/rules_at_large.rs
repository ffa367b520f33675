//! Loading of rules: errors in several files, bundles with thousands of policies, and randomly broken files.

use std::fmt::Write as _;

use callgate::diagnostic::{self, render};
use callgate::policy::{self, LoadedBundle};
use proptest::prelude::*;

/// A valid rules file with a policy of every kind.
const LARGE: &str = include_str!("large_rules.yaml");

fn positions(built: &LoadedBundle) -> Vec<(String, usize, &'static str)> {
    built
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let place = built.sources.locate(diagnostic.span.unwrap()).unwrap();
            (place.file, place.line, diagnostic.code.id)
        })
        .collect()
}

fn rendered(built: &LoadedBundle) -> String {
    render::text(&built.diagnostics, &built.sources, false)
}

#[test]
fn errors_of_all_files_are_reported_in_order() {
    let built = policy::build_texts([
        (
            "b.yaml",
            "defaults: { unmatched: deny }\npolicies:\n  - id: one\n    dney: {}\n  - id: two\n    deny: {}\n",
        ),
        ("a.yaml", "policies: [\n"),
        (
            "c.yaml",
            "defaults: { unmatched: allow }\npolicies:\n  - id: one\n    match: sendEmail\n    deny: { mesage: No }\n",
        ),
        ("d.yaml", "policies: []\n"),
    ]);
    let expected = [
        ("b.yaml", 4, "CG201"),
        ("b.yaml", 6, "CG404"),
        ("a.yaml", 1, "CG101"),
        ("c.yaml", 1, "CG402"),
        ("c.yaml", 3, "CG401"),
        ("c.yaml", 5, "CG201"),
    ];
    let expected = expected.map(|(file, line, code)| (file.to_owned(), line, code));
    assert_eq!(positions(&built), expected, "{}", rendered(&built));
    assert!(built.policies.is_none());
}

#[test]
fn each_diagnostic_names_its_policy() {
    let built = policy::build_texts([(
        "a.yaml",
        "policies:\n  - id: one\n    mode: shadows\n    match: sendEmail\n    deny: {}\n  - id: two\n    match: \"/(/\"\n    deny: {}\nrules: []\n",
    )]);
    let named: Vec<_> = built.diagnostics.iter().map(|diagnostic| diagnostic.policy.as_deref()).collect();
    assert_eq!(named, [Some("one"), Some("two"), None], "{}", rendered(&built));
}

#[test]
fn two_hundred_errors_are_all_reported() {
    let mut rules = String::from("policies:\n");
    for number in 0..200 {
        let _ = write!(rules, "  - id: p{number}\n    match: sendEmail\n    dney: {{}}\n");
    }
    let built = policy::build_texts([("a.yaml", rules)]);
    let lines: Vec<usize> = positions(&built).into_iter().map(|(_, line, _)| line).collect();
    assert_eq!(lines, (0..200).map(|number| 4 + 3 * number).collect::<Vec<_>>());
}

#[test]
fn ten_thousand_policies_load() {
    let mut rules = String::from("policies:\n");
    for number in 0..10_000 {
        let _ = write!(
            rules,
            "  - id: p{number}\n    match:\n      tool: [tool{number}, \"group{}.*\"]\n      where: {{ path: $.input.amount, gt: {number} }}\n    deny: {{ message: \"No {{{{ tool }}}}\" }}\n",
            number % 100
        );
    }
    let built = policy::build_texts([("a.yaml", rules)]);
    assert!(built.diagnostics.is_empty() && built.policies.is_some(), "{}", rendered(&built));
}

#[test]
fn large_file_loads() {
    let built = policy::build_texts([("large.yaml", LARGE)]);
    assert!(built.diagnostics.is_empty() && built.policies.is_some(), "{}", rendered(&built));
}

/// One edit of a file's text.
#[derive(Clone, Debug)]
enum Change {
    DropLine(usize),
    DuplicateLine(usize),
    SwapLines(usize, usize),
    IndentLine(usize),
    OutdentLine(usize),
    DropChar(usize),
    PutChar(usize, char),
    PutWord(usize, &'static str),
}

const WORDS: [&str; 16] = [
    "{}",
    "[]",
    "null",
    "true",
    "-1",
    "1e400",
    "\"\"",
    "$.output",
    "{{ input.x }}",
    "*",
    "&a",
    "deny:",
    "path:",
    "/(/",
    "match: \"*\"",
    "- ",
];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::DropLine),
        any::<usize>().prop_map(Change::DuplicateLine),
        any::<(usize, usize)>().prop_map(|(one, other)| Change::SwapLines(one, other)),
        any::<usize>().prop_map(Change::IndentLine),
        any::<usize>().prop_map(Change::OutdentLine),
        any::<usize>().prop_map(Change::DropChar),
        (
            any::<usize>(),
            prop_oneof![
                any::<char>(),
                proptest::sample::select("{}[]:,-\"'*&!|>#%@` \t\n$.0aé".chars().collect::<Vec<_>>())
            ]
        )
            .prop_map(|(at, c)| Change::PutChar(at, c)),
        (any::<usize>(), proptest::sample::select(WORDS.to_vec()))
            .prop_map(|(at, word)| Change::PutWord(at, word)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut chars: Vec<char> = text.chars().collect();
    if lines.is_empty() {
        return text.to_owned();
    }
    let (line, char) = (|at: usize| at % lines.len(), |at: usize| at % chars.len());
    match *change {
        Change::DropLine(at) => drop(lines.remove(line(at))),
        Change::DuplicateLine(at) => lines.insert(line(at), lines[line(at)].clone()),
        Change::SwapLines(one, other) => {
            let (one, other) = (line(one), line(other));
            lines.swap(one, other);
        }
        Change::IndentLine(at) => {
            let at = line(at);
            lines[at].insert_str(0, "  ");
        }
        Change::OutdentLine(at) => {
            let at = line(at);
            lines[at] = lines[at].strip_prefix("  ").unwrap_or(&lines[at]).to_owned();
        }
        Change::DropChar(at) => {
            chars.remove(char(at));
            return chars.into_iter().collect();
        }
        Change::PutChar(at, new) => {
            let at = char(at);
            chars[at] = new;
            return chars.into_iter().collect();
        }
        Change::PutWord(at, word) => {
            let at = line(at);
            let value = lines[at].find(": ").map_or(lines[at].len(), |colon| colon + 2);
            lines[at].replace_range(value.., word);
        }
    }
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Any broken file is either rejected with errors that can be rendered, or it compiles.
    #[test]
    fn randomly_broken_file_is_rejected_or_compiles(changes in proptest::collection::vec(change(), 1..6)) {
        let text = changes.iter().fold(LARGE.to_owned(), |text, change| apply(&text, change));
        let built = policy::build_texts([("large.yaml", text.as_str())]);
        prop_assert_eq!(built.diagnostics.has_errors(), built.policies.is_none());
        for diagnostic in built.diagnostics.iter() {
            let of_yaml = diagnostic.code == &diagnostic::YAML_SYNTAX;
            prop_assert!(of_yaml || diagnostic.help.is_some(), "{}: {}", diagnostic.code.id, diagnostic.message);
            let place = diagnostic.span.and_then(|span| built.sources.locate(span));
            prop_assert!(place.is_some_and(|place| place.line <= text.lines().count() + 1));
        }
        if built.diagnostics.has_errors() {
            prop_assert!(rendered(&built).contains("error[CG"));
        }
    }
}
