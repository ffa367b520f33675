//! The rules as a Rego module, for OPA and Regorus: each is a partial rule whose first expression tests the tool, which OPA indexes.

use std::fmt::Write as _;

use callgate::json::json;
use callgate::{Effect, ToolCall};

use crate::workload::{FIELDS, Rule, Test};

/// The query for the effects of the rules that hold.
pub const QUERY: &str = "data.callgate.effects";

pub fn module(rules: &[Rule]) -> String {
    let mut module = "package callgate\n\nimport rego.v1\n".to_owned();
    rules.iter().for_each(|rule| write_rule(rule, &mut module));
    module
}

/// The input document of a call.
pub fn input(call: &ToolCall) -> String {
    json!({ "tool": call.tool.as_str(), "args": call.input.clone() }).to_string()
}

/// The strictest of the effects that the module gives.
pub fn strictest<'e>(effects: impl IntoIterator<Item = &'e str>) -> Effect {
    let effect = |name| match name {
        "deny" => Effect::Deny,
        "suspend" => Effect::Suspend,
        _ => Effect::Run,
    };
    effects.into_iter().map(effect).max().unwrap_or(Effect::Run)
}

fn write_rule(rule: &Rule, module: &mut String) {
    let effect = match rule.effect {
        Effect::Deny => "deny",
        Effect::Suspend => "suspend",
        _ => "run",
    };
    let tool = match (rule.tool.strip_prefix('/'), rule.tool.strip_suffix('*')) {
        (Some(regex), _) => format!("regex.match(`{}`, input.tool)", regex.trim_end_matches('/')),
        (None, Some(start)) => format!("startswith(input.tool, {start:?})"),
        (None, None) => format!("input.tool == {:?}", rule.tool),
    };
    let condition = |(field, test): &(usize, Test)| {
        let path = format!("input.args.{}", FIELDS[*field].join("."));
        match test {
            Test::Equal(value) => format!("{path} == {value:?}"),
            Test::NotEqual(value) => format!("{path} != {value:?}"),
            Test::Above(bound) => format!("{path} > {bound}"),
            Test::Below(bound) => format!("{path} < {bound}"),
            Test::StartsWith(start) => format!("startswith({path}, {start:?})"),
            Test::Contains(part) => format!("contains({path}, {part:?})"),
        }
    };
    let conditions: Vec<String> = rule.tests.iter().map(condition).collect();
    write!(module, "\neffects contains {effect:?} if {{\n\t{tool}\n\t{}\n}}\n", conditions.join("\n\t"))
        .expect("text can be written to");
}
