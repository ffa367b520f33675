//! Evaluation cases: each file under `tests/cases/` contains rules, tools and calls; its snapshot contains the outcomes. Add a file to
//! add a case.

use std::path::Path;

use callgate::call::{CallRecord, Outcome};
use callgate::json::Value;
use callgate::{Engine, SessionState, ToolDescriptor, engine};

use crate::{fixtures, recorded_calls};

pub struct Noon;

impl callgate::Clock for Noon {
    fn now(&self) -> jiff::Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }
}

fn text<'a>(case: &'a serde_yaml::Value, key: &str) -> &'a str {
    case.get(key).and_then(serde_yaml::Value::as_str).unwrap_or_default()
}

/// A case of a file.
pub struct Case {
    pub rules: String,
    /// The array of tools as JSON.
    pub tools: Value,
    /// The layers below the rules.
    pub layers: Vec<String>,
    pub records: Vec<CallRecord>,
}

impl Case {
    pub fn read(path: &Path) -> Self {
        let case: serde_yaml::Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let tools = match text(&case, "tools") {
            "" => Value::Array(Vec::new()),
            tools => callgate::json::from_str(tools).unwrap(),
        };
        let layers = ["prompt", "call"].map(|layer| text(&case, layer).to_owned());
        Self {
            rules: text(&case, "rules").to_owned(),
            tools,
            layers: layers.into_iter().filter(|rules| !rules.is_empty()).collect(),
            records: recorded_calls::records(text(&case, "calls")),
        }
    }

    /// The calls of each round.
    pub fn rounds(&self) -> impl Iterator<Item = &[CallRecord]> {
        recorded_calls::rounds(&self.records)
    }
}

/// Runs a case and prints one line per outcome, without revisions and durations.
pub fn run(path: &Path) -> String {
    let case = Case::read(path);
    let chains = match engine::load_text(&case.rules) {
        Ok(chains) => chains,
        Err(error) => return error.to_string(),
    };
    let tools: Vec<ToolDescriptor> = callgate::json::from_value(case.tools).unwrap();
    let mut session =
        Engine::builder(chains).keys(fixtures::keys()).tools(tools).clock(Noon).build().session();
    for rules in &case.layers {
        session = session.with_layer(engine::load_text(rules).unwrap_or_else(|error| panic!("{error}")));
    }
    let mut printed: String = recorded_calls::play(&mut session, &case.records).iter().map(print).collect();
    if session.state() != &SessionState::default() {
        printed.push_str(&format!("session: {}\n", session.state().document()));
    }
    printed
}

pub fn print(outcome: &Outcome) -> String {
    let mut value = callgate::json::to_value(outcome).unwrap();
    let members = value.as_object_mut().unwrap();
    for changing in ["revision", "duration_us"] {
        members.remove(changing);
    }
    members.retain(|_, value| !value.is_null());
    if let Some(approval) = members.get_mut("approval").and_then(Value::as_object_mut) {
        approval.remove("approvalToken");
    }
    let policies = members.remove("policies").unwrap();
    let mut printed = format!("{value}\n");
    for policy in policies.as_array().unwrap() {
        printed.push_str(&format!("  {policy}\n"));
    }
    printed
}

#[test]
fn each_case_matches_its_snapshot() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/cases");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::glob!("cases/*.yaml", |path| insta::assert_snapshot!(run(path))));
}
