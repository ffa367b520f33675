//! Tool calls that run as tasks: their result is not in the response to the call, but is requested later, or sent by a notification.
//!
//! The call is evaluated when it is made. Redaction of its result applies to every later message about its task; results of tasks that
//! can't be traced to a call of the connection are withheld.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::jsonrpc::{JsonRpcMessage, code};
use super::method;
use callgate::call::ToolCall;
use callgate::json::Value;
use callgate::safe_text::escape_controls;
use callgate::session::ConcurrentSession;

/// The maximum number of tasks that are tracked. Beyond it the oldest is evicted.
const MAX_TASKS: usize = 1024;

/// The members of a task that reveal nothing of its result.
const PUBLIC_MEMBERS: [&str; 6] = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"];

/// The tasks of one connection, with their calls.
#[derive(Debug, Default)]
pub(super) struct TaskRegistry {
    calls: Mutex<VecDeque<(String, ToolCall)>>,
}

impl TaskRegistry {
    fn calls(&self) -> MutexGuard<'_, VecDeque<(String, ToolCall)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call whose response starts a task.
    pub(super) fn record(&self, call: &ToolCall, response: &JsonRpcMessage) {
        let Some(result) = response.result_value() else { return };
        let Some(id) = started_task_id(result) else { return };
        let mut calls = self.calls();
        calls.push_back((id.to_owned(), call.clone()));
        if calls.len() > MAX_TASKS {
            calls.pop_front();
        }
    }

    /// The calls that run as a task of this id; ids of different servers may be equal.
    fn calls_of(&self, task: &str) -> Vec<ToolCall> {
        self.calls().iter().filter(|(id, _)| id == task).map(|(_, call)| call.clone()).collect()
    }

    /// Redacts a response or a notification about a task, in a session that redacts results.
    pub(super) fn redact(
        &self,
        session: &ConcurrentSession,
        task: &str,
        mut message: JsonRpcMessage,
    ) -> JsonRpcMessage {
        let calls = self.calls_of(task);
        if calls.is_empty() {
            return without_result(message);
        }
        for call in &calls {
            let mut redact = |value: &mut Value| {
                // A nested result is redacted by paths relative to the result.
                if let Some(result) = value.get_mut("result") {
                    session.redact(call, result);
                }
                session.redact(call, value);
            };
            message.result_mut().into_iter().for_each(&mut redact);
            message.error_mut().into_iter().for_each(&mut redact);
            message.params_mut().into_iter().for_each(&mut redact);
            message.extension_members().for_each(&mut redact);
        }
        message
    }
}

/// A message about a task whose call is unknown, without the task's result.
fn without_result(mut message: JsonRpcMessage) -> JsonRpcMessage {
    if let Some(id) = message.id() {
        let why = "unknown task: no call of this connection started it, and policies redact results, so its result is withheld";
        return JsonRpcMessage::error_response(Some(id), code::INVALID_PARAMS, why, None);
    }
    if let Some(Value::Object(params)) = message.params_mut() {
        params.retain(|name, _| PUBLIC_MEMBERS.contains(&name.as_str()));
    }
    message
}

/// The id of the task that a result starts: in the result itself or, in drafts of the protocol that are in use, in its `_meta`.
fn started_task_id(result: &Value) -> Option<&str> {
    let meta = result.get("_meta").and_then(Value::as_object).into_iter().flatten();
    let in_meta = meta.filter(|(name, _)| name.ends_with("/task")).map(|(_, task)| task);
    let mut tasks = result.get("task").into_iter().chain([result]).chain(in_meta);
    tasks.find_map(|task| task.get("taskId")?.as_str())
}

/// The task id of a request or a notification about a task; empty, and so unknown, if it is missing or malformed.
pub(super) fn task_id(message: &JsonRpcMessage) -> Option<String> {
    let method = message.method();
    let is_about_one = method.trim_start_matches("notifications/").starts_with("tasks/")
        && method != method::TASKS_LIST
        || method == "notifications/tasks";
    let id = || message.param("taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
    is_about_one.then(id)
}

/// Returns why a request is rejected if a lenient server could read another task id in it, or a task method in its method.
pub(super) fn find_ambiguity(message: &JsonRpcMessage) -> Option<String> {
    let method: String = method::plain(message.method()).collect();
    if !method.starts_with("tasks") {
        return None;
    }
    if !message.method().starts_with("tasks/") {
        return Some(format!("unknown method `{}`", escape_controls(message.method())));
    }
    let member = method::find_ambiguous_member(message.params().into_iter().flatten(), &["taskId"])?;
    Some(format!("ambiguous parameter `{}`: some parsers read it as `taskId`", escape_controls(member)))
}
