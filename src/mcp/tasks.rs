//! Tool calls that run as tasks: their result is not in the response to the call, but is requested later, or sent by a notification.
//!
//! The call is evaluated when it is made. Redaction of its result applies to every later message about its task; results of tasks that
//! can't be traced to a call of the connection are withheld.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::connection::ClientConnection;
use super::jsonrpc::{JsonRpcMessage, code};
use super::method;
use crate::call::ToolCall;
use crate::json::Value;
use crate::safe_text::escape_controls;

/// The maximum number of tasks that are tracked. Beyond it the oldest is evicted.
const MAX_TASKS: usize = 1024;

/// The request that lists tasks, without their results.
const TASKS_LIST: &str = "tasks/list";

/// The members of a task that reveal nothing of its result.
const PLAIN: [&str; 6] = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"];

/// The tasks of one connection, with their calls.
#[derive(Debug, Default)]
pub(super) struct TaskRegistry {
    known: Mutex<VecDeque<(String, ToolCall)>>,
}

impl TaskRegistry {
    /// Records a call whose response starts a task.
    pub(super) fn record(&self, call: &ToolCall, answer: &JsonRpcMessage) {
        let Some(result) = answer.result_value() else { return };
        let Some(id) = begun(result) else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((id.to_owned(), call.clone()));
        if known.len() > MAX_TASKS {
            known.pop_front();
        }
    }

    /// The calls that run as a task of this id; ids of different servers may be equal.
    fn of(&self, id: &str) -> Vec<ToolCall> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(known, _)| known == id).map(|(_, call)| call.clone()).collect()
    }
}

/// The id of the task that a result starts: in the result itself or, in drafts of the protocol that are in use, in its `_meta`.
fn begun(result: &Value) -> Option<&str> {
    let meta = result.get("_meta").and_then(Value::as_object).into_iter().flatten();
    let in_meta = meta.filter(|(name, _)| name.ends_with("/task")).map(|(_, task)| task);
    let mut places = result.get("task").into_iter().chain([result]).chain(in_meta);
    places.find_map(|task| task.get("taskId")?.as_str())
}

/// The task id of a request or a notification about a task; empty, and so unknown, if it is missing or malformed.
pub(super) fn task_id(frame: &JsonRpcMessage) -> Option<String> {
    let method = frame.method();
    let is_about_one = method.trim_start_matches("notifications/").starts_with("tasks/")
        && method != TASKS_LIST
        || method == "notifications/tasks";
    let id = || frame.param("taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
    is_about_one.then(id)
}

/// Returns why a request is rejected if a lenient server could read another task id in it, or a task method in its method.
pub(super) fn find_ambiguity(frame: &JsonRpcMessage) -> Option<String> {
    let method: String = method::plain(frame.method()).collect();
    if !method.starts_with("tasks") {
        return None;
    }
    if !frame.method().starts_with("tasks/") {
        return Some(format!("unknown method `{}`", escape_controls(frame.method())));
    }
    let member = method::find_ambiguous_member(frame.params().into_iter().flatten(), &["taskId"])?;
    Some(format!("ambiguous parameter `{}`: some parsers read it as `taskId`", escape_controls(member)))
}

/// Redacts a response or a notification about a task.
pub(super) fn redact(link: &ClientConnection, task: &str, mut frame: JsonRpcMessage) -> JsonRpcMessage {
    if !link.redacts_results() {
        return frame;
    }
    let calls = link.tasks.of(task);
    if calls.is_empty() {
        let message = "unknown task: no call of this connection started it, and policies redact results, so its result is withheld";
        return match frame.id().cloned() {
            Some(id) => JsonRpcMessage::error_response(Some(&id), code::INVALID_PARAMS, message, None),
            None => {
                if let Some(Value::Object(params)) = frame.params_mut() {
                    params.retain(|name, _| PLAIN.contains(&name.as_str()));
                }
                frame
            }
        };
    }
    for call in &calls {
        let mut hide = |value: &mut Value| {
            // A nested result is redacted by paths relative to the result.
            if let Some(result) = value.get_mut("result") {
                link.session.redact(call, result);
            }
            link.session.redact(call, value);
        };
        frame.result_mut().into_iter().for_each(&mut hide);
        frame.error_mut().into_iter().for_each(&mut hide);
        frame.params_mut().into_iter().for_each(&mut hide);
        frame.extension_members().for_each(&mut hide);
    }
    frame
}
