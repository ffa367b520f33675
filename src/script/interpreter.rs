//! Interpreter for compiled programs: program + host → value. Values are borrowed, not copied, and every step counts against the limits.

use regex::Regex;

use super::assignment::{ResolvedStep, apply_at, assign, mutate, read_element, read_property};
use super::error_object::{SCRIPT_ERROR, error_object, to_error_object};
use super::fuel::{EvalError, Fuel, ScriptLimits};
use super::function_table::{EffectKind, Implementation, MutatingFunction};
use super::operators::{OperatorFn, is_in_member, negate, not};
use super::program::{
    AssignTarget, Code, CodeNode, FunctionBody, Program, ReadOnlyVariable, SourcePosition, TargetStep,
};
use super::value::{MemberMap, ScriptValue, ValueKind};
use crate::json::JsonType;

/// The host of a program: the values that it reads and the effects that it requests.
pub(super) trait World<'r> {
    /// Reads a member of the call.
    ///
    /// # Errors
    /// The call does not have it.
    fn read_member(&self, member: ReadOnlyVariable) -> Result<ScriptValue<'r>, String>;

    /// Returns the result of an effect, or ends this run if there is none yet.
    fn request_effect(
        &mut self,
        kind: EffectKind,
        given: Vec<ScriptValue<'r>>,
        work: &Fuel,
    ) -> Result<ScriptValue<'r>, EffectError<'r>>;
}

/// The error of an effect, or the end of the run.
pub(super) enum EffectError<'r> {
    /// An error of the effect itself, which a script can catch.
    Exception(ScriptValue<'r>),
    Fault(EvalError),
    /// The host ends the run and holds the reason.
    End,
}

impl From<EvalError> for EffectError<'_> {
    fn from(fault: EvalError) -> Self {
        Self::Fault(fault)
    }
}

