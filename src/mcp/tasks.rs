//! Tool calls that are made as tasks: what they come to is not in the answer to the call, but is asked for later, or told.
//!
//! The call is judged when it is made. Of what it came to, what policies hide from the results of that call is hidden wherever it
//! comes; and nothing is shown of a task that is not known to be one of these calls.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::frame::{Frame, code};
use super::link::Link;
use super::method;
use crate::call::ToolCall;
use crate::json::Value;
use crate::text::inert;

/// Tasks that are remembered. Of more the oldest is forgotten.
const TASKS: usize = 1024;

/// Tells which tasks there are, and nothing of what they came to.
const LIST: &str = "tasks/list";

/// What is told of a task that says nothing of what it came to.
const PLAIN: [&str; 6] = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"];

/// The tasks of one connection.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: Mutex<VecDeque<(String, ToolCall)>>,
}

impl Tasks {
    /// Notes a call whose answer says that it goes on as a task.
    pub(super) fn note(&self, call: &ToolCall, answer: &Frame) {
        let Some(result) = answer.result_value() else { return };
        let Some(id) = begun(result) else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((id.to_owned(), call.clone()));
        if known.len() > TASKS {
            known.pop_front();
        }
    }

    /// The calls that go on as a task of this name; of several servers, each may have one.
    fn of(&self, id: &str) -> Vec<ToolCall> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(known, _)| known == id).map(|(_, call)| call.clone()).collect()
    }
}

/// The task as which a call goes on: in the result itself, or, in drafts that are in use, in its `_meta`.
fn begun(result: &Value) -> Option<&str> {
    let meta = result.get("_meta").and_then(Value::as_object).into_iter().flatten();
    let in_meta = meta.filter(|(name, _)| name.ends_with("/task")).map(|(_, task)| task);
    let mut places = result.get("task").into_iter().chain([result]).chain(in_meta);
    places.find_map(|task| task.get("taskId")?.as_str())
}

/// The task that a request or a notification is about. One that names none as it should is about one that nobody knows.
pub(super) fn subject(frame: &Frame) -> Option<String> {
    let method = frame.method();
    let is_about_one = method.trim_start_matches("notifications/").starts_with("tasks/") && method != LIST
        || method == "notifications/tasks";
    let id = || frame.param("taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
    is_about_one.then(id)
}

/// Why a request is refused that a lenient server could take for one about another task, or for one about a task at all.
pub(super) fn misread(frame: &Frame) -> Option<String> {
    let method: String = method::plain(frame.method()).collect();
    if !method.starts_with("tasks") {
        return None;
    }
    if !frame.method().starts_with("tasks/") {
        return Some(format!("there is no method `{}`", inert(frame.method())));
    }
    let member = method::misread(frame.params().into_iter().flatten(), &["taskId"])?;
    Some(format!("some take the parameter `{}` for `taskId`", inert(member)))
}

/// An answer about a task, or what a server tells of one, without what policies hide.
pub(super) fn hidden(link: &Link, task: &str, mut frame: Frame) -> Frame {
    if !link.hides_results() {
        return frame;
    }
    let calls = link.tasks.of(task);
    if calls.is_empty() {
        let message =
            "no call of this connection began the task; policies hide results, and whose it is can't be told";
        return match frame.id().cloned() {
            Some(id) => Frame::error(Some(&id), code::INVALID_PARAMS, message, None),
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
            // Where the result itself stands within, paths are those of results.
            if let Some(result) = value.get_mut("result") {
                link.session.hide(call, result);
            }
            link.session.hide(call, value);
        };
        frame.result_mut().into_iter().for_each(&mut hide);
        frame.error_mut().into_iter().for_each(&mut hide);
        frame.params_mut().into_iter().for_each(&mut hide);
        frame.other_members().for_each(&mut hide);
    }
    frame
}
