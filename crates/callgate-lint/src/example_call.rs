//! Example calls (witnesses): builds a call that a policy matches from its conditions, and confirms it with the engine.

use crate::condition_source::TestSource;
use crate::lint_context::LintContext;
use crate::policy_source::PolicySource;
use crate::scalars::is_literal;
use callgate::call::{CallView, Root, SessionState, Task, ToolCall};
use callgate::host::SystemClock;
use callgate::json::{Map, Number, Value, json};
use callgate::kernel::{Effect, Kernel};
use callgate::matcher::{NamePattern, Truth};
use callgate::path::PathStep;
use callgate::source::{MappingEntry, YamlNode};

/// A call with its session state.
pub(super) struct ExampleCall {
    pub(super) call: ToolCall,
    session: SessionState,
}

impl ExampleCall {
    /// Builds a call that the policy matches. Returns `None` if none could be built.
    pub(super) fn for_policy(checked: &LintContext<'_>, written: &PolicySource<'_>) -> Option<Self> {
        let tools = &written.policy.matcher.tools;
        let known = || checked.tools_for(written).first().map(|tool| tool.name.clone());
        let tool =
            if tools.is_empty() { Some("any_tool".to_owned()) } else { tools.iter().find_map(name_matching) };
        let mut call = ToolCall::recorded("example", &tool.or_else(known)?, json!({}));
        let servers = &written.policy.matcher.servers;
        if !servers.is_empty() {
            call.server = Some(servers.iter().find_map(name_matching)?);
        }
        let (mut input, mut context, mut session) = (json!({}), json!({}), json!({}));
        for test in written.required_tests().filter(|test| test.exists() != Some(false)) {
            let document = match test.root() {
                Some(Root::Input) => &mut input,
                Some(Root::Context) => &mut context,
                Some(Root::Session) => &mut session,
                _ => continue,
            };
            set_value(document, test.steps()?, passing_value(test)?)?;
        }
        call.input = input;
        call.context = if context.as_object().is_some_and(Map::is_empty) { Value::Null } else { context };
        let session = build_session(&session)?;
        let example = Self { call, session };
        let matches_tool = written
            .policy
            .matcher
            .matches_tool(example.call.server.as_deref().unwrap_or(""), &example.call.tool);
        let matches = || {
            let view = CallView::new(&example.call, &example.session);
            written.policy.matcher.eval(&view) == Truth::Yes
        };
        (matches_tool && matches()).then_some(example)
    }

    /// Whether the engine refuses the call because of this policy.
    pub(super) fn is_refused_by(&self, checked: &LintContext<'_>, policy: &str) -> bool {
        let layers = [checked.compiled.clone()].into_iter().collect();
        let Some(keys) = checked.keys() else { return false };
        let kernel = Kernel {
            layers: &layers,
            tools: checked.tool_set(),
            clock: &SystemClock,
            keys,
            listener: None,
            task: &Task::NONE,
            round: None,
        };
        let decision = kernel.decide(&self.call, &self.session);
        matches!(decision.effect(), Effect::Deny | Effect::Halt)
            && decision.reason().policy.as_deref() == Some(policy)
    }

    /// Formats the call as JSON.
    pub(super) fn to_json_string(&self) -> String {
        let mut members = Map::new();
        members.insert("tool", self.call.tool.clone().into());
        members.insert("input", self.call.input.clone());
        for (name, value) in [("server", json!(self.call.server)), ("context", self.call.context.clone())] {
            if !value.is_null() {
                members.insert(name, value);
            }
        }
        Value::Object(members).to_string()
    }
}

fn name_matching(pattern: &NamePattern) -> Option<String> {
    match pattern {
        NamePattern::Exact(name) => Some(name.clone()),
        NamePattern::Glob(glob) => Some(glob.replace('*', "x")),
        NamePattern::Regex(_) | NamePattern::Nothing => None,
    }
}

/// Builds the session state that the tests of a policy read.
fn build_session(document: &Value) -> Option<SessionState> {
    let mut session = SessionState::default();
    for (name, value) in document.as_object()? {
        match name.as_str() {
            "facts" => {
                for (fact, value) in value.as_object()? {
                    session.set_fact(fact, None, value.clone());
                }
            }
            // These result from calls and can't be set directly.
            "labels" | "calls" => return None,
            name => session.set_run_info(name, value.clone()),
        }
    }
    Some(session)
}

fn set_value(document: &mut Value, steps: &[PathStep], value: Value) -> Option<()> {
    let mut at = document;
    for step in steps {
        let PathStep::Name(name) = step else { return None };
        let members = match at {
            Value::Object(members) => members,
            Value::Null => {
                *at = json!({});
                at.as_object_mut()?
            }
            _ => return None,
        };
        at = members.entry(name.as_str()).or_insert(Value::Null);
    }
    // The later of two tests of one path sets the value. The engine decides whether it passes both.
    *at = value;
    Some(())
}

/// Returns a value that probably passes a test. The engine confirms it later.
fn passing_value(test: &TestSource<'_>) -> Option<Value> {
    let mut value = json!("x");
    for operator in test.operators() {
        if !is_literal(&operator.value) {
            return None;
        }
        value = match passing_operand(operator) {
            Some(passing) => passing,
            None => continue,
        };
    }
    Some(value)
}

fn passing_operand(operator: &MappingEntry) -> Option<Value> {
    let operand = &operator.value;
    let first = operand.items().map_or(Some(operand), |items| items.first())?;
    let text = first.as_str();
    Some(match operator.key.as_str() {
        "eq" | "in" => if operator.key == "in" { first } else { operand }.to_json(),
        "gt" => neighbour(operand, 1)?,
        "lt" => neighbour(operand, -1)?,
        "gte" | "lte" | "contains" => operand.to_json(),
        "ne" | "not_in" => match first.as_number() {
            Some(_) => neighbour(first, 7)?,
            None => json!("another"),
        },
        "starts_with" | "ends_with" => json!(text?),
        "inside" => json!(format!("{}/x", text?.trim_end_matches('/'))),
        "host" => json!(format!("https://{}/", text?.replace('*', "www"))),
        "domain" => json!(format!("ana@{}", text?.replace('*', "www"))),
        "type" => match text? {
            "null" => Value::Null,
            "boolean" => json!(true),
            "number" | "integer" => json!(1),
            "array" => json!([]),
            "object" => json!({}),
            _ => json!("x"),
        },
        "matches" => {
            let pattern = text?.trim_start_matches('^').trim_end_matches('$');
            let plain = !pattern.contains(|c: char| r"\.+*?()|[]{}^$".contains(c));
            json!(plain.then_some(pattern)?)
        }
        _ => return None,
    })
}

/// Returns a neighbour of a number, or a longer string. Returns `None` if there is none.
fn neighbour(node: &YamlNode, by: i64) -> Option<Value> {
    match (node.as_number(), node.as_str()) {
        (Some(number), _) => {
            let whole = number.as_i64().and_then(|whole| whole.checked_add(by)).map(Number::from);
            whole.or_else(|| Number::from_f64(number.as_f64()? + by as f64)).map(Value::Number)
        }
        (None, Some(text)) if by > 0 => Some(json!(format!("{text}x"))),
        (None, _) => None,
    }
}
