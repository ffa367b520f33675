//! Hooks of Python: objects with `before`, `after` and `on_error`, called synchronously at each call.

use std::time::Duration;

use callgate::ToolError;
use callgate::json::Value;
use callgate::lifecycle::{BeforeAction, ErrorAction, HookCall, Middleware, RequiredApproval, ToolCallEnd};
use callgate::{BoxFuture, Outcome as EngineOutcome};
use pyo3::prelude::*;
use std::future::ready;

use crate::errors;
use crate::json_conversion::{to_python, to_value};
use crate::tool_call::ToolCall;

/// A hook object, with the methods that it has.
pub(crate) struct PythonHook {
    id: String,
    before: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
    on_error: Option<Py<PyAny>>,
}

impl PythonHook {
    /// Reads a hook.
    ///
    /// # Errors
    /// If it has none of the methods: nothing of a guard may be dropped silently.
    pub(crate) fn new(hook: &Bound<'_, PyAny>) -> PyResult<Self> {
        let method =
            |name: &str| -> PyResult<Option<Py<PyAny>>> { Ok(hook.getattr_opt(name)?.map(Bound::unbind)) };
        let id = match hook.getattr_opt("id")? {
            Some(id) => id.extract()?,
            None => hook.get_type().qualname()?.to_string(),
        };
        let read =
            Self { id, before: method("before")?, after: method("after")?, on_error: method("on_error")? };
        if read.before.is_none() && read.after.is_none() && read.on_error.is_none() {
            return Err(errors::value(format!(
                "the hook `{}` has no method `before`, `after` or `on_error`",
                read.id
            )));
        }
        Ok(read)
    }

    fn call_before(&self, call: &HookCall<'_>) -> BeforeAction {
        let Some(before) = &self.before else { return BeforeAction::Continue };
        let decided = Python::attach(|py| {
            let action = before
                .bind(py)
                .call1((ToolCall::new(call.call.clone()),))
                .and_then(|action| read_action(&action));
            action.map_err(|error| error.write_unraisable(py, Some(before.bind(py))))
        });
        decided.unwrap_or_else(|()| BeforeAction::Block(format!("the hook `{}` failed", self.id)))
    }

    fn call_on_error(&self, call: &HookCall<'_>, error: &ToolError) -> ErrorAction {
        let Some(on_error) = &self.on_error else { return ErrorAction::Keep };
        Python::attach(|py| {
            let message = (ToolCall::new(call.call.clone()), error.message.clone());
            let action =
                on_error.bind(py).call1(message).and_then(|action| read_error_action(&action, error));
            action.unwrap_or_else(|failure| {
                failure.write_unraisable(py, Some(on_error.bind(py)));
                ErrorAction::Keep
            })
        })
    }

    fn call_after(&self, outcome: &EngineOutcome) {
        let Some(after) = &self.after else { return };
        Python::attach(|py| {
            let document = callgate::json::to_value(outcome).unwrap_or_default();
            if let Err(error) = to_python(py, &document).and_then(|outcome| after.bind(py).call1((outcome,)))
            {
                error.write_unraisable(py, Some(after.bind(py)));
            }
        });
    }
}

impl Middleware for PythonHook {
    fn id(&self) -> &str {
        &self.id
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        Box::pin(ready(self.call_before(call)))
    }

    fn on_error<'a>(&'a self, call: &'a HookCall<'a>, error: &'a ToolError) -> BoxFuture<'a, ErrorAction> {
        Box::pin(ready(self.call_on_error(call, error)))
    }

    fn after<'a>(&'a self, end: &'a ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        self.call_after(end.outcome);
        Box::pin(ready(()))
    }
}

/// The name of an action of `callgate.hooks`.
fn action_name(action: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = action.getattr_opt("action")?;
    name.and_then(|name| name.extract().ok())
        .ok_or_else(|| errors::value("a hook must return `None` or an action of `callgate.hooks`"))
}

fn member(action: &Bound<'_, PyAny>, name: &str) -> PyResult<Value> {
    to_value(&action.getattr(name)?)
}

fn read_action(action: &Bound<'_, PyAny>) -> PyResult<BeforeAction> {
    if action.is_none() {
        return Ok(BeforeAction::Continue);
    }
    let text = |name: &str| -> PyResult<String> { action.getattr(name)?.extract() };
    Ok(match action_name(action)?.as_str() {
        "edit" => BeforeAction::Edit(member(action, "input")?),
        "skip" => BeforeAction::Skip(member(action, "output")?),
        "annotate" => match member(action, "metadata")? {
            Value::Object(metadata) => BeforeAction::Annotate(metadata),
            _ => return Err(errors::value("the metadata of `Annotate` must be a dict")),
        },
        "require_approval" => BeforeAction::RequireApproval(RequiredApproval {
            message: text("message")?,
            approvers: action.getattr("approvers")?.extract()?,
            quorum: action.getattr("quorum")?.extract()?,
            expires: action
                .getattr("expires_seconds")?
                .extract::<Option<f64>>()?
                .map(duration)
                .transpose()?,
        }),
        "block" => BeforeAction::Block(text("message")?),
        "halt" => BeforeAction::Halt(text("message")?),
        _ => return Err(errors::value("a hook must return `None` or an action of `callgate.hooks`")),
    })
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| errors::value(format!("`expires_seconds`: {error}")))
}

fn read_error_action(action: &Bound<'_, PyAny>, error: &ToolError) -> PyResult<ErrorAction> {
    if action.is_none() {
        return Ok(ErrorAction::Keep);
    }
    Ok(match action_name(action)?.as_str() {
        "skip" => ErrorAction::Recover(member(action, "output")?),
        "block" => ErrorAction::Replace(ToolError {
            message: action.getattr("message")?.extract()?,
            kind: error.kind.clone(),
        }),
        _ => return Err(errors::value("`on_error` must return `None`, `Skip` or `Block`")),
    })
}
