//! Interpreter for closures over arrays, and for loops.

use super::function_table::Each;
use super::interpreter::{Evaluation, Given, Stop, World, fault};
use super::program::{Closure, For, Node, SourcePosition};
use super::value::{Kind, ScriptValue, key_to_value};

impl<'r, W: World<'r>> Evaluation<'r, W> {
    pub(super) fn each(
        &mut self,
        how: Each,
        list: &'r Node,
        closure: &'r Closure,
        spot: SourcePosition,
    ) -> Given<'r> {
        let value = self.node(list)?;
        let list = match value.kind() {
            Kind::List(list) => list,
            _ => {
                let message =
                    format!("`{}` takes an array, this is of type {}", how.name(), value.json_type());
                return Err(Stop::Wrong(message, spot));
            }
        };
        let mut collected = Vec::new();
        for item in list.iter() {
            self.set(closure.parameter, item.clone());
            let said = match self.node(&closure.body) {
                Err(Stop::Return(value)) => value,
                other => other?,
            };
            if how == Each::Map {
                self.work.values(1).map_err(fault(spot))?;
                collected.push(said);
                continue;
            }
            let Kind::Boolean(said) = said.kind() else {
                let message = format!("the closure of `{}` must return a boolean", how.name());
                return Err(Stop::Wrong(message, closure.body.spot));
            };
            match how {
                Each::All if !said => return Ok(ScriptValue::Boolean(false)),
                Each::Some if said => return Ok(ScriptValue::Boolean(true)),
                Each::Filter if said => collected.push(item),
                _ => {}
            }
        }
        match how {
            Each::All => Ok(ScriptValue::Boolean(true)),
            Each::Some => Ok(ScriptValue::Boolean(false)),
            Each::Filter | Each::Map => ScriptValue::list(&self.work, collected).map_err(fault(spot)),
        }
    }

    pub(super) fn repeat(&mut self, condition: Option<&'r Node>, body: &'r Node) -> Given<'r> {
        loop {
            if let Some(condition) = condition
                && !self.boolean(condition)?
            {
                return Ok(ScriptValue::Null);
            }
            match self.node(body) {
                Err(Stop::Break(value)) => return Ok(value),
                Ok(_) | Err(Stop::Continue) => {}
                Err(other) => return Err(other),
            }
        }
    }

    pub(super) fn run_for(&mut self, parts: &'r For) -> Given<'r> {
        let over = self.node(&parts.over)?;
        let items: Vec<ScriptValue<'r>> = match over.kind() {
            Kind::List(list) => list.iter().collect(),
            Kind::Object(object) => object.sorted_keys().into_iter().map(key_to_value).collect(),
            _ => {
                let found = over.json_type();
                let message =
                    format!("`for` iterates over an array or the keys of an object, this is of type {found}");
                return Err(Stop::Wrong(message, parts.over.spot));
            }
        };
        self.work.values(items.len()).map_err(fault(parts.over.spot))?;
        for (index, item) in items.into_iter().enumerate() {
            self.set(parts.item, item);
            if let Some(counter) = parts.counter {
                self.set(counter, ScriptValue::whole(index));
            }
            match self.node(&parts.body) {
                Err(Stop::Break(value)) => return Ok(value),
                Ok(_) | Err(Stop::Continue) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(ScriptValue::Null)
    }
}
