//! `tools: tools.json` in rules: `check`, `run`, `explain` and `test` know the tools without `--tools`.

use super::TestDir;

const RULES: &str = "
tools: tools.json
policies:
  - { id: large, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} }
";
const TOOLS: &str = r#"[{ "name": "pay", "input_schema": { "type": "object", "properties": { "amount": { "type": "number" } } } }]"#;
const WRONG_CALL: &str =
    r#"{ "id": "c1", "tool": "pay", "input": { "amount": "101" }, "recorded": { "output": 1 } }"#;

#[test]
fn commands_use_the_tools_that_the_rules_declare() {
    let tests = "cases: [ { name: strings, call: { tool: pay, input: { amount: '101' } }, expect: { outcome: invalid } } ]";
    let dir = TestDir::new(&[
        ("rules.yaml", RULES),
        ("tools.json", TOOLS),
        ("other.json", r#"[{ "name": "pay" }]"#),
        ("typo.yaml", &RULES.replace("amount,", "amuont,")),
        ("rules.test.yaml", tests),
        ("call.jsonl", WRONG_CALL),
    ]);
    let typo = dir.run(&["check", "typo.yaml", "--deny-warnings"]);
    assert_eq!(typo.code, Some(1));
    assert!(
        typo.stdout.contains("CG503") && typo.stdout.contains("did you mean `amount`?"),
        "{}",
        typo.stdout
    );
    let run = dir.run(&["run", "--policies", "rules.yaml", "--format", "json", "call.jsonl"]);
    assert!(run.stdout.contains("\"invalid\""), "{}", run.transcript());
    let explained = dir.run(&["explain", "--policies", "rules.yaml", "--format", "json", "call.jsonl"]);
    assert!(explained.stdout.contains("\"invalid\""), "{}", explained.transcript());
    let tested = dir.run(&["test", "rules.yaml", "rules.test.yaml"]);
    assert_eq!(tested.code, Some(0), "{}", tested.transcript());
    let generated = dir.run(&["test", "--generate", "call.jsonl", "rules.yaml"]);
    assert!(generated.stdout.contains("outcome: invalid"), "{}", generated.transcript());
    // `--tools` replaces what the rules declare.
    let other = dir.run(&[
        "run",
        "--policies",
        "rules.yaml",
        "--tools",
        "other.json",
        "--format",
        "json",
        "call.jsonl",
    ]);
    assert!(!other.stdout.contains("\"invalid\""), "{}", other.transcript());
    assert_eq!(dir.run(&["check", "typo.yaml", "--tools", "other.json", "--deny-warnings"]).code, Some(0));
}

#[test]
fn tools_that_cannot_be_used_are_errors_of_the_rules() {
    let dir = TestDir::new(&[("rules.yaml", RULES), ("second.yaml", "tools: second.json")]);
    let write = |name: &str, text: &str| std::fs::write(dir.0.path().join(name), text).unwrap();
    let check = |paths: &[&str], why: &str| {
        let ended = dir.run(&[&["check"], paths].concat());
        assert_eq!(ended.code, Some(1), "{}", ended.transcript());
        assert!(ended.stdout.contains(why), "{why}: {}", ended.transcript());
    };
    check(&["rules.yaml"], "tools.json");
    write("tools.json", "{}");
    check(&["rules.yaml"], "is not a valid tools file");
    write("tools.json", TOOLS);
    write("second.json", r#"[{ "name": "pay" }]"#);
    check(&["rules.yaml", "second.yaml"], "two descriptions of the tool `pay` differ");
    write("second.json", TOOLS);
    assert_eq!(dir.run(&["check", "rules.yaml", "second.yaml"]).code, Some(0));
    write("rules.yaml", &RULES.replace("tools.json", "../tools.json"));
    let outside = dir.run(&["check", "rules.yaml"]);
    assert!(outside.stdout.contains("CG006"), "{}", outside.transcript());
    write("rules.yaml", &RULES.replace("tools.json", "[pay]"));
    check(&["rules.yaml"], "CG203");
}
