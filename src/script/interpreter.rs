//! Interpreter for compiled programs: program + host → value. Values are borrowed, not copied, and every step counts against the limits.

use regex::Regex;

use super::assignment::{read_element, read_property};
use super::code_branch;
use super::control_flow::{ControlFlow, EffectError, EvalResult, World, into_control_flow};
use super::fuel::{DepthGuard, EvalError, Fuel, ScriptLimits};
use super::operators::{negate, not};
use super::program::{Code, CodeNode, FunctionBody, Program, SourcePosition};
use super::script_function::EffectKind;
use super::value::{ScriptValue, ValueKind};
use crate::call::fact_key;

/// The cost of searching a string for a regular expression, in scans.
const REGEX_SCANS: usize = 8;

/// One run of a program.
pub(super) struct Interpreter<'r, W> {
    program: &'r Program,
    pub(super) host: W,
    pub(super) fuel: Fuel,
    slots: Vec<ScriptValue<'r>>,
    /// The first slot of the running function.
    pub(super) first_slot: usize,
    pub(super) depth: usize,
    pub(super) calls: usize,
}

impl<'r, W: World<'r>> Interpreter<'r, W> {
    pub(super) fn new(program: &'r Program, host: W, fuel: Fuel) -> Self {
        Self { program, host, fuel, slots: Vec::new(), first_slot: 0, depth: 0, calls: 0 }
    }

    /// Runs the program with values for its first slots.
    pub(super) fn run(&mut self, given: Vec<ScriptValue<'r>>) -> EvalResult<'r> {
        let program = self.program;
        self.run_body(&program.main, given)
    }

    /// Runs the main program, or a part of it that reads no variables of the rest.
    pub(super) fn run_part(&mut self, part: &'r CodeNode) -> EvalResult<'r> {
        let program = self.program;
        self.run_code(program.main.slot_count, part, Vec::new())
    }

    fn run_body(&mut self, body: &'r FunctionBody, given: Vec<ScriptValue<'r>>) -> EvalResult<'r> {
        if let Some(branch) = body.branch {
            code_branch::enter(branch);
        }
        self.run_code(body.slot_count, &body.code, given)
    }

    fn run_code(
        &mut self,
        slot_count: usize,
        code: &'r CodeNode,
        given: Vec<ScriptValue<'r>>,
    ) -> EvalResult<'r> {
        let (base, calls) = (self.first_slot, self.calls);
        if calls > self.fuel.limits.call_depth {
            let ScriptLimits { subject, call_depth: calls, .. } = self.fuel.limits;
            let message = format!("{subject} nests more than {calls} function calls");
            return Err(ControlFlow::LimitExceeded(message, code.position));
        }
        self.first_slot = self.slots.len();
        self.calls += 1;
        self.slots.extend(given);
        self.slots.resize(self.first_slot + slot_count, ScriptValue::Null);
        let result = self.evaluate_node(code);
        self.slots.truncate(self.first_slot);
        (self.first_slot, self.calls) = (base, calls);
        match result {
            Err(ControlFlow::Return(value)) => Ok(value),
            other => other,
        }
    }

    /// Whether evaluating a part has no effect.
    pub(super) fn is_pure(&self) -> bool {
        self.program.is_pure
    }

    pub(super) fn evaluate_node(&mut self, node: &'r CodeNode) -> EvalResult<'r> {
        self.fuel.spend_step().map_err(into_control_flow(node.position))?;
        if self.depth >= self.fuel.limits.nesting {
            let message = format!("{} nests too deeply", self.fuel.limits.subject);
            return Err(ControlFlow::LimitExceeded(message, node.position));
        }
        self.depth += 1;
        let _guard = DepthGuard::enter();
        let result = self.evaluate_code(node);
        self.depth -= 1;
        result
    }

    /// Recursive: one stack frame a nesting level, so code with large locals has a function of its own.
    fn evaluate_code(&mut self, node: &'r CodeNode) -> EvalResult<'r> {
        let spot = node.position;
        match &node.code {
            Code::Null => Ok(ScriptValue::Null),
            Code::Boolean(value) => Ok(ScriptValue::Boolean(*value)),
            Code::Number(number) => Ok(ScriptValue::Number(*number)),
            Code::Literal(number) => Ok(ScriptValue::Json(number)),
            Code::String(text) => Ok(ScriptValue::Borrowed(text)),
            Code::Member(member) => self.host.read_member(*member).map_err(into_control_flow(spot)),
            Code::Named(value) => self.host.read_named(value).map_err(into_control_flow(spot)),
            Code::Data(data, keys) => data.read(keys).map_err(into_control_flow(spot)),
            Code::InData(wanted, index) => self.evaluate_in_data(wanted, index, spot),
            Code::IsTool(patterns) => self.evaluate_is_tool(patterns, spot),
            Code::Slot(slot) => Ok(self.slot(*slot).clone()),
            Code::Array(items) => self.evaluate_array(items, spot),
            Code::Object(members) => self.evaluate_object(members, spot),
            Code::And(operands) => self.short_circuit(operands, true),
            Code::Or(operands) => self.short_circuit(operands, false),
            Code::Coalesce(operands) => self.coalesce(operands),
            Code::Exists(operand, existence) => self.evaluate_existence(operand, *existence),
            Code::OptionalChain(value, slot, rest) => self.evaluate_optional_chain(value, *slot, rest),
            Code::OptionalMember(operands) => self.evaluate_optional_member(operands, spot),
            Code::Not(operand) => self.apply_unary(operand, not, spot),
            Code::Negate(operand) => self.apply_unary(operand, negate, spot),
            Code::Binary(_, operator, operands) => self.apply_binary(operands, *operator, spot),
            Code::Property(object, key) => self.evaluate_property(object, key, spot),
            Code::Index(operands) => self.evaluate_index(operands, spot),
            Code::FactEntry(operands) => self.evaluate_fact_entry(operands, spot),
            Code::Function(_, run, arguments) => self.call_builtin(*run, arguments, spot),
            Code::Matches(text, regex) => self.evaluate_matches(text, regex, spot),
            Code::Detects(value, redactor) => self.evaluate_detects(value, redactor, spot),
            Code::Mentioned(operands, format) => self.evaluate_mentioned(operands, *format, spot),
            Code::Closure(call) => self.apply_closure(call, spot),
            Code::CallClosure(closure, arguments) => self.call_closure_variable(closure, arguments),
            Code::Mutation(how, target, arguments) => self.evaluate_mutation(*how, target, arguments, spot),
            Code::Print(form, value) => self.print(*form, value, spot),
            Code::Effect(kind, arguments) => self.evaluate_effect(*kind, arguments, spot),
            Code::Call(function, arguments) => self.call_function(*function, arguments, spot),
            Code::CallShared(functions, index, arguments) => {
                self.call_shared(&functions.program, *index, arguments, spot)
            }
            Code::Let(slot, value) => self.evaluate_let(*slot, value),
            Code::Assign(target, operator, value) => self.evaluate_assignment(target, *operator, value, spot),
            Code::If(condition, then, otherwise) => {
                if self.evaluate_boolean(condition)? {
                    self.evaluate_node(then)
                } else {
                    self.evaluate_node(otherwise)
                }
            }
            Code::Switch(switch) => self.run_switch(switch),
            Code::InRange(wanted, range) => self.evaluate_in_range(wanted, range),
            Code::Slice(value, range) => self.evaluate_slice(value, range, spot),
            Code::While(condition, body) => self.run_loop(condition.as_deref(), body),
            Code::For(parts) => self.run_for(parts),
            Code::Try(attempt, error, handler) => self.try_catch(attempt, *error, handler),
            Code::Throw(value) => self.evaluate_throw(value, spot),
            Code::Return(value) => Err(ControlFlow::Return(self.evaluate_node(value)?)),
            Code::Break(value) => Err(ControlFlow::Break(self.evaluate_node(value)?)),
            Code::Continue => Err(ControlFlow::Continue),
            Code::Block(nodes) => self.evaluate_block(nodes),
        }
    }

    fn apply_unary(
        &mut self,
        operand: &'r CodeNode,
        change: fn(&ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        change(&self.evaluate_node(operand)?).map_err(into_control_flow(spot))
    }

    fn apply_binary(
        &mut self,
        operands: &'r [CodeNode; 2],
        compare: fn(&Fuel, &ScriptValue<'r>, &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let [a, b] = self.evaluate_pair(operands)?;
        self.charge_scan([&a, &b], spot)?;
        compare(&self.fuel, &a, &b).map_err(into_control_flow(spot))
    }

    fn evaluate_property(
        &mut self,
        object: &'r CodeNode,
        key: &'r str,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(object)?;
        read_property(&value, key).map_err(|error| match error {
            EvalError::Absent(_) if object.is_facts() => {
                ControlFlow::Absent(format!("the fact `{key}` is not stored yet"), spot)
            }
            error => into_control_flow(spot)(error),
        })
    }

    fn evaluate_index(&mut self, operands: &'r [CodeNode; 2], spot: SourcePosition) -> EvalResult<'r> {
        let [container, index] = self.evaluate_pair(operands)?;
        read_element(&container, &index).map_err(into_control_flow(spot))
    }

    fn evaluate_fact_entry(&mut self, operands: &'r [CodeNode; 2], spot: SourcePosition) -> EvalResult<'r> {
        let [container, key] = self.evaluate_pair(operands)?;
        let text = match (container.kind(), key.kind()) {
            (ValueKind::Object(_), ValueKind::Number(_) | ValueKind::Boolean(_)) => key
                .to_json(&self.fuel)
                .ok()
                .as_ref()
                .and_then(fact_key)
                .map(|text| ScriptValue::String(text.into())),
            _ => None,
        };
        read_element(&container, text.as_ref().unwrap_or(&key)).map_err(into_control_flow(spot))
    }

    fn evaluate_matches(
        &mut self,
        text: &'r CodeNode,
        regex: &Regex,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let text = self.evaluate_node(text)?;
        match text.kind() {
            ValueKind::String(text) => {
                // A regular expression takes longer for a byte than a scan.
                let bytes = text.len().saturating_mul(REGEX_SCANS);
                self.fuel.spend_scan(bytes).map_err(into_control_flow(spot))?;
                Ok(ScriptValue::Boolean(regex.is_match(text)))
            }
            _ => {
                let found = text.json_type();
                Err(ControlFlow::Error(format!("`matches` takes a string, this is of type {found}"), spot))
            }
        }
    }

    fn evaluate_effect(
        &mut self,
        kind: EffectKind,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let given = self.evaluate_nodes(arguments)?;
        self.request_effect(kind, given, spot)
    }

    fn call_shared(
        &mut self,
        functions: &'r Program,
        index: usize,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let given = self.evaluate_nodes(arguments)?;
        let caller = std::mem::replace(&mut self.program, functions);
        let result = self.call_body(index, given, spot);
        self.program = caller;
        result
    }

    fn call_function(
        &mut self,
        function: usize,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let given = self.evaluate_nodes(arguments)?;
        self.call_body(function, given, spot)
    }

    fn call_body(
        &mut self,
        function: usize,
        given: Vec<ScriptValue<'r>>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let program = self.program;
        match program.functions.get(function) {
            Some(body) => self.run_body(body, given),
            None => Err(ControlFlow::LimitExceeded("the function is missing".to_owned(), spot)),
        }
    }

    pub(super) fn slot(&self, slot: usize) -> &ScriptValue<'r> {
        self.slots.get(self.first_slot + slot).unwrap_or(&ScriptValue::Null)
    }

    pub(super) fn set_slot(&mut self, slot: usize, value: ScriptValue<'r>) {
        if let Some(entry) = self.slots.get_mut(self.first_slot + slot) {
            *entry = value;
        }
    }

    pub(super) fn slot_mut(&mut self, slot: usize) -> (&Fuel, Option<&mut ScriptValue<'r>>) {
        (&self.fuel, self.slots.get_mut(self.first_slot + slot))
    }

    pub(super) fn evaluate_boolean(&mut self, node: &'r CodeNode) -> Result<bool, ControlFlow<'r>> {
        let value = self.evaluate_node(node)?;
        match value {
            ScriptValue::Boolean(value) => Ok(value),
            ScriptValue::Json(crate::json::Value::Bool(value)) => Ok(*value),
            other => {
                let found = other.json_type();
                let message = format!("expected a boolean, found a value of type {found}");
                Err(ControlFlow::Error(message, node.position))
            }
        }
    }

    /// Counts the scan of an operator's or function's arguments, beside the steps that it counts itself.
    pub(super) fn charge_scan<const N: usize>(
        &self,
        values: [&ScriptValue<'r>; N],
        spot: SourcePosition,
    ) -> Result<(), ControlFlow<'r>> {
        values
            .into_iter()
            .try_for_each(|value| self.fuel.spend_scan(value.scan_size()))
            .map_err(into_control_flow(spot))
    }

    fn request_effect(
        &mut self,
        kind: EffectKind,
        given: Vec<ScriptValue<'r>>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        match self.host.request_effect(kind, given, &self.fuel) {
            Ok(value) => Ok(value),
            Err(EffectError::Exception(value)) => Err(ControlFlow::Exception(value, spot)),
            Err(EffectError::Error(error)) => Err(into_control_flow(spot)(error)),
            Err(EffectError::End) => Err(ControlFlow::End),
        }
    }
}
