//! Interpreter for `switch` and for ranges.

use super::code_branch;
use super::control_flow::{ControlFlow, EvalResult, World, into_control_flow};
use super::equality::{compare, equal};
use super::exact_number::ExactNumber;
use super::function_library::collections;
use super::interpreter::Interpreter;
use super::program::{CodeNode, Range, SourcePosition, Switch, SwitchCase};
use super::value::{ScriptValue, ValueKind};
use crate::json::JsonType;

/// The first number and the number after the last one.
type Bounds = (i64, i64);

impl<'r, W: World<'r>> Interpreter<'r, W> {
    /// Runs the first arm with a case that the value equals. A value of another type than all cases is an error, as in every comparison:
    /// in Rhai it would take the arm `_`.
    pub(super) fn run_switch(&mut self, switch: &'r Switch) -> EvalResult<'r> {
        let value = self.evaluate_node(&switch.value)?;
        let mut types = Vec::new();
        for case in switch.arms.iter().flat_map(|arm| &arm.cases) {
            let of_case = match case {
                SwitchCase::Value(literal) => self.evaluate_node(literal)?.json_type(),
                SwitchCase::Range(_) => JsonType::Number,
            };
            if !types.contains(&of_case) {
                types.push(of_case);
            }
        }
        if !types.is_empty() && !types.contains(&value.json_type()) {
            let names: Vec<&str> = types.iter().map(|of_case| of_case.name()).collect();
            let (found, wanted) = (value.json_type(), names.join(" or "));
            let message = format!(
                "cannot compare values of different types: the value of `switch` is of type {found}, its cases are of type {wanted}"
            );
            return Err(ControlFlow::Error(message, switch.value.position));
        }
        for arm in &switch.arms {
            let mut is_chosen = arm.cases.is_empty();
            for case in &arm.cases {
                is_chosen = is_chosen || self.is_case(&value, case)?;
            }
            if is_chosen && arm.guard.as_ref().map_or(Ok(true), |guard| self.evaluate_boolean(guard))? {
                code_branch::enter(arm.branch);
                return self.evaluate_node(&arm.body);
            }
        }
        Ok(ScriptValue::Null)
    }

    fn is_case(&mut self, value: &ScriptValue<'r>, case: &'r SwitchCase) -> Result<bool, ControlFlow<'r>> {
        match case {
            SwitchCase::Value(node) => {
                let literal = self.evaluate_node(node)?;
                if literal.json_type() != value.json_type() {
                    return Ok(false);
                }
                equal(&self.fuel, value, &literal).map_err(into_control_flow(node.position))
            }
            SwitchCase::Range(range) if value.json_type() == JsonType::Number => self.is_within(value, range),
            SwitchCase::Range(_) => Ok(false),
        }
    }

    /// Whether a number is in a range, with or without a fraction.
    fn is_within(&mut self, value: &ScriptValue<'r>, range: &'r Range) -> Result<bool, ControlFlow<'r>> {
        let spot = range.from.position;
        let nodes = self.evaluate_nodes([&range.from, &range.to])?;
        let [from, to] = nodes.as_slice() else { return Ok(false) };
        for number in [value, from, to] {
            if number.json_type() != JsonType::Number {
                let message = format!("a range is of numbers, this is of type {}", number.json_type());
                return Err(ControlFlow::Error(message, spot));
            }
        }
        let lower = compare(value, from).map_err(into_control_flow(spot))?;
        let upper = compare(value, to).map_err(into_control_flow(spot))?;
        Ok(lower.is_ge() && (upper.is_lt() || range.is_inclusive && upper.is_eq()))
    }

    pub(super) fn evaluate_in_range(&mut self, wanted: &'r CodeNode, range: &'r Range) -> EvalResult<'r> {
        let wanted = self.evaluate_node(wanted)?;
        self.is_within(&wanted, range).map(ScriptValue::Boolean)
    }

    /// The whole numbers of a range.
    pub(super) fn numbers_in(&mut self, range: &'r Range) -> Result<Vec<ScriptValue<'r>>, ControlFlow<'r>> {
        let (from, to) = self.bounds(range)?;
        // Checked before allocation.
        let length = usize::try_from(to.saturating_sub(from).max(0)).unwrap_or(usize::MAX);
        self.fuel.spend_values(length).map_err(into_control_flow(range.from.position))?;
        Ok((from..to).map(|number| ScriptValue::Number(ExactNumber::from(number))).collect())
    }

    fn bounds(&mut self, range: &'r Range) -> Result<Bounds, ControlFlow<'r>> {
        let numbers = self.evaluate_nodes([&range.from, &range.to])?;
        let whole = |value: Option<&ScriptValue<'_>>| match value?.kind() {
            ValueKind::Number(number) => number.to_i64(),
            _ => None,
        };
        match (whole(numbers.first()), whole(numbers.get(1))) {
            (Some(from), Some(to)) => Ok((from, to.saturating_add(i64::from(range.is_inclusive)))),
            _ => {
                let message = "a range that is counted needs two whole numbers".to_owned();
                Err(ControlFlow::Error(message, range.from.position))
            }
        }
    }

    /// `x[1..3]`
    pub(super) fn evaluate_slice(
        &mut self,
        value: &'r CodeNode,
        range: &'r Range,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(value)?;
        let (from, to) = self.bounds(range)?;
        if from < 0 || to < 0 {
            let message =
                "a range of indices begins at 0: `slice(x, from, to)` counts from the end".to_owned();
            return Err(ControlFlow::Error(message, spot));
        }
        let number = |number| ScriptValue::Number(ExactNumber::from(number));
        self.charge_scan([&value], spot)?;
        collections::slice(&self.fuel, &value, &number(from), &number(to)).map_err(into_control_flow(spot))
    }
}
