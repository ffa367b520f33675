//! `callgate test --format junit` and `github`: the formats for continuous integration.

use roxmltree::{Document, Node};

use super::TestDir;

const RULES: &str = "policies: [ { id: no-large-refunds, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, deny: {} } ]";
const TESTS: &str = r#"
cases:
  - name: small refunds run
    call: { tool: refund, input: { amount: 5 } }
    expect: executed
  - name: "a <b> & \"c\" ]]> \u001b[31m \u0001 \u202e 'd' é"
    call: { tool: refund, input: { amount: 50, note: "]]>\u0007<script>" } }
    expect: { outcome: denied, input: { amount: 51, note: x }, runs: 2 }
  - name: a table
    call: { tool: refund }
    expect: denied
    rows: [ { input: { amount: 250 } }, { name: small, input: { amount: 2 } } ]
"#;
const OTHERS: &str = "cases: [ { name: others, call: { tool: pay }, expect: executed } ]";

fn test_dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES), ("a.test.yaml", TESTS), ("b.test.yaml", OTHERS)])
}

/// Asserts that an element has exactly these attributes.
fn assert_attributes(node: Node<'_, '_>, names: &[&str]) {
    let mut found: Vec<&str> = node.attributes().map(|attribute| attribute.name()).collect();
    let mut names = names.to_vec();
    found.sort_unstable();
    names.sort_unstable();
    assert_eq!(found, names, "{node:?}");
}

fn number(node: Node<'_, '_>, name: &str) -> usize {
    node.attribute(name).unwrap().parse().unwrap()
}

fn elements<'a, 'd>(node: Node<'a, 'd>) -> Vec<Node<'a, 'd>> {
    let children = node.children().inspect(|child| {
        assert!(child.is_element() || child.text().is_some_and(|text| text.trim().is_empty()), "{child:?}");
    });
    children.filter(Node::is_element).collect()
}

/// The suite and name of a case, and the message and text of its failure, if it failed.
type Case = (String, String, Option<(String, String)>);

/// Validates a report by the strictest reading of the format: elements, attributes, and that the counts are right. Returns
/// the cases.
fn validate_junit(xml: &str) -> Vec<Case> {
    let document = Document::parse(xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    assert_attributes(root, &["name", "tests", "failures", "errors", "time"]);
    let mut all = Vec::new();
    let mut sums = [0; 3];
    for suite in elements(root) {
        assert_eq!(suite.tag_name().name(), "testsuite");
        assert_attributes(suite, &["name", "tests", "failures", "errors", "skipped", "time"]);
        let mut counts = [0; 3];
        for case in elements(suite) {
            assert_eq!(case.tag_name().name(), "testcase");
            assert_attributes(case, &["name", "classname", "file", "line", "time"]);
            assert_eq!(case.attribute("classname"), suite.attribute("name"));
            assert!(case.attribute("time").unwrap().parse::<f64>().unwrap() >= 0.0);
            assert!(number(case, "line") > 0);
            counts[0] += 1;
            let inside = elements(case);
            assert!(inside.len() <= 1);
            let ended = inside.first().map(|ended| {
                assert_attributes(*ended, &["message", "type"]);
                let kind = ended.tag_name().name();
                counts[["testcase", "failure", "error"].iter().position(|name| *name == kind).unwrap()] += 1;
                (ended.attribute("message").unwrap().to_owned(), ended.text().unwrap().to_owned())
            });
            let named = |name| case.attribute(name).unwrap().to_owned();
            all.push((named("classname"), named("name"), ended));
        }
        assert_eq!(counts, ["tests", "failures", "errors"].map(|name| number(suite, name)));
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert_eq!(sums, ["tests", "failures", "errors"].map(|name| number(root, name)));
    all
}

#[test]
fn junit_contains_each_case_and_its_failure() {
    let ended = test_dir().run(&["test", "--format", "junit"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    let cases = validate_junit(&ended.stdout);
    let names: Vec<&str> = cases.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "small refunds run",
            "a <b> & \"c\" ]]> \\u{1b}[31m \\u{1} \\u{202e} 'd' é",
            "a table [row 1]",
            "a table [row 2: small]",
            "others"
        ]
    );
    let failed: Vec<bool> = cases.iter().map(|(_, _, ended)| ended.is_some()).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    let (message, text) = cases[1].2.clone().unwrap();
    assert_eq!(message, "outcome: expected denied, got executed (and 2 more)");
    for part in [
        "a.test.yaml:8:24: `outcome` of call 1, refund",
        "-   \"amount\": 51",
        "+   \"amount\": 50",
        "call 1, refund: executed",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

#[test]
fn junit_reports_files_with_errors() {
    let tests = TESTS.replace("expect: executed", "expct: executed");
    let dir = TestDir::new(&[("rules.yaml", "polices: []"), ("a.test.yaml", &tests)]);
    let ended = dir.run(&["test", "--format", "junit"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    let cases = validate_junit(&ended.stdout);
    let names: Vec<(&str, &str)> =
        cases.iter().map(|(file, name, _)| (file.as_str(), name.as_str())).collect();
    assert_eq!(names, [("./rules.yaml", "CG201 unknown-key"), ("./a.test.yaml", "CG201 unknown-key")]);
    assert!(cases[0].2.as_ref().unwrap().1.contains("did you mean `policies`?"));
}

#[test]
fn github_annotates_the_line_of_each_failure() {
    let ended = test_dir().run(&["test", "--format", "github"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ended.stdout);
    assert!(lines[0].starts_with("::error file=./a.test.yaml,line=8,"), "{}", lines[0]);
    assert!(
        lines[1].contains("title=a table [row 2%3A small]::outcome: expected denied, got executed%0A%0A")
    );
    let broken = TestDir::new(&[("rules.yaml", "polices: []"), ("a.test.yaml", OTHERS)]);
    let ended = broken.run(&["test", "--format", "github"]);
    assert!(ended.stdout.starts_with("::error file=./rules.yaml,line=1,"), "{}", ended.stdout);
    assert_eq!(test_dir().run(&["test", "--format", "github", "--filter", "others"]).stdout, "");
}
