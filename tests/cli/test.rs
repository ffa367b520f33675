//! `callgate test`: selection of tests, output, and exit status.

use callgate::json::Value;

use super::{TestDir, settings};

const RULES: &str = "policies: [ { id: no-large-refunds, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, deny: {} } ]";
const PASSING: &str = "
cases:
  - name: small refunds run
    call: { tool: refund, input: { amount: 5 } }
    expect: executed
  - name: large refunds are denied
    call: { tool: refund, input: { amount: 250 } }
    expect: { outcome: denied, policy: no-large-refunds }
";
const FAILING: &str = "
cases:
  - name: medium refunds are denied
    call: { tool: refund, input: { amount: 50 } }
    expect: denied
";
const BROKEN: &str = "
cases:
  - name: large refunds are denied
    call: { tool: refund, input: { amount: 250 } }
    expect: { outcome: denied, polcy: no-large-refunds }
";

fn test_dir() -> TestDir {
    let dir = TestDir::new(&[]);
    for (folder, files) in [
        ("good", &[("rules.yaml", RULES), ("rules.test.yaml", PASSING)][..]),
        ("bad", &[("rules.yaml", RULES), ("a.test.yaml", PASSING), ("b.test.yml", FAILING)]),
        ("broken", &[("rules.yaml", RULES), ("rules.test.yaml", BROKEN)]),
        ("broken_rules", &[("rules.yaml", "polices: []"), ("rules.test.yaml", BROKEN)]),
        ("untested", &[("rules.yaml", RULES)]),
        ("tests", &[("rules.test.yaml", PASSING)]),
        ("empty", &[]),
    ] {
        std::fs::create_dir(dir.0.path().join(folder)).unwrap();
        for (name, text) in files {
            std::fs::write(dir.0.path().join(folder).join(name), text).unwrap();
        }
    }
    dir
}

#[test]
fn exit_status_reports_the_result() {
    let dir = test_dir();
    for (arguments, code) in [
        (&["good"][..], 0),
        (&["bad"], 1),
        (&["bad", "--filter", "small"], 0),
        (&["bad", "--filter", "b.test.yml"], 1),
        (&["bad/rules.yaml", "bad/a.test.yaml"], 0),
        (&["bad/rules.yaml", "bad/b.test.yml"], 1),
        (&["untested", "tests"], 0),
        (&["broken"], 1),
        (&["broken_rules"], 1),
        (&["untested"], 2),
        (&["tests"], 2),
        (&["empty"], 2),
        (&["nowhere"], 2),
        (&["good", "nowhere"], 2),
        (&["good", "--filter", "something else"], 2),
        (&["good", "--format", "xml"], 2),
    ] {
        let ended = dir.run(&[&["test"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}", ended.transcript());
    }
}

#[test]
fn results_go_to_stdout_and_errors_to_stderr() {
    let dir = test_dir();
    settings().bind(|| {
        insta::assert_snapshot!("test_good", dir.run(&["test", "good"]).transcript());
        insta::assert_snapshot!("test_bad", dir.run(&["test", "bad"]).transcript());
        insta::assert_snapshot!("test_broken", dir.run(&["test", "broken"]).transcript());
        insta::assert_snapshot!("test_broken_rules", dir.run(&["test", "broken_rules"]).transcript());
        insta::assert_snapshot!("test_nowhere", dir.run(&["test", "good", "nowhere"]).transcript());
    });
    for (arguments, told) in [
        (&["test", "untested"][..], "there are no tests below `untested`; add some in a file such as"),
        (&["test", "tests"], "these paths contain only tests; add the rules"),
        (&["test", "good", "--filter", "elsewhere"], "no case name or file name contains `elsewhere`"),
    ] {
        let ended = dir.run(arguments);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
}

#[test]
fn tests_everything_below_without_paths() {
    let dir = TestDir::new(&[("rules.yaml", RULES), ("rules.test.yaml", PASSING)]);
    assert_eq!(dir.run(&["test"]).code, Some(0));
}

#[test]
fn json_output_is_always_one_document() {
    let dir = test_dir();
    let read = |folder: &str| {
        let ended = dir.run(&["test", folder, "--format", "json"]);
        assert_eq!(ended.stderr, "", "{folder}");
        callgate::json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let count = |document: &Value, of: &str| document[of].as_array().map(Vec::len).unwrap();
    let good = read("good");
    assert_eq!((&good["version"], &good["passed"], &good["failed"]), (&1.into(), &2.into(), &0.into()));
    assert_eq!((count(&good, "problems"), count(&good, "files")), (0, 1));
    let bad = read("bad");
    assert_eq!((&bad["passed"], &bad["failed"]), (&2.into(), &1.into()));
    let failure = &bad["files"][1]["cases"][0]["failures"][0];
    assert_eq!((&failure["expected"], &failure["actual"]), (&"denied".into(), &"executed".into()));
    assert_eq!(failure["place"]["line"], 5);
    let broken = read("broken");
    assert_eq!((&broken["revision"], &broken["problems"][0]["code"]), (&Value::Null, &"CG201".into()));
    assert_eq!((count(&broken, "problems"), count(&broken, "files")), (1, 0));
    let both = read("broken_rules");
    assert_eq!(count(&both, "problems"), 2);
}

#[test]
fn test_prints_colours_only_on_request() {
    let dir = test_dir();
    assert!(!dir.run(&["test", "bad"]).stdout.contains('\u{1b}'));
    let forced = dir.command(&["test", "bad"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(forced.stdout).unwrap().contains("\u{1b}[31m"));
}

#[test]
fn surviving_mutants_fail_the_exit_status() {
    let held = "
cases:
  - name: large refunds are denied, and nothing else
    call: { tool: refund, input: { amount: 101 } }
    rows:
      - { expect: denied }
      - { input: { amount: 100 }, expect: executed }
      - { tool: pay, expect: executed }
";
    let dir = test_dir();
    std::fs::create_dir(dir.0.path().join("held")).unwrap();
    std::fs::write(dir.0.path().join("held/rules.yaml"), RULES).unwrap();
    std::fs::write(dir.0.path().join("held/rules.test.yaml"), held).unwrap();
    let mutate = |arguments: &[&str]| dir.run(&[&["test", "--mutate"], arguments].concat());
    for (arguments, code, told) in [
        (&["held"][..], 0, "7 changes: 7 noticed, 0 survived"),
        (&["good"], 1, "7 changes: 3 noticed, 4 survived"),
        (&["good", "--filter", "no-large"], 1, "4 survived"),
        (&["good", "--filter", "rules.yaml"], 1, "4 survived"),
        (&["good", "--filter", "elsewhere"], 2, "no policy that can be mutated has `elsewhere`"),
        (&["bad"], 1, "mutation testing needs a passing suite"),
        (&["broken"], 1, "`polcy`"),
        (&["untested"], 2, "there are no tests"),
    ] {
        let ended = mutate(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}", ended.transcript());
        assert!(ended.transcript().contains(told), "{arguments:?}\n{}", ended.transcript());
    }
    settings().bind(|| insta::assert_snapshot!("test_mutate", mutate(&["good"]).transcript()));
    let document: Value = callgate::json::from_str(&mutate(&["good", "--format", "json"]).stdout).unwrap();
    let survivors = document["mutations"]["survivors"].as_array().unwrap();
    assert_eq!((&document["version"], survivors.len()), (&1.into(), 4));
    assert!(
        survivors.iter().all(|survivor| survivor["policy"] == "no-large-refunds" && survivor["line"] == 1)
    );
    assert_eq!(std::fs::read_to_string(dir.0.path().join("good/rules.yaml")).unwrap(), RULES);
}
