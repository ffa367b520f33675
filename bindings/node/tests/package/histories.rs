//! The histories of `tests/dialects` become the same in Node as in Rust.

use std::fs;

use callgate::json::{self, Value, json};
use callgate::message::{Dialect, History};
use callgate::{Engine, Keys, ToolCall, ToolError, ToolExecutor, ToolResponse};

use crate::corpus::{Noon, comparable, in_node};
use crate::installed_package::project;

/// Rules under which calls run and are redacted, are suspended, and are denied.
const RULES: [&str; 3] = [
    "policies: [{ id: mails, match: '*', redact: { detect: [email] } }]",
    "policies: [{ id: ask, match: '*', approval: { message: 'Run it?', expires: 1h } }]",
    "policies: [{ id: never, match: '*', deny: { message: Not today } }]",
];

fn output() -> Value {
    json!({ "done": true, "mail": "ann@example.com" })
}

struct Done;

impl ToolExecutor for Done {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(output().into())
    }
}

/// Runs the last round of a history.
fn in_rust(rules: &str, dialect: Dialect, messages: &Value) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let engine = Engine::builder(callgate::load_text(rules).unwrap())
        .keys(Keys::parse(&"5a".repeat(32)).unwrap())
        .clock(Noon)
        .build();
    let mut history = History::read(dialect, messages).unwrap();
    let mut session = engine.session().with_name("s");
    let round = runtime.block_on(session.run_round(&mut history, &Done)).unwrap();
    json!({ "outcomes": round.outcomes, "messages": history.write(dialect) })
}

/// Without the seals of approval requests and states, which differ each time.
fn without_seals(text: &str) -> String {
    let mut parts = text.split("cg2.");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("SEAL");
        shown.push_str(part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "._-".contains(c)));
    }
    shown
}

#[test]
fn histories_become_the_same_in_node_as_in_rust() {
    let mut histories = Vec::new();
    for dialect in Dialect::ALL {
        for entry in fs::read_dir(project().join("tests/dialects").join(dialect.name())).unwrap() {
            let path = entry.unwrap().path();
            let messages = json::parse(&fs::read_to_string(&path).unwrap()).unwrap();
            histories.extend(RULES.map(|rules| (path.clone(), rules, dialect, messages.clone())));
        }
    }
    assert!(histories.len() > 25 * RULES.len(), "the corpus was not found");
    let played = in_node(histories.iter().map(|(_, rules, dialect, messages)| {
        json!({ "rules": rules, "dialect": dialect.name(), "messages": messages, "output": output() })
    }));
    assert_eq!(played.len(), histories.len());
    for ((path, rules, dialect, messages), played) in histories.iter().zip(played) {
        let own = comparable(in_rust(rules, *dialect, messages));
        assert_eq!(without_seals(&comparable(played)), without_seals(&own), "{} {rules}", path.display());
    }
}
