//! `callgate check` beyond errors: lints, machine-readable formats, and `--fix`.

use std::fs;

use callgate::json::Value;

use super::{TestDir, settings};

/// Rules with an error, for which no lints run.
const WRONG: &str = "policies:\n  - id: a\n    denny: {}\n";
/// Rules with a lint that has a fix. [`SHADOWED`] has another lint.
const ESCAPING: &str = "\
# What may be created where.
policies:
  - id: europe-only
    match:
      tool: createServer
      where:
        - path: $.input.region   # as the tool names it
          ne: eu
    deny: {} # for good
";
const SHADOWED: &str = "policies: [ { id: ask, match: { tool: createServer, where: [ { path: $.input.region, eq: us } ] }, approval: {} },
  { id: no, match: createServer, deny: {} } ]
";

fn valid_sarif(text: &str) -> Value {
    let schema = crate::fixtures::root().join("tests/sarif.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let log = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> =
        validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{}\n{text}", problems.join("\n"));
    log.into()
}

#[test]
fn warnings_fail_only_with_deny_warnings() {
    let dir = TestDir::new(&[("rules.yaml", ESCAPING)]);
    assert_eq!(dir.run(&["check"]).code, Some(0));
    assert_eq!(dir.run(&["check", "--deny-warnings"]).code, Some(1));
    for format in ["json", "sarif", "github"] {
        assert_eq!(dir.run(&["check", "--deny-warnings", "--format", format]).code, Some(1), "{format}");
    }
}

#[test]
fn sarif_has_rules_locations_and_fixes() {
    let dir = TestDir::new(&[("a b.yaml", ESCAPING), ("c.yaml", SHADOWED)]);
    let log = valid_sarif(&dir.run(&["check", "--format", "sarif"]).stdout);
    let run = &log["runs"][0];
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["CG506", "CG511"]);
    let results = run["results"].as_array().unwrap();
    for result in results {
        let rule =
            &run["tool"]["driver"]["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert_eq!(rule["defaultConfiguration"]["level"], result["level"]);
    }
    let escaping = results.iter().find(|result| result["ruleId"] == "CG511").unwrap();
    let place = &escaping["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b.yaml");
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&8.into(), &11.into()));
    let replaced = &escaping["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(replaced["insertedContent"]["text"], "\n          absent: match");
}

#[test]
fn sarif_and_github_formats_report_errors_and_missing_files() {
    let dir = TestDir::new(&[("wrong.yaml", WRONG)]);
    let ended = dir.run(&["check", "wrong.yaml", "gone.yaml", "--format", "sarif"]);
    assert_eq!(ended.code, Some(1));
    let log = valid_sarif(&ended.stdout);
    let levels: Vec<&Value> =
        log["runs"][0]["results"].as_array().unwrap().iter().map(|result| &result["level"]).collect();
    assert_eq!(levels, ["error", "error"]);
    let ended = dir.run(&["check", "wrong.yaml", "gone.yaml", "--format", "github"]);
    assert_eq!(ended.code, Some(1));
    settings().bind(|| insta::assert_snapshot!("check_github", ended.transcript()));
    let nothing = TestDir::new(&[("good.yaml", super::GOOD)]);
    assert_eq!(nothing.run(&["check", "--format", "github"]).stdout, "");
    let empty = valid_sarif(&nothing.run(&["check", "--format", "sarif"]).stdout);
    assert_eq!(empty["runs"][0]["results"], Value::Array(Vec::new()));
}

#[test]
fn diff_shows_the_changes_of_fix() {
    let dir = TestDir::new(&[("rules.yaml", ESCAPING), ("more.yaml", SHADOWED)]);
    let diff = dir.run(&["check", "--diff"]);
    assert_eq!(fs::read_to_string(dir.0.path().join("rules.yaml")).unwrap(), ESCAPING);
    let fix = dir.run(&["check", "--fix"]);
    settings().bind(|| {
        insta::assert_snapshot!("check_diff", diff.transcript());
        insta::assert_snapshot!("check_fix", fix.transcript());
    });
    let written = fs::read_to_string(dir.0.path().join("rules.yaml")).unwrap();
    assert_eq!(written, ESCAPING.replace("ne: eu\n", "ne: eu\n          absent: match\n"));
    assert_eq!(fs::read_to_string(dir.0.path().join("more.yaml")).unwrap(), SHADOWED);
    let again = dir.run(&["check", "--diff"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
}

#[test]
fn fix_keeps_line_endings_and_the_byte_order_mark() {
    let text = format!("\u{feff}{}", ESCAPING.replace('\n', "\r\n"));
    let dir = TestDir::new(&[("rules.yaml", &text)]);
    assert_eq!(dir.run(&["check", "--fix", "--deny-warnings"]).code, Some(0));
    let written = fs::read_to_string(dir.0.path().join("rules.yaml")).unwrap();
    assert_eq!(written, text.replace("ne: eu\r\n", "ne: eu\r\n          absent: match\r\n"));
}

#[test]
fn fix_changes_nothing_in_rules_with_errors() {
    let dir = TestDir::new(&[("rules.yaml", ESCAPING), ("wrong.yaml", WRONG)]);
    let (fix, diff) = (dir.run(&["check", "--fix"]), dir.run(&["check", "--diff"]));
    assert_eq!((fix.code, diff.code, diff.stdout.as_str()), (Some(1), Some(1), ""));
    assert!(diff.stderr.contains("the rules have errors"), "{}", diff.stderr);
    assert_eq!(fs::read_to_string(dir.0.path().join("rules.yaml")).unwrap(), ESCAPING);
}

#[test]
fn check_reads_tools_and_tests_beside_the_rules() {
    let rules = "policies: [ { id: no, match: pay, deny: {} }, { id: never, match: fly, deny: {} } ]";
    let tests = "cases: [ { name: paying is denied, call: { tool: pay }, expect: denied } ]";
    let dir = TestDir::new(&[
        ("rules.yaml", rules),
        ("rules.test.yaml", tests),
        ("tools.json", r#"[{"name":"pay"}]"#),
    ]);
    let codes = |arguments: &[&str]| -> Vec<String> {
        let list: Vec<Value> = callgate::json::from_str(&dir.run(arguments).stdout).unwrap();
        list.iter().map(|problem| problem["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(&["check", "--format", "json"]), ["CG522"]);
    assert_eq!(codes(&["check", "--format", "json", "--tools", "tools.json"]), ["CG522", "CG502"]);
    assert!(codes(&["check", "rules.yaml", "--format", "json"]).is_empty());
}
