//! Events that agents sent in sessions like those of `real_agents.rs`, one file for each agent and version, and the answer to each.

use std::fs;

use callgate::json::{self, Value};

use super::TestDir;

const RECORDINGS: [(&str, &str); 4] =
    [("claude-code", "2.1.332"), ("codex", "0.169.0"), ("gemini-cli", "0.61.0"), ("cline", "3.0.65")];

#[test]
fn recorded_events_get_the_recorded_answers() {
    let folder = crate::fixtures::root().join("tests/cli/hook/recorded");
    let rules = fs::read_to_string(folder.join("rules.yaml")).unwrap();
    for (agent, version) in RECORDINGS {
        let dir = TestDir::new(&[("rules.yaml", &rules)]);
        let recording = fs::read_to_string(folder.join(format!("{agent}-{version}.jsonl"))).unwrap();
        assert!(recording.lines().count() > 5, "{agent}");
        for (number, line) in recording.lines().enumerate() {
            let recorded = json::parse(line).unwrap();
            let ended = dir.hook(agent, &recorded["event"]);
            let answer = &recorded["answer"];
            let text = |member: &str| answer[member].as_str().unwrap_or_default();
            assert_eq!(
                (ended.code.map(Value::from), ended.stdout.trim(), ended.stderr.trim()),
                (answer.get("status").cloned(), text("stdout"), text("stderr")),
                "{agent}, line {}",
                number + 1
            );
        }
    }
}
