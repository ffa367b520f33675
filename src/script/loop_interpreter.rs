//! Interpreter for loops.

use super::control_flow::{ControlFlow, EvalResult, World, into_control_flow};
use super::interpreter::Interpreter;
use super::program::{CodeNode, ForLoop, Iterable};
use super::value::{ScriptValue, ValueKind, key_to_value};

impl<'r, W: World<'r>> Interpreter<'r, W> {
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

    fn items_of(&mut self, node: &'r CodeNode) -> Result<Vec<ScriptValue<'r>>, ControlFlow<'r>> {
        let over = self.evaluate_node(node)?;
        let items: Vec<ScriptValue<'r>> = match over.kind() {
            ValueKind::Array(list) => list.iter().collect(),
            // In a condition, an object in place of an array must not look like an empty one.
            ValueKind::Object(_) if self.is_pure() => {
                let message =
                    "`for` iterates over an array, this is of type object: write `for key in keys(x)`";
                return Err(ControlFlow::Error(message.to_owned(), node.position));
            }
            ValueKind::Object(object) => object.sorted_keys().into_iter().map(key_to_value).collect(),
            _ => {
                let found = over.json_type();
                let message =
                    format!("`for` iterates over an array or the keys of an object, this is of type {found}");
                return Err(ControlFlow::Error(message, node.position));
            }
        };
        self.fuel.spend_values(items.len()).map_err(into_control_flow(node.position))?;
        Ok(items)
    }

    pub(super) fn run_for(&mut self, parts: &'r ForLoop) -> EvalResult<'r> {
        let items = match &parts.iterable {
            Iterable::Range(range) => self.numbers_in(range)?,
            Iterable::Value(node) => self.items_of(node)?,
        };
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
