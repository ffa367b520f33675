//! Interpreter for statements: declarations, assignments, blocks, `throw` and `try`.

use super::assignment::{ResolvedStep, apply_at, assign, mutate};
use super::control_flow::{ControlFlow, EvalResult, World, into_control_flow};
use super::error_object::{SCRIPT_ERROR, error_object, to_error_object};
use super::function_library::strings;
use super::interpreter::Interpreter;
use super::operators::OperatorFn;
use super::program::{AssignTarget, CodeNode, SourcePosition, TargetStep};
use super::script_function::{MutatingFunction, PrintForm};
use super::value::{ScriptValue, ValueKind};

impl<'r, W: World<'r>> Interpreter<'r, W> {
    pub(super) fn evaluate_let(&mut self, slot: usize, value: &'r CodeNode) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        self.set_slot(slot, value);
        Ok(ScriptValue::Null)
    }

    pub(super) fn evaluate_assignment(
        &mut self,
        target: &'r AssignTarget,
        operator: Option<OperatorFn>,
        value: &'r CodeNode,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        let steps = self.resolve_steps(&target.steps)?;
        let value = match operator {
            None => value,
            Some(operator) => {
                let mut old = self.slot(target.slot).clone();
                for step in &steps {
                    old = step.read(&old).map_err(into_control_flow(spot))?;
                }
                operator(&self.fuel, &old, &value).map_err(into_control_flow(spot))?
            }
        };
        let (work, target) = self.slot_mut(target.slot);
        assign(work, target, &steps, value).map_err(into_control_flow(spot))?;
        Ok(ScriptValue::Null)
    }

    pub(super) fn print(
        &mut self,
        form: PrintForm,
        value: &'r CodeNode,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        let json = match form {
            PrintForm::Text => strings::to_text(&self.fuel, &value),
            PrintForm::Json => {
                value.to_json(&self.fuel).and_then(|json| ScriptValue::text(&self.fuel, &json.to_string()))
            }
        };
        let text = json.map_err(into_control_flow(spot))?;
        if let ValueKind::String(text) = text.kind() {
            self.host.print(text);
        }
        Ok(ScriptValue::Null)
    }

    pub(super) fn evaluate_throw(&mut self, value: &'r CodeNode, spot: SourcePosition) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        let thrown = to_error_object(value, &self.fuel).map_err(into_control_flow(spot))?;
        Err(ControlFlow::Exception(thrown, spot))
    }

    pub(super) fn evaluate_block(&mut self, nodes: &'r [CodeNode]) -> EvalResult<'r> {
        let mut last = ScriptValue::Null;
        for node in nodes {
            last = self.evaluate_node(node)?;
        }
        Ok(last)
    }

    /// Does not catch exceeded limits and the end of the run at an effect without a result.
    pub(super) fn try_catch(
        &mut self,
        attempt: &'r CodeNode,
        error: Option<usize>,
        handler: &'r CodeNode,
    ) -> EvalResult<'r> {
        let (base, calls, depth) = (self.first_slot, self.calls, self.depth);
        let caught = match self.evaluate_node(attempt) {
            Err(ControlFlow::Exception(value, _)) => value,
            // In a condition, nothing turns what is undecided into a value.
            other if self.is_pure() => return other,
            Err(ControlFlow::Error(message, spot) | ControlFlow::Absent(message, spot)) => {
                let message = ScriptValue::text(&self.fuel, &message).map_err(into_control_flow(spot))?;
                error_object(message, ScriptValue::Borrowed(SCRIPT_ERROR), &self.fuel)
                    .map_err(into_control_flow(spot))?
            }
            other => return other,
        };
        (self.first_slot, self.calls, self.depth) = (base, calls, depth);
        if let Some(slot) = error {
            self.set_slot(slot, caught);
        }
        self.evaluate_node(handler)
    }

    fn resolve_steps(&mut self, steps: &'r [TargetStep]) -> Result<Vec<ResolvedStep<'r>>, ControlFlow<'r>> {
        let mut targets = Vec::with_capacity(steps.len());
        for step in steps {
            targets.push(match step {
                TargetStep::Key(key) => ResolvedStep::Key(key),
                TargetStep::Index(index) => ResolvedStep::Index(self.evaluate_node(index)?),
            });
        }
        Ok(targets)
    }

    pub(super) fn evaluate_mutation(
        &mut self,
        how: MutatingFunction,
        target: &'r AssignTarget,
        arguments: &'r [CodeNode],
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let arguments = self.evaluate_nodes(arguments)?;
        let steps = self.resolve_steps(&target.steps)?;
        let (work, target) = self.slot_mut(target.slot);
        let mut action = |target: &mut ScriptValue<'r>| mutate(how, target, &arguments, work);
        apply_at(work, target, &steps, &mut action).map_err(into_control_flow(spot))
    }
}
