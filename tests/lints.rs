//! One file, one case under `tests/lints/CODE/`: in `fires` what people are told and what `--fix` makes of it, in `silent` what
//! must not be told. A case may have policy tests beside it (`NAME.test.yaml`), and a lint known tools (`tools.json`).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use callgate::diagnostic::{self, render};
use callgate::lint::{Beside, LINTS, Linted, Needs, OF_ALLOWANCES, fix, lint};
use callgate::suite::LoadedSuite;
use callgate::{ToolDescriptor, policy, suite, tools};
use similar::TextDiff;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lints")
}

/// A case with what stands beside it.
struct Scene {
    text: String,
    tools: Option<Vec<ToolDescriptor>>,
    tests: Option<LoadedSuite>,
}

impl Scene {
    fn read(file: &Path) -> Self {
        let tools = fs::read_to_string(file.ancestors().nth(2).unwrap().join("tools.json")).ok();
        let tests = fs::read_to_string(file.with_extension("test.yaml")).ok();
        Self {
            text: fs::read_to_string(file).unwrap(),
            tools: tools.map(|text| tools::read_list(&text).unwrap()),
            tests: tests.map(|text| suite::load_texts([("rules.test.yaml", text)])),
        }
    }

    fn beside(&self) -> Beside<'_> {
        Beside { tools: self.tools.as_deref(), tests: self.tests.as_ref() }
    }

    fn lint(&self) -> Linted {
        let linted = lint(policy::build_texts([("rules.yaml", self.text.as_str())]), &self.beside());
        assert!(!linted.diagnostics.has_errors(), "{}", shown(&linted));
        linted
    }
}

fn shown(linted: &Linted) -> String {
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
    LINTS.iter().map(|lint| lint.code).chain(OF_ALLOWANCES)
}

#[test]
fn each_lint_tells_what_is_there_and_its_fixes_mend_it() {
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
            let scene = Scene::read(&file);
            let linted = scene.lint();
            if !linted.diagnostics.iter().any(|diagnostic| diagnostic.code == code) {
                shortcomings.push(format!("{name}: it is not told"));
            }
            for diagnostic in linted.diagnostics.iter() {
                let text = &diagnostic.message;
                let form = !text.ends_with('.') && !text.starts_with(char::is_uppercase);
                if !form || diagnostic.help.is_none() || diagnostic.span.is_none() {
                    shortcomings
                        .push(format!("{name}: no place, no help, or not the form of a message: {text}"));
                }
            }
            let mut told = shown(&linted);
            let fixed = fix(linted, &scene.beside());
            for (before, after) in fixed.changed.values() {
                let _ = write!(
                    told,
                    "\n-- fixed\n{}",
                    TextDiff::from_lines(before.as_str(), after.as_str()).unified_diff()
                );
            }
            if fixed.linted.diagnostics.iter().any(|diagnostic| diagnostic.fix.is_some()) {
                shortcomings.push(format!("{name}: a fix was not made"));
            }
            settings.bind(|| insta::assert_snapshot!(name, told));
        }
    }
    assert!(shortcomings.is_empty(), "{}", shortcomings.join("\n"));
}

#[test]
fn each_lint_is_silent_where_nothing_is_wrong() {
    let mut told = Vec::new();
    for code in codes() {
        let files = cases(code.id, "silent");
        assert!(files.len() >= 2, "{} has too few cases that are silent", code.id);
        for file in files {
            let linted = Scene::read(&file).lint();
            if linted.diagnostics.iter().any(|diagnostic| diagnostic.code == code) {
                told.push(format!("{}:\n{}", file.display(), shown(&linted)));
            }
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn no_lint_fires_on_the_shipped_bundles() {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let mut checked = 0;
    for entry in fs::read_dir(bundles).unwrap() {
        let paths = [entry.unwrap().path()];
        if !paths[0].is_dir() {
            continue;
        }
        let tools = fs::read_to_string(paths[0].join("tools.json")).ok();
        let tools = tools.map(|text| tools::read_list(&text).unwrap());
        let tests = suite::load(&paths);
        let beside = Beside { tools: tools.as_deref(), tests: Some(&tests) };
        let linted = lint(policy::build(&paths), &beside);
        assert!(linted.chains.is_some() && linted.diagnostics.is_empty(), "{}", shown(&linted));
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
        &Beside::default(),
    );
    let text = shown(&linted);
    assert!(text.contains("--> b.yaml") && text.contains("::: a.yaml"), "{text}");
}

fn catalogue() -> String {
    let mut page = String::from(
        "# Lints\n\n\
         What `callgate check` warns of beside errors: what is valid and probably not meant. Written from the catalogue; do not edit.\n\n\
         `callgate rule CODE` prints the page of a lint. A comment on the line that a lint points at, or above it, allows it there:\n\
         `# callgate: allow CG511 because the gateway refuses calls without a region`. `callgate check --fix` mends what can be mended\n\
         without doubt, `--diff` shows it first. With `--deny-warnings` a warning is as bad as an error.\n\n\
         Lints that need tools are asked with `--tools FILE`, those that need tests where `*.test.yaml` files stand beside the rules.\n\n\
         | code | name | needs | tells |\n| --- | --- | --- | --- |\n",
    );
    let needs = |code| LINTS.iter().find(|lint| lint.code == code).map_or(Needs::Nothing, |lint| lint.needs);
    for code in codes() {
        let needs = match needs(code) {
            Needs::Nothing => "",
            Needs::Tools => "tools",
            Needs::Tests => "tests",
        };
        let tells = code.page.split("\n\n").nth(1).unwrap();
        let _ = writeln!(
            page,
            "| [{}](#{}) | {} | {needs} | {} |",
            code.id,
            code.id.to_lowercase(),
            code.name,
            tells.replace('|', "\\|")
        );
    }
    for code in codes() {
        let body = code.page.split_once('\n').unwrap().1.replace("\n## ", "\n### ");
        let _ = write!(page, "\n## {}\n\n`{}`\n{body}", code.id, code.name);
    }
    page
}

#[test]
fn the_page_of_all_lints_is_what_the_catalogue_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lints.md");
    let now = catalogue();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, now, "docs/lints.md is stale: run the tests with UPDATE_GENERATED=1");
}
