//! The shipped bundle for a shop's support agents, over recorded sessions and over made-up ones that break its rules.

use crate::playback::{engine, play, project, records, sessions};

#[test]
fn probe() {
    let Ok(path) = std::env::var("PROBE") else { return };
    let engine = engine("policies/retail");
    for (name, calls) in sessions(records(&std::fs::read_to_string(path).unwrap())) {
        for outcome in play(&engine, &calls) {
            let denies: Vec<String> = outcome
                .policies
                .iter()
                .filter(|policy| !matches!(serde_json::to_value(policy).unwrap()["verdict"].as_str(), Some("pass")))
                .map(|policy| serde_json::to_string(policy).unwrap())
                .collect();
            println!(
                "P\t{name}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                outcome.id,
                outcome.tool,
                serde_json::to_value(outcome.outcome).unwrap().as_str().unwrap(),
                outcome.reason.code,
                outcome.reason.policy.clone().unwrap_or_default(),
                outcome.reason.message,
                denies.join(" ")
            );
        }
    }
    let _ = project("");
}
