//! Hooks of Python: objects with `before`, `around`, `on_error` and `after`, functions that may be asynchronous.

use std::time::Duration;

use callgate::json::Value;
use callgate::lifecycle::{
    BeforeAction, ErrorAction, HookCall, Middleware, Next, RequiredApproval, ToolCallEnd,
};
use callgate::{BoxFuture, ToolError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::around_turns::run_around;
use crate::errors;
use crate::json_conversion::{to_python, to_value};
use crate::method_requests::{arguments, call_hook};
use crate::tool_call::ToolCall;

/// A hook object, with the methods that it has.
pub(crate) struct PythonHook {
    id: String,
    before: Option<Py<PyAny>>,
    around: Option<Py<PyAny>>,
    on_error: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
}

/// In which forms of an operation the hooks of an engine can run. Each is the id of a hook because of which it can't.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookForms {
    /// A hook with an asynchronous method, which a synchronous form can't await.
    pub(crate) asynchronous: Option<String>,
    /// A hook whose `around` is synchronous: it would block the event loop of an asynchronous form until the tool has returned.
    pub(crate) blocking: Option<String>,
}

impl PythonHook {
    /// Reads a hook.
    ///
    /// # Errors
    /// If it has none of the methods: nothing of a guard may be dropped silently.
    pub(crate) fn new(hook: &Bound<'_, PyAny>, forms: &mut HookForms) -> PyResult<Self> {
        let method =
            |name: &str| -> PyResult<Option<Py<PyAny>>> { Ok(hook.getattr_opt(name)?.map(Bound::unbind)) };
        let id: String = match hook.getattr_opt("id")? {
            Some(id) => id.extract()?,
            None => hook.get_type().qualname()?.to_string(),
        };
        let read = Self {
            before: method("before")?,
            around: method("around")?,
            on_error: method("on_error")?,
            after: method("after")?,
            id,
        };
        let methods = [&read.before, &read.around, &read.on_error, &read.after];
        if methods.iter().all(|method| method.is_none()) {
            return Err(errors::value(format!(
                "the hook `{}` has no method `before`, `around`, `on_error` or `after`",
                read.id
            )));
        }
        for method in methods.into_iter().flatten() {
            if is_asynchronous(method.bind(hook.py()))? {
                forms.asynchronous.get_or_insert_with(|| read.id.clone());
            }
        }
        if let Some(around) = &read.around
            && !is_asynchronous(around.bind(hook.py()))?
        {
            forms.blocking.get_or_insert_with(|| read.id.clone());
        }
        Ok(read)
    }

    fn failed(&self) -> BeforeAction {
        BeforeAction::Block(format!("the hook `{}` failed", self.id))
    }

    /// Calls a method with arguments, and reads what it returns. Returns `None` if it failed, or returned something else.
    async fn ask<T>(
        &self,
        method: &Py<PyAny>,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Py<PyTuple>>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let prepared = Python::attach(|py| Ok((method.clone_ref(py), arguments(py)?)));
        let (method, arguments) = prepared.map_err(|error: PyErr| self.report(error)).ok()?;
        let returned = call_hook(&self.id, method, arguments).await?;
        Python::attach(|py| read(returned.bind(py))).map_err(|error| self.report(error)).ok()
    }

    /// Logs what is wrong with a hook, as Python does for one that raises; a model sees only that it failed.
    fn report(&self, error: PyErr) {
        Python::attach(|py| {
            let log = || -> PyResult<()> {
                let logger = py.import("logging")?.call_method1("getLogger", ("callgate",))?;
                let details = PyDict::new(py);
                details.set_item("exc_info", error.value(py))?;
                let message = format!("the hook `{}` failed", self.id);
                logger.call_method("error", ("%s", message), Some(&details)).map(drop)
            };
            if let Err(failure) = log() {
                failure.write_unraisable(py, None);
            }
        });
    }
}

fn is_asynchronous(method: &Bound<'_, PyAny>) -> PyResult<bool> {
    let inspect = method.py().import("inspect")?;
    let called = method.getattr_opt("__call__")?;
    for function in [Some(method.clone()), called].into_iter().flatten() {
        if inspect.call_method1("iscoroutinefunction", (function,))?.is_truthy()? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Middleware for PythonHook {
    fn id(&self) -> &str {
        &self.id
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        Box::pin(async move {
            let Some(before) = &self.before else { return BeforeAction::Continue };
            let arguments = |py: Python<'_>| arguments(py, (ToolCall::new(call.call.clone()),));
            self.ask(before, arguments, read_action).await.unwrap_or_else(|| self.failed())
        })
    }

    fn has_around(&self) -> bool {
        self.around.is_some()
    }

    fn around<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        mut next: Next<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            match &self.around {
                Some(around) => run_around(around, call, next).await,
                None => next.call().await,
            }
        })
    }

    fn on_error<'a>(&'a self, call: &'a HookCall<'a>, error: &'a ToolError) -> BoxFuture<'a, ErrorAction> {
        Box::pin(async move {
            let Some(on_error) = &self.on_error else { return ErrorAction::Keep };
            let arguments =
                |py: Python<'_>| arguments(py, (ToolCall::new(call.call.clone()), error.message.as_str()));
            let action = self.ask(on_error, arguments, |action| read_error_action(action, error)).await;
            action.unwrap_or(ErrorAction::Keep)
        })
    }

    fn after<'a>(&'a self, end: &'a ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(after) = &self.after else { return };
            let document = callgate::json::to_value(end.outcome).unwrap_or_default();
            self.ask(after, |py| arguments(py, (to_python(py, &document)?,)), |_| Ok(())).await;
        })
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
