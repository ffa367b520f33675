//! Interpreter for closures: on the elements of arrays, and called by the variable that holds them.

use std::cmp::Ordering;

use super::control_flow::{ControlFlow, EvalResult, World, into_control_flow};
use super::interpreter::Interpreter;
use super::program::{Closure, ClosureCall, CodeNode, SourcePosition};
use super::script_function::ClosureFunction;
use super::value::{ScriptValue, ValueKind};

impl<'r, W: World<'r>> Interpreter<'r, W> {
    /// Runs a closure for the elements of an array.
    pub(super) fn apply_closure(&mut self, call: &'r ClosureCall, spot: SourcePosition) -> EvalResult<'r> {
        let how = call.function;
        let nodes = std::iter::once(&call.list).chain(&call.initial);
        let mut values = self.evaluate_nodes(nodes)?.into_iter();
        let value = values.next().unwrap_or(ScriptValue::Null);
        let ValueKind::Array(list) = value.kind() else {
            let message = format!("`{}` takes an array, this is of type {}", how.name(), value.json_type());
            return Err(ControlFlow::Error(message, spot));
        };
        let items: Vec<ScriptValue<'r>> = list.iter().collect();
        match how {
            ClosureFunction::Reduce => {
                self.reduce(items, values.next().unwrap_or(ScriptValue::Null), &call.closure)
            }
            ClosureFunction::Sort => self.sort(items, &call.closure, spot),
            _ => self.visit(call, items, spot),
        }
    }

    /// Runs a closure for each element. An absent result makes the whole absent, unless another one is undecided.
    fn visit(
        &mut self,
        call: &'r ClosureCall,
        items: Vec<ScriptValue<'r>>,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let how = call.function;
        let (mut collected, mut absent) = (Vec::new(), None);
        for (index, item) in items.into_iter().enumerate() {
            let result = match self.call_closure(&call.closure, [item.clone(), ScriptValue::whole(index)]) {
                Ok(value) => value,
                // An element that cannot be tested is not one that fails the test: otherwise `find(…) ?? x` could not tell them apart.
                Err(ControlFlow::Absent(message, at)) if how != ClosureFunction::Map => {
                    return Err(ControlFlow::Error(message, at));
                }
                Err(flow) => {
                    self.keep_absent(flow, &mut absent)?;
                    continue;
                }
            };
            if how == ClosureFunction::Map {
                self.fuel.spend_values(1).map_err(into_control_flow(spot))?;
                collected.push(result);
                continue;
            }
            let ValueKind::Boolean(is_true) = result.kind() else {
                let message = format!("the closure of `{}` must return a boolean", how.name());
                return Err(ControlFlow::Error(message, call.closure.body.position));
            };
            match how {
                ClosureFunction::All if !is_true => return Ok(ScriptValue::Boolean(false)),
                ClosureFunction::Some if is_true => return Ok(ScriptValue::Boolean(true)),
                ClosureFunction::Find if is_true => return Ok(item),
                ClosureFunction::Filter if is_true => collected.push(item),
                _ => {}
            }
        }
        if let Some(absent) = absent {
            return Err(absent);
        }
        match how {
            ClosureFunction::All => Ok(ScriptValue::Boolean(true)),
            ClosureFunction::Some => Ok(ScriptValue::Boolean(false)),
            ClosureFunction::Find => {
                Err(ControlFlow::Absent("`find` found no element of the array".to_owned(), spot))
            }
            _ => ScriptValue::list(&self.fuel, collected).map_err(into_control_flow(spot)),
        }
    }

    fn reduce(
        &mut self,
        items: Vec<ScriptValue<'r>>,
        initial: ScriptValue<'r>,
        closure: &'r Closure,
    ) -> EvalResult<'r> {
        let mut result = initial;
        for (index, item) in items.into_iter().enumerate() {
            result = self.call_closure(closure, [result, item, ScriptValue::whole(index)])?;
        }
        Ok(result)
    }

    /// Sorts by a closure: a stable merge sort, because the closure can fail and can contradict itself.
    fn sort(
        &mut self,
        items: Vec<ScriptValue<'r>>,
        closure: &'r Closure,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let mut absent = None;
        let mut sorted = items;
        let mut width = 1;
        while width < sorted.len() {
            self.fuel.spend_values(sorted.len()).map_err(into_control_flow(spot))?;
            let mut merged = Vec::with_capacity(sorted.len());
            for pair in sorted.chunks(width.saturating_mul(2)) {
                let (left, right) = pair.split_at_checked(width).unwrap_or((pair, &[]));
                let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
                while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
                    let order = match self.compare_by(closure, a, b) {
                        Ok(order) => order,
                        Err(flow) => {
                            self.keep_absent(flow, &mut absent)?;
                            Ordering::Equal
                        }
                    };
                    let next = if order == Ordering::Greater { right.next() } else { left.next() };
                    merged.extend(next.cloned());
                }
                merged.extend(left.chain(right).cloned());
            }
            sorted = merged;
            width = width.saturating_mul(2);
        }
        match absent {
            Some(absent) => Err(absent),
            None => ScriptValue::list(&self.fuel, sorted).map_err(into_control_flow(spot)),
        }
    }

    fn compare_by(
        &mut self,
        closure: &'r Closure,
        a: &ScriptValue<'r>,
        b: &ScriptValue<'r>,
    ) -> Result<Ordering, ControlFlow<'r>> {
        let result = self.call_closure(closure, [a.clone(), b.clone()])?;
        let position = closure.body.position;
        match result.kind() {
            ValueKind::Number(number) => {
                let number = number.exact().map_err(|why| ControlFlow::Error(why, position))?;
                Ok(number.cmp(&super::exact_number::ExactNumber::ZERO))
            }
            other => {
                let message = format!(
                    "the closure of `sort` must return a number, this is of type {}: write for example `a - b`",
                    other.json_type()
                );
                Err(ControlFlow::Error(message, position))
            }
        }
    }

    /// Runs a closure with the first of these values that it has parameters for.
    fn call_closure<const N: usize>(
        &mut self,
        closure: &'r Closure,
        values: [ScriptValue<'r>; N],
    ) -> EvalResult<'r> {
        for (slot, value) in closure.parameters.iter().zip(values) {
            self.set_slot(*slot, value);
        }
        match self.evaluate_node(&closure.body) {
            Err(ControlFlow::Return(value)) => Ok(value),
            other => other,
        }
    }

    /// `f.call(x)`
    pub(super) fn call_closure_variable(
        &mut self,
        closure: &'r Closure,
        arguments: &'r [CodeNode],
    ) -> EvalResult<'r> {
        let values = self.evaluate_nodes(arguments)?;
        for (slot, value) in closure.parameters.iter().zip(values) {
            self.set_slot(*slot, value);
        }
        self.call_closure(closure, [])
    }
}
