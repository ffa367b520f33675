//! Lints: each file under `tests/lints/CODE/` is a case. The snapshots of `fires` contain the diagnostics and the changes of `--fix`;
//! the lint must not report the cases of `silent`. A case can have policy tests (`NAME.test.yaml`), and a lint tools (`tools.json`).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use callgate::diagnostic::{self, render};
use callgate::{ToolDescriptor, policy, tools};
use callgate_lint::{LINTS, LintInputs, LintResult, RequiredInput, SUPPRESSION_CODES, fix, lint};
use callgate_policy_tests::LoadedSuite;
use similar::TextDiff;

fn root() -> PathBuf {
    crate::fixtures::root().join("tests/lints")
}

/// A case with its tools and policy tests.
struct LintCase {
    text: String,
    tools: Option<Vec<ToolDescriptor>>,
    tests: Option<LoadedSuite>,
}

impl LintCase {
    fn read(file: &Path) -> Self {
        let tools = fs::read_to_string(file.ancestors().nth(2).unwrap().join("tools.json")).ok();
        let tests = fs::read_to_string(file.with_extension("test.yaml")).ok();
        Self {
            text: fs::read_to_string(file).unwrap(),
            tools: tools.map(|text| tools::parse_list(&text).unwrap()),
            tests: tests.map(|text| callgate_policy_tests::load_texts([("rules.test.yaml", text)])),
        }
    }

    fn beside(&self) -> LintInputs<'_> {
        LintInputs { tools: self.tools.as_deref(), tests: self.tests.as_ref() }
    }

    fn lint(&self) -> LintResult {
        let linted = lint(policy::build_texts([("rules.yaml", self.text.as_str())]), &self.beside());
        assert!(!linted.diagnostics.has_errors(), "{}", shown(&linted));
        linted
    }
}

fn shown(linted: &LintResult) -> String {
    render::text(&linted.diagnostics, &linted.sources, false)
}

fn cases(code: &str, kind: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root().join(code).join(kind)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.to_string_lossy().ends_with(".test.yaml"));
    files.sort();
    files
}

fn codes() -> impl Iterator<Item = &'static diagnostic::Code> {
    LINTS.iter().map(|lint| lint.code).chain(SUPPRESSION_CODES)
}

#[test]
fn each_lint_fires_and_its_fixes_resolve_it() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/lints");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut shortcomings = Vec::new();
    for code in codes() {
        let files = cases(code.id, "fires");
        assert!(files.len() >= 2, "{} has too few cases that fire", code.id);
        for file in files {
            let name = format!("{}__{}", code.id, file.file_stem().unwrap().to_string_lossy());
            let case = LintCase::read(&file);
            let linted = case.lint();
            if !linted.diagnostics.iter().any(|diagnostic| diagnostic.code == code) {
                shortcomings.push(format!("{name}: not reported"));
            }
            for diagnostic in linted.diagnostics.iter() {
                let text = &diagnostic.message;
                let form = !text.ends_with('.') && !text.starts_with(char::is_uppercase);
                if !form || diagnostic.help.is_none() || diagnostic.span.is_none() {
                    shortcomings
                        .push(format!("{name}: no position, no help, or not formatted as a message: {text}"));
                }
            }
            let mut reported = shown(&linted);
            let fixed = fix(linted, &case.beside());
            for (before, after) in fixed.changed.values() {
                let _ = write!(
                    reported,
                    "\n-- fixed\n{}",
                    TextDiff::from_lines(before.as_str(), after.as_str()).unified_diff()
                );
            }
            if fixed.linted.diagnostics.iter().any(|diagnostic| diagnostic.fix.is_some()) {
                shortcomings.push(format!("{name}: a fix was not applied"));
            }
            settings.bind(|| insta::assert_snapshot!(name, reported));
        }
    }
    assert!(shortcomings.is_empty(), "{}", shortcomings.join("\n"));
}

#[test]
fn each_lint_is_silent_on_correct_rules() {
    let mut reported = Vec::new();
    for code in codes() {
        let files = cases(code.id, "silent");
        assert!(files.len() >= 2, "{} has too few cases that are silent", code.id);
        for file in files {
            let linted = LintCase::read(&file).lint();
            if linted.diagnostics.iter().any(|diagnostic| diagnostic.code == code) {
                reported.push(format!("{}:\n{}", file.display(), shown(&linted)));
            }
        }
    }
    assert!(reported.is_empty(), "{}", reported.join("\n"));
}

#[test]
fn no_lint_fires_on_the_shipped_bundles() {
    let bundles = crate::fixtures::root().join("policies");
    let mut checked = 0;
    for entry in fs::read_dir(bundles).unwrap() {
        let paths = [entry.unwrap().path()];
        if !paths[0].is_dir() {
            continue;
        }
        let tools = fs::read_to_string(paths[0].join("tools.json")).ok();
        let tools = tools.map(|text| tools::parse_list(&text).unwrap());
        let tests = callgate_policy_tests::load(&paths);
        let beside = LintInputs { tools: tools.as_deref(), tests: Some(&tests) };
        let linted = lint(policy::build(&paths), &beside);
        assert!(linted.policies.is_some() && linted.diagnostics.is_empty(), "{}", shown(&linted));
        checked += 1;
    }
    assert!(checked >= 4);
}

#[test]
fn files_are_checked_together() {
    let linted = lint(
        policy::build_texts([
            ("a.yaml", "policies: [ { id: no, match: 'pay*', deny: {} } ]"),
            ("b.yaml", "policies: [ { id: ask, match: payOut, approval: { message: Sure? } } ]"),
        ]),
        &LintInputs::default(),
    );
    let text = shown(&linted);
    assert!(text.contains("--> b.yaml") && text.contains("::: a.yaml"), "{text}");
}

fn catalogue() -> String {
    let mut page = String::from(
        "# Lints\n\n\
         Lints are warnings of `callgate check` about rules that are valid but probably not intended. This page is generated from the\n\
         catalogue; do not edit it.\n\n\
         `callgate rule CODE` prints the page of a lint. A comment on the line that a lint reports, or on the line above, allows it there:\n\
         `# callgate: allow CG511 because the gateway rejects calls without a region`. `callgate check --fix` applies the unambiguous fixes;\n\
         `--diff` shows them without changing files. With `--deny-warnings`, warnings also result in exit status 1.\n\n\
         Lints that need tools run with `--tools FILE`; lints that need tests run if `*.test.yaml` files are next to the rules.\n\n\
         | code | name | needs | reports |\n| --- | --- | --- | --- |\n",
    );
    let needs =
        |code| LINTS.iter().find(|lint| lint.code == code).map_or(RequiredInput::Nothing, |lint| lint.needs);
    for code in codes() {
        let needs = match needs(code) {
            RequiredInput::Nothing => "",
            RequiredInput::Tools => "tools",
            RequiredInput::Tests => "tests",
        };
        let summary = code.page.split("\n\n").nth(1).unwrap();
        let _ = writeln!(
            page,
            "| [{}](#{}) | {} | {needs} | {} |",
            code.id,
            code.id.to_lowercase(),
            code.name,
            summary.replace('|', "\\|")
        );
    }
    for code in codes() {
        let body = code.page.split_once('\n').unwrap().1.replace("\n## ", "\n### ");
        let _ = write!(page, "\n## {}\n\n`{}`\n{body}", code.id, code.name);
    }
    page
}

#[test]
fn lints_page_matches_the_catalogue() {
    let path = crate::fixtures::root().join("docs/lints.md");
    let now = catalogue();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, now, "docs/lints.md is stale: run the tests with UPDATE_GENERATED=1");
}
