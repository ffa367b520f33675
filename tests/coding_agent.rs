//! The shipped bundle for coding agents: everyday sessions pass without a question, and a file of ten lines adapts it.

use std::sync::Arc;

use callgate::call::{Outcome, OutcomeKind};
use callgate::json::json;
use callgate::{Engine, policy};

use crate::recorded_calls::{play, project, records, sessions};

fn file(name: &str) -> String {
    std::fs::read_to_string(project(&format!("policies/coding-agent/{name}"))).unwrap()
}

/// The bundle, with another file beside it.
fn engine(ours: &str) -> Engine {
    let names = ["names.yaml", "risks.yaml", "rules.yaml"];
    let texts = names.map(|name| (name, file(name))).into_iter().chain([("ours.yaml", ours.to_owned())]);
    let built = policy::build_texts(texts);
    let rules = built.policies.unwrap_or_else(|| panic!("{:?}", built.diagnostics));
    Engine::builder(Arc::new(rules)).build()
}

fn outcome(engine: &Engine, command: &str) -> Outcome {
    let call = json!({
        "id": "call", "tool": "Bash", "input": { "command": command },
        "context": { "workspace": "/work", "cwd": "/work" }, "recorded": { "output": "ok" },
    });
    play(&mut engine.session(), &records(&call.to_string())).remove(0)
}

#[test]
fn everyday_sessions_pass_without_a_question() {
    let engine = engine("policies: []");
    for (session, calls) in sessions(records(&file("sessions/everyday.jsonl"))) {
        for outcome in play(&mut engine.session(), &calls) {
            assert_eq!(
                outcome.outcome,
                OutcomeKind::Executed,
                "{session} {}: {:?}",
                outcome.id,
                outcome.reason
            );
        }
    }
}

/// The file that the README shows.
#[test]
fn ten_lines_adapt_the_bundle() {
    let page = file("README.md");
    let ours = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(ours.lines().count() <= 10, "{ours}");
    let (shipped, adapted) = (engine("policies: []"), engine(ours));
    for (command, before, after) in [
        ("git push --force", OutcomeKind::Suspended, OutcomeKind::Denied),
        ("cargo install --root /opt/tools x", OutcomeKind::Suspended, OutcomeKind::Executed),
        ("doit deploy", OutcomeKind::Executed, OutcomeKind::Denied),
        ("cargo test", OutcomeKind::Executed, OutcomeKind::Executed),
    ] {
        assert_eq!(outcome(&shipped, command).outcome, before, "{command}");
        assert_eq!(outcome(&adapted, command).outcome, after, "{command}");
    }
}
