//! `callgate check` beyond errors: lints, their forms for other programs, and what `--fix` writes.

use std::fs;
use std::path::Path;

use callgate::json::Value;

use super::{Desk, settings};

/// An error, and beside it nothing else is asked.
const WRONG: &str = "policies:\n  - id: a\n    denny: {}\n";
/// Two lints, one with a fix and one in another file as well.
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
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sarif.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let log = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> =
        validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{}\n{text}", problems.join("\n"));
    log.into()
}

#[test]
fn warnings_fail_a_check_only_where_that_is_asked() {
    let desk = Desk::new(&[("rules.yaml", ESCAPING)]);
    assert_eq!(desk.run(&["check"]).code, Some(0));
    assert_eq!(desk.run(&["check", "--deny-warnings"]).code, Some(1));
    for format in ["json", "sarif", "github"] {
        assert_eq!(desk.run(&["check", "--deny-warnings", "--format", format]).code, Some(1), "{format}");
    }
}

#[test]
fn sarif_has_rules_places_and_fixes() {
    let desk = Desk::new(&[("a b.yaml", ESCAPING), ("c.yaml", SHADOWED)]);
    let log = valid_sarif(&desk.run(&["check", "--format", "sarif"]).stdout);
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
fn sarif_and_workflow_commands_tell_errors_and_missing_files_too() {
    let desk = Desk::new(&[("wrong.yaml", WRONG)]);
    let ended = desk.run(&["check", "wrong.yaml", "gone.yaml", "--format", "sarif"]);
    assert_eq!(ended.code, Some(1));
    let log = valid_sarif(&ended.stdout);
    let levels: Vec<&Value> =
        log["runs"][0]["results"].as_array().unwrap().iter().map(|result| &result["level"]).collect();
    assert_eq!(levels, ["error", "error"]);
    let ended = desk.run(&["check", "wrong.yaml", "gone.yaml", "--format", "github"]);
    assert_eq!(ended.code, Some(1));
    settings().bind(|| insta::assert_snapshot!("check_github", ended.shown()));
    let nothing = Desk::new(&[("good.yaml", super::GOOD)]);
    assert_eq!(nothing.run(&["check", "--format", "github"]).stdout, "");
    let empty = valid_sarif(&nothing.run(&["check", "--format", "sarif"]).stdout);
    assert_eq!(empty["runs"][0]["results"], Value::Array(Vec::new()));
}

#[test]
fn a_diff_shows_what_a_fix_then_writes() {
    let desk = Desk::new(&[("rules.yaml", ESCAPING), ("more.yaml", SHADOWED)]);
    let diff = desk.run(&["check", "--diff"]);
    assert_eq!(fs::read_to_string(desk.0.path().join("rules.yaml")).unwrap(), ESCAPING);
    let fix = desk.run(&["check", "--fix"]);
    settings().bind(|| {
        insta::assert_snapshot!("check_diff", diff.shown());
        insta::assert_snapshot!("check_fix", fix.shown());
    });
    let written = fs::read_to_string(desk.0.path().join("rules.yaml")).unwrap();
    assert_eq!(written, ESCAPING.replace("ne: eu\n", "ne: eu\n          absent: match\n"));
    assert_eq!(fs::read_to_string(desk.0.path().join("more.yaml")).unwrap(), SHADOWED);
    let again = desk.run(&["check", "--diff"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
}

#[test]
fn a_fix_keeps_line_breaks_and_the_byte_order_mark() {
    let text = format!("\u{feff}{}", ESCAPING.replace('\n', "\r\n"));
    let desk = Desk::new(&[("rules.yaml", &text)]);
    assert_eq!(desk.run(&["check", "--fix", "--deny-warnings"]).code, Some(0));
    let written = fs::read_to_string(desk.0.path().join("rules.yaml")).unwrap();
    assert_eq!(written, text.replace("ne: eu\r\n", "ne: eu\r\n          absent: match\r\n"));
}

#[test]
fn nothing_is_mended_in_rules_with_errors() {
    let desk = Desk::new(&[("rules.yaml", ESCAPING), ("wrong.yaml", WRONG)]);
    let (fix, diff) = (desk.run(&["check", "--fix"]), desk.run(&["check", "--diff"]));
    assert_eq!((fix.code, diff.code, diff.stdout.as_str()), (Some(1), Some(1), ""));
    assert!(diff.stderr.contains("there are errors"), "{}", diff.stderr);
    assert_eq!(fs::read_to_string(desk.0.path().join("rules.yaml")).unwrap(), ESCAPING);
}

#[test]
fn tools_and_tests_beside_the_rules_are_asked() {
    let rules = "policies: [ { id: no, match: pay, deny: {} }, { id: never, match: fly, deny: {} } ]";
    let tests = "cases: [ { name: paying is denied, call: { tool: pay }, expect: denied } ]";
    let desk = Desk::new(&[
        ("rules.yaml", rules),
        ("rules.test.yaml", tests),
        ("tools.json", r#"[{"name":"pay"}]"#),
    ]);
    let codes = |arguments: &[&str]| -> Vec<String> {
        let list: Vec<Value> = callgate::json::from_str(&desk.run(arguments).stdout).unwrap();
        list.iter().map(|problem| problem["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(&["check", "--format", "json"]), ["CG522"]);
    assert_eq!(codes(&["check", "--format", "json", "--tools", "tools.json"]), ["CG522", "CG502"]);
    assert!(codes(&["check", "rules.yaml", "--format", "json"]).is_empty());
}
