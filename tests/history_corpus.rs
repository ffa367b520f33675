//! The histories of `tests/dialects`, run under some rules: what every door to Callgate makes of them.

use callgate::call::Outcome;
use callgate::json::{self, Value, json};
use callgate::message::{Dialect, History};
use callgate::{Engine, EngineBuilder, Session, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};

use crate::cases::{self, Noon};
use crate::fixtures;

/// Rules under which calls run and are redacted, are suspended, and are denied.
pub const RULES: [&str; 3] = [
    "policies: [{ id: mails, match: '*', redact: { detect: [email] } }]",
    "policies: [{ id: ask, match: '*', approval: { message: 'Run it?', expires: 1h } }]",
    "policies: [{ id: never, match: '*', deny: { message: Not today } }]",
];

/// An engine with these rules.
pub fn engine(rules: &str) -> EngineBuilder {
    Engine::builder(load_text(rules).unwrap()).keys(fixtures::keys()).clock(Noon)
}

/// The result of every call.
pub fn output() -> Value {
    json!({ "done": true, "mail": "ann@example.com" })
}

struct Done;

impl ToolExecutor for Done {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(output().into())
    }
}

/// Runs the last round of a history. Returns the outcomes, and the messages.
pub async fn run(session: &mut Session, dialect: Dialect, document: &Value) -> (String, Value) {
    let mut history = History::read(dialect, document).unwrap();
    let round = session.run_round(&mut history, &Done).await.unwrap();
    printed(&json!(round.outcomes), &history.write(dialect))
}

/// Outcomes and messages, without what differs each time. Numbers of messages are equal by value, for not every language keeps how they
/// are written.
pub fn printed(outcomes: &Value, messages: &Value) -> (String, Value) {
    let messages = without_seals(&messages.to_string());
    (without_seals(&printed_outcomes(outcomes)), json::parse(&messages).unwrap())
}

/// Outcomes, without the name of their session.
pub fn printed_outcomes(outcomes: &Value) -> String {
    let outcome = |value: &Value| {
        let mut outcome: Outcome = json::from_value(value.clone()).unwrap();
        outcome.session = None;
        cases::print(&outcome)
    };
    outcomes.as_array().unwrap().iter().map(outcome).collect()
}

/// A text without the seals of approval requests and states, which differ each time.
fn without_seals(text: &str) -> String {
    let mut parts = text.split("cg2.");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("SEAL");
        shown.push_str(part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "._-".contains(c)));
    }
    shown
}
