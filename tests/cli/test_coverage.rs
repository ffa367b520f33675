//! `callgate test --coverage`: output formats and exit status.

use callgate::json::Value;

use super::{TestDir, settings};

const RULES: &str = r#"callgate: 1
defaults: { unmatched: deny }
policies:
  - id: small-refunds
    match: { tool: refund, where: { path: $.input.amount, lte: 100 } }
    allow: {}

  - id: no-refunds-abroad
    match:
      tool: [refund, "credit_*"]
      where:
        - any:
            - { path: $.input.country, not_in: [NO, SE] }
            - not: { path: $.input.currency, in: [NOK, SEK] }
        - { expr: input.amount > 10 }
    deny: {}

  - id: resting
    mode: off
    match: refund
    deny: {}

  - id: frugal
    model: { max_tokens: { max: 500 } }
"#;
const SOME: &str = "
cases:
  - name: small refunds run
    call: { tool: refund, input: { amount: 5, currency: NOK } }
    expect: executed
  - name: large refunds are denied
    call: { tool: refund, input: { amount: 250, currency: NOK } }
    expect: { outcome: denied, code: unmatched }
  - name: what is no number is denied
    call: { tool: refund, input: { amount: a lot, country: DK } }
    expect: denied
";
const FULL_RULES: &str = "policies: [ { id: no-refunds, match: refund, deny: {} } ]";
const FULL: &str = "
cases:
  - { name: refunds are denied, call: { tool: refund }, expect: denied }
  - { name: the rest runs, call: { tool: get }, expect: executed }
";
const WRONG: &str = "cases: [ { name: refunds run, call: { tool: refund }, expect: executed } ]";

fn test_dir() -> TestDir {
    let dir = TestDir::new(&[]);
    for (folder, rules, tests) in [
        ("some", RULES, SOME),
        ("full", FULL_RULES, FULL),
        ("wrong", FULL_RULES, WRONG),
        ("broken", "polices: []", FULL),
    ] {
        let folder = dir.0.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("rules.yaml"), rules).unwrap();
        std::fs::write(folder.join("rules.test.yaml"), tests).unwrap();
    }
    dir
}

#[test]
fn uncovered_branches_are_shown_with_position_and_source() {
    let dir = test_dir();
    settings().bind(|| {
        insta::assert_snapshot!("test_coverage", dir.run(&["test", "some", "--coverage"]).transcript());
        insta::assert_snapshot!("test_coverage_full", dir.run(&["test", "full", "--coverage"]).transcript());
        let ended = dir.run(&["test", "some", "--coverage", "--coverage-min", "90"]);
        insta::assert_snapshot!("test_coverage_min", ended.stderr);
        let ended = dir.run(&["test", "some", "--coverage", "--format", "github"]);
        insta::assert_snapshot!("test_coverage_github", ended.stdout);
    });
    assert!(!dir.run(&["test", "some"]).stdout.contains("covered"), "only on request");
    assert!(!dir.run(&["test", "some", "--coverage"]).stdout.contains('\u{1b}'));
    let forced = dir.command(&["test", "some", "--coverage"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(forced.stdout).unwrap().contains("\u{1b}[31mnever"));
}

#[test]
fn too_little_coverage_fails() {
    let dir = test_dir();
    for (arguments, code) in [
        (&["some", "--coverage"][..], 0),
        (&["some", "--coverage-min", "0"], 0),
        (&["some", "--coverage-min", "100"], 1),
        (&["some", "--coverage-min", "100", "--format", "json"], 1),
        (&["some", "--coverage-min", "100", "--format", "junit"], 1),
        (&["some", "--coverage-min", "100", "--format", "github"], 1),
        (&["some", "--coverage-min", "100", "--format", "lcov"], 1),
        (&["full", "--coverage-min", "100"], 0),
        (&["full", "--coverage-min", "99.9%"], 0),
        (&["full", "--coverage-min", "100", "--filter", "rest"], 1),
        (&["wrong", "--coverage-min", "0"], 1),
        (&["full", "--coverage-min", "101"], 2),
        (&["full", "--coverage-min", "-1"], 2),
        (&["full", "--coverage-min", "NaN"], 2),
        (&["full", "--coverage-min", "most"], 2),
        (&["full", "--coverage", "--generate", "calls.jsonl"], 2),
    ] {
        let ended = dir.run(&[&["test"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}", ended.transcript());
        let complains = ended.stderr.contains("of the branches are covered");
        assert_eq!(complains, code == 1 && arguments[0] != "wrong", "{arguments:?}\n{}", ended.transcript());
    }
}

#[test]
fn json_results_contain_the_coverage() {
    let dir = test_dir();
    let read = |arguments: &[&str]| {
        let ended = dir.run(&[&["test", "--format", "json"], arguments].concat());
        callgate::json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let document = read(&["full", "--coverage"]);
    assert_eq!((&document["passed"], &document["coverage"]["percent"]), (&2.into(), &100.0.into()));
    assert_eq!(document["coverage"]["files"][0]["policies"][0]["id"], "no-refunds");
    assert!(read(&["full"]).get("coverage").is_none());
    assert!(read(&["broken", "--coverage"]).get("coverage").is_none());
}

#[test]
fn lcov_prints_only_the_tracefile_to_stdout() {
    let dir = test_dir();
    let full = dir.run(&["test", "full", "--format", "lcov"]);
    let tracefile = "TN:\nSF:full/rules.yaml\nFN:1,no-refunds\nFNDA:1,no-refunds\nFNF:1\nFNH:1\nBRDA:1,0,0,1\nBRDA:1,0,1,1\n\
                     BRDA:1,1,0,1\nBRDA:1,1,1,1\nBRDA:1,2,0,1\nBRF:5\nBRH:5\nDA:1,2\nLF:1\nLH:1\nend_of_record\n";
    assert_eq!(full.stdout, tracefile);
    assert!(full.stderr.contains("2 cases in 1 file: all passed"), "{}", full.stderr);
    let wrong = dir.run(&["test", "wrong", "--format", "lcov"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.stdout.starts_with("TN:\n") && wrong.stderr.contains("✗ refunds run"),
        "{}",
        wrong.transcript()
    );
    let broken = dir.run(&["test", "broken", "--format", "lcov"]);
    assert_eq!((broken.code, broken.stdout.as_str()), (Some(1), ""));
    assert!(broken.stderr.contains("polices"), "{}", broken.stderr);
}
