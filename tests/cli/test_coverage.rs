//! `callgate test --coverage`: what it shows, where, and when it fails.

use callgate::json::Value;

use super::{Desk, settings};

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

fn desk() -> Desk {
    let desk = Desk::new(&[]);
    for (folder, rules, tests) in [
        ("some", RULES, SOME),
        ("full", FULL_RULES, FULL),
        ("wrong", FULL_RULES, WRONG),
        ("broken", "polices: []", FULL),
    ] {
        let folder = desk.0.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("rules.yaml"), rules).unwrap();
        std::fs::write(folder.join("rules.test.yaml"), tests).unwrap();
    }
    desk
}

#[test]
fn what_is_missing_is_shown_with_its_place_and_its_words() {
    let desk = desk();
    settings().bind(|| {
        insta::assert_snapshot!("test_coverage", desk.run(&["test", "some", "--coverage"]).shown());
        insta::assert_snapshot!("test_coverage_full", desk.run(&["test", "full", "--coverage"]).shown());
        let ended = desk.run(&["test", "some", "--coverage", "--coverage-min", "90"]);
        insta::assert_snapshot!("test_coverage_min", ended.stderr);
        let ended = desk.run(&["test", "some", "--coverage", "--format", "github"]);
        insta::assert_snapshot!("test_coverage_github", ended.stdout);
    });
    assert!(!desk.run(&["test", "some"]).stdout.contains("covered"), "only where it is asked for");
    assert!(!desk.run(&["test", "some", "--coverage"]).stdout.contains('\u{1b}'));
    let forced = desk.command(&["test", "some", "--coverage"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(forced.stdout).unwrap().contains("\u{1b}[31mnever"));
}

#[test]
fn too_little_coverage_fails() {
    let desk = desk();
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
        let ended = desk.run(&[&["test"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}", ended.shown());
        let complains = ended.stderr.contains("of the branches are covered");
        assert_eq!(complains, code == 1 && arguments[0] != "wrong", "{arguments:?}\n{}", ended.shown());
    }
}

#[test]
fn programs_read_it_in_the_document_of_the_results() {
    let desk = desk();
    let read = |arguments: &[&str]| {
        let ended = desk.run(&[&["test", "--format", "json"], arguments].concat());
        callgate::json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let document = read(&["full", "--coverage"]);
    assert_eq!((&document["passed"], &document["coverage"]["percent"]), (&2.into(), &100.0.into()));
    assert_eq!(document["coverage"]["files"][0]["policies"][0]["id"], "no-refunds");
    assert!(read(&["full"]).get("coverage").is_none());
    assert!(read(&["broken", "--coverage"]).get("coverage").is_none());
}

#[test]
fn a_tracefile_stands_alone_on_stdout() {
    let desk = desk();
    let full = desk.run(&["test", "full", "--format", "lcov"]);
    let tracefile = "TN:\nSF:full/rules.yaml\nFN:1,no-refunds\nFNDA:1,no-refunds\nFNF:1\nFNH:1\nBRDA:1,0,0,1\nBRDA:1,0,1,1\n\
                     BRDA:1,1,0,1\nBRDA:1,1,1,1\nBRDA:1,2,0,1\nBRF:5\nBRH:5\nDA:1,2\nLF:1\nLH:1\nend_of_record\n";
    assert_eq!(full.stdout, tracefile);
    assert!(full.stderr.contains("2 cases in 1 file: all passed"), "{}", full.stderr);
    let wrong = desk.run(&["test", "wrong", "--format", "lcov"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stdout.starts_with("TN:\n") && wrong.stderr.contains("✗ refunds run"), "{}", wrong.shown());
    let broken = desk.run(&["test", "broken", "--format", "lcov"]);
    assert_eq!((broken.code, broken.stdout.as_str()), (Some(1), ""));
    assert!(broken.stderr.contains("polices"), "{}", broken.stderr);
}
