//! Regorus, with its virtual machine, which is faster than its interpreter. A program of 10,000 rules is longer than the machine takes, so that
//! each thousand is a program of its own.

use std::num::{NonZeroU32, NonZeroUsize};

use callgate::{Effect, ToolCall};
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::RegoVM;
use regorus::{Engine, PolicyLengthConfig, Value};

use crate::PolicyEngine;
use crate::rego::{QUERY, input, module, strictest};
use crate::workload::{Rule, rules};

/// The rules of a program.
const PROGRAM: usize = 1_000;

pub struct Regorus {
    machines: Vec<RegoVM>,
    inputs: Vec<Value>,
}

impl Regorus {
    pub fn new(size: usize, calls: &[ToolCall]) -> Self {
        let machines = rules(size).chunks(PROGRAM).map(machine).collect();
        let inputs = calls.iter().map(|call| Value::from_json_str(&input(call)).expect("an input")).collect();
        Self { machines, inputs }
    }
}

impl PolicyEngine for Regorus {
    fn decide(&mut self, call: usize) -> Effect {
        let mut decide = |machine: &mut RegoVM| {
            machine.set_input(self.inputs[call].clone());
            let effects = machine.execute().expect("a result");
            strictest(
                effects.as_set().expect("a set").iter().map(|effect| &**effect.as_string().expect("a name")),
            )
        };
        self.machines.iter_mut().map(&mut decide).max().expect("a program")
    }
}

fn machine(rules: &[Rule]) -> RegoVM {
    let mut engine = Engine::new();
    let most = NonZeroUsize::MAX;
    engine.set_policy_length_config(PolicyLengthConfig {
        max_col: NonZeroU32::MAX,
        max_file_bytes: most,
        max_lines: most,
    });
    engine.add_policy("rules.rego".to_owned(), module(rules)).expect("a module");
    let policy = engine.compile_with_entrypoint(&QUERY.into()).expect("a policy");
    let mut machine = RegoVM::new();
    machine.load_program(Compiler::compile_from_policy(&policy, &[QUERY]).expect("a program"));
    machine.set_max_instructions(usize::MAX);
    machine
}
