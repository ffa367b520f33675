//! Policy tests: each file under `tests/suites/` contains rules with tests, and its snapshot the report; and the tests of the shipped
//! bundles pass.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use callgate::diagnostic::{Diagnostics, SourceMap, render};
use callgate::{engine, policy};
use callgate_policy_tests::{LoadedSuite, SuiteReport};

use crate::recorded_calls::project;

/// The rules and the tests of a corpus file.
fn corpus(path: &Path) -> (String, String) {
    let file: serde_yaml::Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = |key: &str| file.get(key).and_then(serde_yaml::Value::as_str).unwrap().to_owned();
    (text("rules"), text("tests"))
}

fn load(rules: &str, tests: &str) -> (LoadedSuite, Arc<policy::CompiledPolicies>) {
    let chains = engine::load_text(rules).unwrap_or_else(|error| panic!("{error}"));
    let mut loaded = callgate_policy_tests::load_texts([("rules.test.yaml", tests)]);
    loaded.check_against(&chains);
    (loaded, chains)
}

fn shown(report: &SuiteReport) -> String {
    format!(
        "{}{}\n",
        callgate_policy_tests::render::text(report, false),
        callgate_policy_tests::render::summary(report)
    )
}

/// Violations of the rules for diagnostics: each has a position, help and the form of a message.
fn violations(diagnostics: &Diagnostics, sources: &SourceMap) -> Vec<String> {
    let mut found = Vec::new();
    for diagnostic in diagnostics.iter() {
        if diagnostic.span.and_then(|span| sources.locate(span)).is_none() {
            found.push(format!("no position: {}", diagnostic.message));
        }
        if diagnostic.help.is_none() {
            found.push(format!("no help: {}", diagnostic.message));
        }
        if diagnostic.message.ends_with('.') || diagnostic.message.starts_with(char::is_uppercase) {
            found.push(format!("not formatted as a message: {}", diagnostic.message));
        }
    }
    found
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/suites");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

/// `broken_*` files contain one mistake, `failing_*` files fail an expectation, and all others pass.
#[test]
fn each_suite_matches_its_snapshot() {
    let found = RefCell::new(Vec::new());
    settings().bind(|| {
        insta::glob!("suites/*.yaml", |path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let (rules, tests) = corpus(path);
            let (loaded, chains) = load(&rules, &tests);
            let mut problems = violations(&loaded.diagnostics, &loaded.sources);
            if name.starts_with("broken_") {
                if loaded.diagnostics.len() != 1 {
                    problems.push(format!("{} problems are reported", loaded.diagnostics.len()));
                }
                insta::assert_snapshot!(render::text(&loaded.diagnostics, &loaded.sources, false));
            } else {
                let text = render::text(&loaded.diagnostics, &loaded.sources, false);
                assert!(loaded.diagnostics.is_empty(), "{name}: {text}");
                let report = loaded.suite.run(&chains);
                let text = shown(&report);
                if report.passed() == name.starts_with("failing_") {
                    problems.push(text.clone());
                }
                if name.starts_with("failing_") {
                    insta::assert_snapshot!(text);
                }
            }
            found.borrow_mut().extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
        });
    });
    let found = found.into_inner();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Every policy of the shipped bundles takes part in one of its tests.
#[test]
fn shipped_bundles_pass_their_tests() {
    let mut tested = 0;
    for entry in std::fs::read_dir(project("policies")).unwrap() {
        let paths = [entry.unwrap().path()];
        let bundle = paths[0].display();
        if callgate_policy_tests::load(&paths).suite.is_empty() {
            continue;
        }
        tested += 1;
        let chains = engine::load(&paths).unwrap_or_else(|error| panic!("{error}"));
        let mut loaded = callgate_policy_tests::load(&paths);
        loaded.check_against(&chains);
        let text = render::text(&loaded.diagnostics, &loaded.sources, false);
        assert!(loaded.diagnostics.is_empty(), "{text}");
        let report = loaded.suite.run(&chains);
        assert!(report.passed(), "{}", shown(&report));
        let part: Vec<&str> = report
            .cases()
            .flat_map(|case| &case.calls)
            .flat_map(|call| call.policies.iter().map(String::as_str))
            .collect();
        for policy in chains.policies() {
            assert!(part.contains(&policy.id.as_str()), "{bundle}: no test has `{}` take part", policy.id);
        }
    }
    assert!(tested >= 8, "{tested}");
}

#[test]
fn json_report_matches_snapshot() {
    let (rules, tests) = corpus(&project("tests/suites/failing_values.yaml"));
    let (loaded, chains) = load(&rules, &tests);
    let report = loaded.suite.run(&chains);
    let json =
        callgate_policy_tests::render::json(Some(&report), None, &[(&loaded.diagnostics, &loaded.sources)])
            .unwrap();
    let json = json.replace(&report.revision, "[revision]");
    settings().bind(|| insta::assert_snapshot!("document", json));
}

#[test]
fn filter_selects_cases_by_case_or_file_name() {
    let case = |name: &str| format!("cases: [ {{ name: {name}, call: {{ tool: t }}, expect: executed }} ]");
    let loaded = callgate_policy_tests::load_texts([
        ("refunds.test.yaml", case("small ones run")),
        ("mail.test.yaml", case("no Refund is mailed")),
        ("other.test.yaml", case("nothing")),
    ]);
    assert_eq!((loaded.suite.len(), loaded.suite.filter_by_name("refund").len()), (3, 2));
    assert!(loaded.suite.filter_by_name("none of these").is_empty());
}

/// Cases share no state, not even the rows of one case.
#[test]
fn each_case_runs_in_its_own_session() {
    let rules = "policies: [ { id: once, match: { tool: t, where: { path: $.session.calls.t, gte: 1 } }, deny: {} } ]";
    let tests = "cases: [ { name: a, call: { tool: t }, expect: executed, rows: [ {}, {} ] },
                          { name: b, steps: [ { tool: t, expect: executed }, { tool: t, expect: denied } ] } ]";
    let (loaded, chains) = load(rules, tests);
    let report = loaded.suite.run(&chains);
    assert!(report.passed(), "{}", shown(&report));
}

#[test]
fn paths_with_only_tests_are_not_rule_paths() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in
        [("rules/a.yaml", "policies: []"), ("tests/a.test.yaml", "cases: []"), ("other/x.txt", "")]
    {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let paths = ["rules", "tests", "tests/a.test.yaml", "other"].map(|name| directory.path().join(name));
    // Paths with neither are left to the loading of rules to report.
    assert_eq!(callgate_policy_tests::rules_paths(&paths), [paths[0].clone(), paths[3].clone()]);
}