/// A jump, an error or the end of the run, instead of a value.
pub(super) enum ControlFlow<'r> {
    Break(ScriptValue<'r>),
    Continue,
    Return(ScriptValue<'r>),
    Exception(ScriptValue<'r>, SourcePosition),
    Wrong(String, SourcePosition),
    Limit(String, SourcePosition),
    End,
}

pub(super) type EvalResult<'r> = Result<ScriptValue<'r>, ControlFlow<'r>>;

/// One run of a program.
pub(super) struct Interpreter<'r, W> {
    program: &'r Program,
    pub(super) world: W,
    pub(super) work: Fuel,
    slots: Vec<ScriptValue<'r>>,
    /// The first slot of the running function.
    base: usize,
    depth: usize,
    calls: usize,
}

pub(super) fn into_control_flow<'r>(spot: SourcePosition) -> impl Fn(EvalError) -> ControlFlow<'r> {
    move |fault| match fault {
        EvalError::Wrong(message) => ControlFlow::Wrong(message, spot),
        EvalError::Limit(message) => ControlFlow::Limit(message, spot),
    }
}

impl<'r, W: World<'r>> Interpreter<'r, W> {
    pub(super) fn new(program: &'r Program, world: W, work: Fuel) -> Self {
        Self { program, world, work, slots: Vec::new(), base: 0, depth: 0, calls: 0 }
    }

    /// Runs the program with values for its first slots.
    pub(super) fn run(&mut self, given: Vec<ScriptValue<'r>>) -> EvalResult<'r> {
        let program = self.program;
        self.body(&program.main, given)
    }

    fn body(&mut self, body: &'r FunctionBody, given: Vec<ScriptValue<'r>>) -> EvalResult<'r> {
        let (base, calls) = (self.base, self.calls);
        if calls > self.work.limits.calls {
            let ScriptLimits { who, calls, .. } = self.work.limits;
            let message = format!("{who} nests more than {calls} function calls");
            return Err(ControlFlow::Limit(message, body.code.spot));
        }
        self.base = self.slots.len();
        self.calls += 1;
        self.slots.extend(given);
        self.slots.resize(self.base + body.slots, ScriptValue::Null);
        let result = self.evaluate_node(&body.code);
        self.slots.truncate(self.base);
        (self.base, self.calls) = (base, calls);
        match result {
            Err(ControlFlow::Return(value)) => Ok(value),
            other => other,
        }
    }

    pub(super) fn evaluate_node(&mut self, node: &'r CodeNode) -> EvalResult<'r> {
        self.work.spend_step().map_err(into_control_flow(node.spot))?;
        if self.depth >= self.work.limits.depth {
            let message = format!("{} nests too deeply", self.work.limits.who);
            return Err(ControlFlow::Limit(message, node.spot));
        }
        self.depth += 1;
        let result = self.code(node);
        self.depth -= 1;
        result
    }

    /// Recursive: one stack frame a nesting level, so code with large locals has a function of its own.
    fn code(&mut self, node: &'r CodeNode) -> EvalResult<'r> {
        let spot = node.spot;
        match &node.code {
            Code::Null => Ok(ScriptValue::Null),
            Code::Boolean(value) => Ok(ScriptValue::Boolean(*value)),
            Code::Number(number) => Ok(ScriptValue::Number(*number)),
            Code::Literal(number) => Ok(ScriptValue::Json(number)),
            Code::String(text) => Ok(ScriptValue::Borrowed(text)),
            Code::Member(member) => {
                self.world.read_member(*member).map_err(|message| ControlFlow::Wrong(message, spot))
            }
            Code::Slot(slot) => Ok(self.slot(*slot).clone()),
            Code::Array(items) => self.list(items, spot),
            Code::Object(members) => self.object(members, spot),
            Code::And(operands) => self.short_circuit(operands, true),
            Code::Or(operands) => self.short_circuit(operands, false),
            Code::Coalesce(operands) => self.coalesce(operands),
            Code::Not(operand) => self.changed(operand, not, spot),
            Code::Negate(operand) => self.changed(operand, negate, spot),
            Code::Binary(operator, operands) => self.compared(operands, *operator, spot),
            Code::InMember(operands) => self.compared(operands, is_in_member, spot),
            Code::Property(object, key) => self.property(object, key, spot),
            Code::Index(operands) => self.element(operands, spot),
            Code::Function(run, arguments) => self.function(*run, arguments, spot),
            Code::Matches(text, regex) => self.matches(text, regex, spot),
            Code::Closure(how, list, closure) => self.apply_closure(*how, list, closure, spot),
            Code::Mutation(how, place, arguments) => self.change(*how, place, arguments, spot),
            Code::Effect(kind, arguments) => self.evaluate_effect(*kind, arguments, spot),
            Code::Call(function, arguments) => self.call(*function, arguments, spot),
            Code::Let(slot, value) => self.bind(*slot, value),
            Code::Assign(place, operator, value) => self.assign(place, *operator, value, spot),
            Code::If(condition, then, otherwise) => {
                if self.evaluate_boolean(condition)? {
                    self.evaluate_node(then)
                } else {
                    self.evaluate_node(otherwise)
                }
            }
            Code::While(condition, body) => self.run_loop(condition.as_deref(), body),
            Code::For(parts) => self.run_for(parts),
            Code::Try(attempt, error, handler) => self.attempt(attempt, *error, handler),
            Code::Throw(value) => self.throw(value, spot),
            Code::Return(value) => Err(ControlFlow::Return(self.evaluate_node(value)?)),
            Code::Break(value) => Err(ControlFlow::Break(self.evaluate_node(value)?)),
            Code::Continue => Err(ControlFlow::Continue),
            Code::Block(nodes) => self.block(nodes),
        }
    }

    fn list(&mut self, items: &'r [CodeNode], spot: SourcePosition) -> EvalResult<'r> {
        let items = self.nodes(items)?;
        ScriptValue::list(&self.work, items).map_err(into_control_flow(spot))
    }

    fn changed(
        &mut self,
        operand: &'r CodeNode,
        change: fn(&ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        change(&self.evaluate_node(operand)?).map_err(into_control_flow(spot))
    }

    fn compared(
        &mut self,
        operands: &'r [CodeNode; 2],
        compare: fn(&Fuel, &ScriptValue<'r>, &ScriptValue<'r>) -> Result<ScriptValue<'r>, EvalError>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let [a, b] = operands;
        let (a, b) = (self.evaluate_node(a)?, self.evaluate_node(b)?);
        self.look([&a, &b], spot)?;
        compare(&self.work, &a, &b).map_err(into_control_flow(spot))
    }

    fn property(&mut self, object: &'r CodeNode, key: &'r str, spot: SourcePosition) -> EvalResult<'r> {
        read_property(&self.evaluate_node(object)?, key).map_err(into_control_flow(spot))
    }

    fn element(&mut self, operands: &'r [CodeNode; 2], spot: SourcePosition) -> EvalResult<'r> {
        let [container, index] = operands;
        let (container, index) = (self.evaluate_node(container)?, self.evaluate_node(index)?);
        read_element(&container, &index).map_err(into_control_flow(spot))
    }

    fn matches(&mut self, text: &'r CodeNode, regex: &Regex, spot: SourcePosition) -> EvalResult<'r> {
        let text = self.evaluate_node(text)?;
        match text.kind() {
            ValueKind::Text(text) => {
                self.work.spend_scan(text.len()).map_err(into_control_flow(spot))?;
                Ok(ScriptValue::Boolean(regex.is_match(text)))
            }
            _ => {
                let found = text.json_type();
                Err(ControlFlow::Wrong(format!("`matches` takes a string, this is of type {found}"), spot))
            }
        }
    }

    fn evaluate_effect(
        &mut self,
        kind: EffectKind,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let given = self.nodes(arguments)?;
        self.effect(kind, given, spot)
    }

    fn call(&mut self, function: usize, arguments: &'r [CodeNode], spot: SourcePosition) -> EvalResult<'r> {
        let given = self.nodes(arguments)?;
        let program = self.program;
        match program.functions.get(function) {
            Some(body) => self.body(body, given),
            None => Err(ControlFlow::Limit("the function is missing".to_owned(), spot)),
        }
    }

    fn bind(&mut self, slot: usize, value: &'r CodeNode) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        self.set_slot(slot, value);
        Ok(ScriptValue::Null)
    }

    fn assign(
        &mut self,
        place: &'r AssignTarget,
        operator: Option<OperatorFn>,
        value: &'r CodeNode,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        let steps = self.steps(&place.steps)?;
        let value = match operator {
            None => value,
            Some(operator) => {
                let mut old = self.slot(place.slot).clone();
                for step in &steps {
                    old = step.read(&old).map_err(into_control_flow(spot))?;
                }
                operator(&self.work, &old, &value).map_err(into_control_flow(spot))?
            }
        };
        let (work, target) = self.target(place.slot);
        assign(work, target, &steps, value).map_err(into_control_flow(spot))?;
        Ok(ScriptValue::Null)
    }

    fn throw(&mut self, value: &'r CodeNode, spot: SourcePosition) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        let thrown = to_error_object(value, &self.work).map_err(into_control_flow(spot))?;
        Err(ControlFlow::Exception(thrown, spot))
    }

    fn block(&mut self, nodes: &'r [CodeNode]) -> EvalResult<'r> {
        let mut last = ScriptValue::Null;
        for node in nodes {
            last = self.evaluate_node(node)?;
        }
        Ok(last)
    }

    fn slot(&self, slot: usize) -> &ScriptValue<'r> {
        self.slots.get(self.base + slot).unwrap_or(&ScriptValue::Null)
    }

    pub(super) fn set_slot(&mut self, slot: usize, value: ScriptValue<'r>) {
        if let Some(place) = self.slots.get_mut(self.base + slot) {
            *place = value;
        }
    }

    fn target(&mut self, slot: usize) -> (&Fuel, Option<&mut ScriptValue<'r>>) {
        (&self.work, self.slots.get_mut(self.base + slot))
    }

    fn nodes(&mut self, nodes: &'r [CodeNode]) -> Result<Vec<ScriptValue<'r>>, ControlFlow<'r>> {
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            values.push(self.evaluate_node(node)?);
        }
        Ok(values)
    }

    fn object(&mut self, members: &'r [(String, CodeNode)], spot: SourcePosition) -> EvalResult<'r> {
        let mut object = MemberMap::with_capacity(members.len());
        for (key, node) in members {
            object.insert(key.as_str().into(), self.evaluate_node(node)?);
        }
        ScriptValue::object(&self.work, object).map_err(into_control_flow(spot))
    }

    pub(super) fn evaluate_boolean(&mut self, node: &'r CodeNode) -> Result<bool, ControlFlow<'r>> {
        let value = self.evaluate_node(node)?;
        match value {
            ScriptValue::Boolean(value) => Ok(value),
            ScriptValue::Json(crate::json::Value::Bool(value)) => Ok(*value),
            other => {
                let found = other.json_type();
                let message = format!("expected a boolean, found a value of type {found}");
                Err(ControlFlow::Wrong(message, node.spot))
            }
        }
    }

    fn short_circuit(&mut self, operands: &'r [CodeNode], wanted: bool) -> EvalResult<'r> {
        for operand in operands {
            if self.evaluate_boolean(operand)? != wanted {
                return Ok(ScriptValue::Boolean(!wanted));
            }
        }
        Ok(ScriptValue::Boolean(wanted))
    }

    fn coalesce(&mut self, operands: &'r [CodeNode]) -> EvalResult<'r> {
        let mut last = ScriptValue::Null;
        for operand in operands {
            last = self.evaluate_node(operand)?;
            if last.json_type() != JsonType::Null {
                break;
            }
        }
        Ok(last)
    }

    fn function(
        &mut self,
        run: Implementation,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        match (run, arguments) {
            (Implementation::One(run), [a]) => {
                let a = self.evaluate_node(a)?;
                self.look([&a], spot)?;
                run(&self.work, &a).map_err(into_control_flow(spot))
            }
            (Implementation::Two(run), [a, b]) => {
                let (a, b) = (self.evaluate_node(a)?, self.evaluate_node(b)?);
                self.look([&a, &b], spot)?;
                run(&self.work, &a, &b).map_err(into_control_flow(spot))
            }
            (Implementation::OneOrTwo(run), [a]) => {
                let a = self.evaluate_node(a)?;
                run(&self.work, &a, None).map_err(into_control_flow(spot))
            }
            (Implementation::OneOrTwo(run), [a, b]) => {
                let (a, b) = (self.evaluate_node(a)?, self.evaluate_node(b)?);
                run(&self.work, &a, Some(&b)).map_err(into_control_flow(spot))
            }
            (Implementation::Three(run), [a, b, c]) => {
                let (a, b, c) = (self.evaluate_node(a)?, self.evaluate_node(b)?, self.evaluate_node(c)?);
                self.look([&a, &b, &c], spot)?;
                run(&self.work, &a, &b, &c).map_err(into_control_flow(spot))
            }
            // The compiler checked their number.
            _ => Err(ControlFlow::Limit("a function has the wrong number of arguments".to_owned(), spot)),
        }
    }

    /// Counts the scan of an operator's or function's arguments, beside the steps that it counts itself.
    fn look<const N: usize>(
        &self,
        values: [&ScriptValue<'r>; N],
        spot: SourcePosition,
    ) -> Result<(), ControlFlow<'r>> {
        values
            .into_iter()
            .try_for_each(|value| self.work.spend_scan(value.scan_size()))
            .map_err(into_control_flow(spot))
    }

    fn effect(
        &mut self,
        kind: EffectKind,
        given: Vec<ScriptValue<'r>>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        match self.world.request_effect(kind, given, &self.work) {
            Ok(value) => Ok(value),
            Err(EffectError::Exception(value)) => Err(ControlFlow::Exception(value, spot)),
            Err(EffectError::Fault(error)) => Err(into_control_flow(spot)(error)),
            Err(EffectError::End) => Err(ControlFlow::End),
        }
    }

    /// Does not catch exceeded limits and the end of the run at an effect without a result.
    fn attempt(
        &mut self,
        attempt: &'r CodeNode,
        error: Option<usize>,
        handler: &'r CodeNode,
    ) -> EvalResult<'r> {
        let (base, calls, depth) = (self.base, self.calls, self.depth);
        let caught = match self.evaluate_node(attempt) {
            Err(ControlFlow::Exception(value, _)) => value,
            Err(ControlFlow::Wrong(message, spot)) => {
                let message = ScriptValue::text(&self.work, &message).map_err(into_control_flow(spot))?;
                error_object(message, ScriptValue::Borrowed(SCRIPT_ERROR), &self.work)
                    .map_err(into_control_flow(spot))?
            }
            other => return other,
        };
        (self.base, self.calls, self.depth) = (base, calls, depth);
        if let Some(slot) = error {
            self.set_slot(slot, caught);
        }
        self.evaluate_node(handler)
    }

    fn steps(&mut self, steps: &'r [TargetStep]) -> Result<Vec<ResolvedStep<'r>>, ControlFlow<'r>> {
        let mut targets = Vec::with_capacity(steps.len());
        for step in steps {
            targets.push(match step {
                TargetStep::Key(key) => ResolvedStep::Key(key),
                TargetStep::Index(index) => ResolvedStep::Index(self.evaluate_node(index)?),
            });
        }
        Ok(targets)
    }

    fn change(
        &mut self,
        how: MutatingFunction,
        place: &'r AssignTarget,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let argument = self.nodes(arguments)?.into_iter().next();
        let steps = self.steps(&place.steps)?;
        let (work, target) = self.target(place.slot);
        let mut action = |target: &mut ScriptValue<'r>| mutate(how, target, argument.as_ref(), work);
        apply_at(work, target, &steps, &mut action).map_err(into_control_flow(spot))
    }
}
