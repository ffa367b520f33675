//! The files and tests that pages name exist.

use std::fs;

use super::{Page, pages};
use crate::fixtures::root;

/// Whether a file of this name exists in the root of the repository or beside the page, and has the test that `::` names.
fn exists(page: &Page, name: &str) -> bool {
    let (path, test) = name.split_once("::").map_or((name, None), |(path, test)| (path, Some(test)));
    let beside = root().join(page.path.parent().unwrap()).join(path);
    let found = [root().join(path), beside].into_iter().find(|path| path.exists());
    found.is_some_and(|file| match test {
        Some(test) => fs::read_to_string(file).unwrap().contains(&format!("fn {test}(")),
        None => true,
    })
}

/// Each file of the repository that a page names in backquotes exists, and each test, as in `tests/a.rs::name`.
#[test]
fn every_named_file_exists() {
    const TOP: [&str; 8] =
        ["src/", "crates/", "tests/", "docs/", "benches/", "examples/", "schemas/", ".ci/"];
    let mut missing = Vec::new();
    // The changelog names files of earlier versions.
    for page in pages().iter().filter(|page| !page.path.ends_with("CHANGELOG.md")) {
        for span in &page.code_spans {
            let name = span.target.split_once(": ").map_or(span.target.as_str(), |(path, _)| path);
            let is_ours = TOP.iter().any(|folder| name.starts_with(folder));
            // Patterns, and names with a placeholder in capitals.
            let is_literal = !name.contains(['*', ' ', '<', '…']) && !name.contains(char::is_uppercase);
            if is_ours && is_literal && !exists(page, name) {
                missing.push(format!("{}: {name}", page.at(span.line)));
            }
        }
    }
    assert!(missing.is_empty(), "these do not exist:\n{}", missing.join("\n"));
}

/// Each row of the failures page names an existing test.
#[test]
fn every_failure_names_a_test() {
    let page = fs::read_to_string(root().join("docs/failures.md")).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| failure") && !line.starts_with("| ---"))
        .collect();
    assert!(rows.len() > 25);
    for row in rows {
        let named = |word: &&str| ["tests/", "src/", "crates/"].iter().any(|folder| word.starts_with(folder));
        let tests: Vec<&str> = row.split('`').filter(named).collect();
        assert!(!tests.is_empty(), "no test in: {row}");
        for test in tests {
            assert!(root().join(test).exists(), "{test} does not exist: {row}");
            let has_tests = || fs::read_to_string(root().join(test)).unwrap().contains("test]\n");
            assert!(test.starts_with("tests/") || has_tests(), "{test} has no tests: {row}");
        }
    }
}

/// Each row of the table of approval outcomes names an existing test, by its file and name.
#[test]
fn every_approval_outcome_names_a_test() {
    let page = Page::read("docs/asking-people.md".as_ref());
    let named: Vec<(&str, &str)> =
        page.code_spans.iter().filter_map(|span| span.target.split_once(".rs: ")).collect();
    assert!(named.len() > 25, "{}", named.len());
    for (file, test) in named {
        let text = fs::read_to_string(root().join(format!("tests/approvals/{file}.rs"))).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{file}.rs has no test {test}");
    }
}
