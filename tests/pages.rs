//! The pages of the diagnostics: each bad example results in exactly its code, each good example loads, and every code is
//! used.

use std::fs;
use std::path::PathBuf;

use callgate::diagnostic::{self, Diagnostics, SourceMap, render};
use callgate::{policy, tools};
use callgate_lint::{LINTS, LintInputs, RequiredInput, lint};

/// The fenced rules file of a section, if it has one.
fn example<'a>(page: &'a str, section: &str) -> Option<&'a str> {
    let section = page.split(&format!("\n## {section}\n")).nth(1)?.split("\n## ").next()?;
    section.split("```yaml\n").nth(1)?.split("\n```").next()
}

fn read_rules(name: &str, text: &str) -> (Diagnostics, SourceMap) {
    let built = policy::build_texts([(name, text)]);
    (built.diagnostics, built.sources)
}

/// Examples of test files are checked against one bundle.
fn read_tests(name: &str, text: &str) -> (Diagnostics, SourceMap) {
    let rules = "policies: [ { id: no-large-refunds, match: refund, deny: {} } ]";
    let mut loaded = callgate_policy_tests::load_texts([(name, text)]);
    loaded.check_against(&callgate::engine::load_text(rules).unwrap());
    (loaded.diagnostics, loaded.sources)
}

/// The tools and tests for examples of lints that need them.
const TOOLS: &str = r#"[
    {"name": "refund", "input_schema": {"type": "object", "properties": {
        "amount": {"type": "number"}, "currency": {"enum": ["eur", "usd"]},
        "copies": {"type": ["array", "null"], "items": {"type": "string"}}}}},
    {"name": "sendEmail"}
]"#;
const TESTS: &str = "cases: [ { name: none, call: { tool: sendEmail }, expect: { policy: no-mail } } ]";

fn read_lints(needs: Option<RequiredInput>, name: &str, text: &str) -> (Diagnostics, SourceMap) {
    let tools = tools::parse_list(TOOLS).unwrap();
    let tests = callgate_policy_tests::load_texts([("rules.test.yaml", TESTS)]);
    let beside = LintInputs {
        tools: (needs == Some(RequiredInput::Tools)).then_some(&tools),
        tests: (needs == Some(RequiredInput::Tests)).then_some(&tests),
    };
    let linted = lint(policy::build_texts([(name, text)]), &beside);
    (linted.bundle.diagnostics, linted.bundle.sources)
}

#[test]
fn examples_of_each_page_are_right() {
    let mut shown = 0;
    for code in diagnostic::ALL {
        let id = code.id;
        let (bad, good) = (example(code.page, "Bad"), example(code.page, "Good"));
        assert_eq!(bad.is_some(), good.is_some(), "{id} has only one of the two examples");
        let (Some(bad), Some(good)) = (bad, good) else { continue };
        shown += 1;
        let needs = LINTS.iter().find(|lint| lint.code == *code).map(|lint| lint.needs);
        let read = |name: &str, text: &str| match id.get(..3) {
            Some("CG5") => read_lints(needs, name, text),
            // Only `check` reports it.
            _ if *code == &diagnostic::IMPOSSIBLE_TYPE => read_lints(None, name, text),
            Some("CG6") => read_tests(name, text),
            _ => read_rules(name, text),
        };
        let (diagnostics, sources) = read("bad.yaml", bad);
        let text = render::text(&diagnostics, &sources, false);
        let codes: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.code.id).collect();
        assert_eq!(codes, [id], "the bad example of {id}:\n{bad}\n{text}");
        let (diagnostics, sources) = read("good.yaml", good);
        let text = render::text(&diagnostics, &sources, false);
        assert!(diagnostics.is_empty(), "the good example of {id}:\n{good}\n{text}");
    }
    assert!(shown > 25, "only {shown} pages have examples");
}

#[test]
fn each_page_has_a_title_and_all_sections() {
    for code in diagnostic::ALL {
        let title = format!("# {} {}\n", code.id, code.name);
        assert!(code.page.starts_with(&title), "{} does not begin with its title", code.id);
        let sections: Vec<&str> = code.page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["Why", "Bad", "Good", "Hint"], "{}", code.id);
        let empty = code
            .page
            .split("\n## ")
            .any(|section| section.lines().skip(1).all(|line| line.trim().is_empty()));
        assert!(!empty, "{} has an empty section", code.id);
    }
}

#[test]
fn each_code_is_used() {
    let root = crate::fixtures::root();
    let table = root.join("src/diagnostic/codes.rs");
    let mut rest = String::new();
    let mut open = vec![root.join("src"), root.join("crates")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path != table && path.extension().is_some_and(|extension| extension == "rs") {
            rest.push_str(&without_tests(&path));
        }
    }
    let constant = regex::Regex::new(r#"(?m)^    (\w+) = "(CG\d+)""#).unwrap();
    let table = fs::read_to_string(table).unwrap();
    let mut known = 0;
    for captures in constant.captures_iter(&table) {
        known += 1;
        let used = regex::Regex::new(&format!(r"&{}\b", &captures[1])).unwrap();
        assert!(used.is_match(&rest), "nothing reports {} ({})", &captures[2], &captures[1]);
    }
    assert_eq!(known, diagnostic::ALL.len(), "the table of codes was not parsed");
}

fn without_tests(path: &PathBuf) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}
