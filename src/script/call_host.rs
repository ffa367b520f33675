//! Host of an expression: the call that it reads.

use std::sync::LazyLock;

use super::control_flow::{EffectError, World};
use super::fuel::{EvalError, Fuel};
use super::named_value::{NamedDefinition, NamedValue, read_result};
use super::printed_lines::PrintedLines;
use super::program::ReadOnlyVariable;
use super::script_function::EffectKind;
use super::value::ScriptValue;
use crate::call::{CallView, NodeRef, Root};
use crate::json::{Map, Value};

/// The context of a call without one.
pub(super) static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// The call that an expression reads.
pub(super) struct CallHost<'a> {
    view: CallView<'a>,
    pub(super) printed: PrintedLines,
}

impl<'a> CallHost<'a> {
    pub(super) fn new(view: CallView<'a>) -> Self {
        Self { view, printed: PrintedLines::default() }
    }
}

impl<'a> World<'a> for CallHost<'a> {
    fn read_member(&self, member: ReadOnlyVariable) -> Result<ScriptValue<'a>, EvalError> {
        let ReadOnlyVariable::Root(root) = member else {
            return Err("an expression has no options".into());
        };
        match self.view.member(root) {
            Some(NodeRef::Json(value)) => Ok(ScriptValue::Json(value)),
            _ if root == Root::Now => match self.view.time() {
                Some(now) => Ok(ScriptValue::Time(now)),
                None => Err("`now` is unknown: the clock failed".into()),
            },
            Some(NodeRef::Text(text)) => Ok(ScriptValue::Borrowed(text)),
            Some(NodeRef::Time(time)) => Ok(ScriptValue::Time(time.value)),
            None if root == Root::Context => Ok(ScriptValue::Json(&EMPTY)),
            None if root.is_settle_only() => {
                let message = format!("`{}` is available only once the call has settled", root.name());
                Err(EvalError::Absent(message))
            }
            None => Err(EvalError::Absent(format!("the call has no `{}`", root.name()))),
        }
    }

    fn read_named(&self, value: &'a NamedValue) -> Result<ScriptValue<'a>, EvalError> {
        let name = value.name();
        let result = match (&value.definition, self.view.lets) {
            (NamedDefinition::Path(path, _), _) => {
                return path.read(&self.view).map_err(|error| error.in_named(name));
            }
            (NamedDefinition::Computed(body), Some(memo)) => value.evaluate_once(&**body, memo, &self.view),
            (NamedDefinition::Computed(_), None) => {
                return Err(format!("`{name}` is read outside an evaluation").into());
            }
        };
        read_result(name, result)
    }

    fn print(&mut self, line: &str) {
        self.printed.push(line);
    }

    fn request_effect(
        &mut self,
        _: EffectKind,
        _: Vec<ScriptValue<'a>>,
        _: &Fuel,
    ) -> Result<ScriptValue<'a>, EffectError<'a>> {
        Err(EffectError::Error(EvalError::LimitExceeded("an expression has no effects".to_owned())))
    }
}
