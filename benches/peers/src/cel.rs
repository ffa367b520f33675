//! CEL. A program is one expression, so that the host finds the rules of a tool, the strictest first.

use std::collections::HashMap;

use callgate::{Effect, ToolCall};
use cel::{Context, Program, Value};

use crate::PolicyEngine;
use crate::workload::{FIELDS, Rule, Test, rules_by_tool};

pub struct Cel {
    programs: HashMap<String, Vec<(Effect, Program)>>,
    /// The tool and the arguments of each call.
    calls: Vec<(String, Context<'static, 'static>)>,
}

impl Cel {
    pub fn new(size: usize, calls: &[ToolCall]) -> Self {
        let program =
            |rule: &Rule| (rule.effect, Program::compile(&expression(rule)).expect("an expression"));
        let stricter =
            |rules: Vec<Rule>| rules.iter().filter(|rule| rule.effect > Effect::Run).map(program).collect();
        let programs = rules_by_tool(size).into_iter().map(|(tool, rules)| (tool, stricter(rules))).collect();
        Self { programs, calls: calls.iter().map(|call| (call.tool.clone(), context(call))).collect() }
    }
}

impl PolicyEngine for Cel {
    fn decide(&mut self, call: usize) -> Effect {
        let (tool, context) = &self.calls[call];
        let rules = self.programs.get(tool).map(Vec::as_slice).unwrap_or_default();
        let holds = |program: &Program| matches!(program.execute(context), Ok(Value::Bool(true)));
        rules.iter().find(|(_, program)| holds(program)).map_or(Effect::Run, |(effect, _)| *effect)
    }
}

fn expression(rule: &Rule) -> String {
    let condition = |(field, test): &(usize, Test)| {
        let path = format!("input.{}", FIELDS[*field].join("."));
        match test {
            Test::Equal(value) => format!("{path} == {value:?}"),
            Test::NotEqual(value) => format!("{path} != {value:?}"),
            Test::Above(bound) => format!("{path} > {bound}"),
            Test::Below(bound) => format!("{path} < {bound}"),
            Test::StartsWith(start) => format!("{path}.startsWith({start:?})"),
            Test::Contains(part) => format!("{path}.contains({part:?})"),
        }
    };
    rule.tests.iter().map(condition).collect::<Vec<_>>().join(" && ")
}

fn context(call: &ToolCall) -> Context<'static, 'static> {
    let input: serde_json::Value = serde_json::from_str(&call.input.to_string()).expect("arguments are JSON");
    let mut context = Context::default();
    context.add_variable("input", cel::to_value(input).expect("arguments are values")).expect("a variable");
    context
}
