//! Interpreter for closures over arrays, and for loops.

use super::control_flow::{ControlFlow, EvalResult, World, into_control_flow};
use super::interpreter::Interpreter;
use super::program::{Closure, CodeNode, ForLoop, SourcePosition};
use super::script_function::ClosureFunction;
use super::value::{ScriptValue, ValueKind, key_to_value};

impl<'r, W: World<'r>> Interpreter<'r, W> {
    pub(super) fn apply_closure(
        &mut self,
        how: ClosureFunction,
        list: &'r CodeNode,
        closure: &'r Closure,
        spot: SourcePosition,
    ) -> EvalResult<'r> {
        let value = self.evaluate_node(list)?;
        let list = match value.kind() {
            ValueKind::Array(list) => list,
            _ => {
                let message =
                    format!("`{}` takes an array, this is of type {}", how.name(), value.json_type());
                return Err(ControlFlow::Error(message, spot));
            }
        };
        let (mut collected, mut absent) = (Vec::new(), None);
        for item in list.iter() {
            self.set_slot(closure.parameter, item.clone());
            let result = match self.evaluate_node(&closure.body) {
                Ok(value) | Err(ControlFlow::Return(value)) => value,
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
                return Err(ControlFlow::Error(message, closure.body.position));
            };
            if absent.is_some() {
                continue;
            }
            match how {
                ClosureFunction::All if !is_true => return Ok(ScriptValue::Boolean(false)),
                ClosureFunction::Some if is_true => return Ok(ScriptValue::Boolean(true)),
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
            ClosureFunction::Filter | ClosureFunction::Map => {
                ScriptValue::list(&self.fuel, collected).map_err(into_control_flow(spot))
            }
        }
    }

    pub(super) fn run_loop(&mut self, condition: Option<&'r CodeNode>, body: &'r CodeNode) -> EvalResult<'r> {
        loop {
            if let Some(condition) = condition
                && !self.evaluate_boolean(condition)?
            {
                return Ok(ScriptValue::Null);
            }
            match self.evaluate_node(body) {
                Err(ControlFlow::Break(value)) => return Ok(value),
                Ok(_) | Err(ControlFlow::Continue) => {}
                Err(other) => return Err(other),
            }
        }
    }

    pub(super) fn run_for(&mut self, parts: &'r ForLoop) -> EvalResult<'r> {
        let over = self.evaluate_node(&parts.iterable)?;
        let items: Vec<ScriptValue<'r>> = match over.kind() {
            ValueKind::Array(list) => list.iter().collect(),
            ValueKind::Object(object) => object.sorted_keys().into_iter().map(key_to_value).collect(),
            _ => {
                let found = over.json_type();
                let message =
                    format!("`for` iterates over an array or the keys of an object, this is of type {found}");
                return Err(ControlFlow::Error(message, parts.iterable.position));
            }
        };
        self.fuel.spend_values(items.len()).map_err(into_control_flow(parts.iterable.position))?;
        for (index, item) in items.into_iter().enumerate() {
            self.set_slot(parts.item, item);
            if let Some(counter) = parts.counter {
                self.set_slot(counter, ScriptValue::whole(index));
            }
            match self.evaluate_node(&parts.body) {
                Err(ControlFlow::Break(value)) => return Ok(value),
                Ok(_) | Err(ControlFlow::Continue) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(ScriptValue::Null)
    }
}
