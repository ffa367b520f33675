//! Cline: <https://docs.cline.bot/features/hooks/hook-reference>, and from version 3.0 of its command line `sdk/packages/core/src/hooks` in
//! <https://github.com/cline/cline>, whose events have other names and the tools of [`cline_tools`].
//!
//! Only `cancel: true` on stdout stops a tool; from version 3.0 it ends the whole run. A hook can't change a result, and only from version 3.0 an
//! input.

use callgate::json::{self, Value, json};

use crate::answer::{Answer, Verdict};
use crate::cline_tools;
use crate::event::{EventKind, HookEvent, ToolResult};
use crate::event_error::EventError;
use crate::event_reader::EventReader;
use crate::tool_use::{ToolRule, ToolUse};

const TOOLS: [ToolRule; 4] = [
    ToolRule::new("execute_command", "Bash", "command", &[]),
    ToolRule::new("read_file", "Read", "file_path", &["path"]),
    ToolRule::new("write_to_file", "Write", "file_path", &["path"]),
    ToolRule::new("replace_in_file", "Edit", "file_path", &["path"]),
];

pub(crate) fn read(event: &Value) -> Result<HookEvent, EventError> {
    let event = EventReader::new(event)?;
    let name = event.string("hookName")?;
    let kind = match name {
        "PreToolUse" => EventKind::BeforeTool(read_tool(event.object("preToolUse")?)?),
        "PostToolUse" => {
            let used = event.object("postToolUse")?;
            let failed = matches!(used.get("success"), Some(Value::Bool(false)));
            let result = used.get("result").cloned().unwrap_or_default();
            let result = match failed {
                true => ToolResult::Error(crate::answer::result_text(&result)),
                false => ToolResult::Output(result),
            };
            EventKind::AfterTool(read_tool(used)?, result)
        }
        "UserPromptSubmit" => EventKind::Prompt(event.object("userPromptSubmit")?.text("prompt")?.to_owned()),
        "TaskStart" | "TaskResume" => EventKind::SessionStart,
        "TaskCancel" | "TaskComplete" => EventKind::SessionEnd,
        "tool_call" => EventKind::BeforeTool(read_tool_call(event.object("tool_call")?)?),
        "tool_result" => {
            let result = event.object("tool_result")?;
            let output = result.get("output").cloned().unwrap_or_default();
            let output = match result.get("error") {
                None => ToolResult::Output(output),
                Some(_) => ToolResult::Error(crate::answer::result_text(&output)),
            };
            EventKind::AfterTool(read_tool_call(result)?, output)
        }
        // The prompts of a subagent, which the model writes, have the same form as those of the user, so they say nothing of the task.
        "agent_start" | "agent_resume" | "prompt_submit" | "pre_compact" => EventKind::SessionStart,
        "agent_end" | "agent_abort" | "agent_error" | "session_shutdown" => EventKind::SessionEnd,
        other => return Err(EventError::UnknownEvent(other.to_owned())),
    };
    Ok(HookEvent::new(name, &session(event)?, event.first_string("workspaceRoots")?, kind))
}

/// The session: the root one if there is one, so that subagents share it.
fn session(event: EventReader<'_>) -> Result<String, EventError> {
    let root = match event.get("sessionContext") {
        Some(_) => event.object("sessionContext")?.optional_string("rootSessionId")?,
        None => None,
    };
    root.filter(|root| !root.is_empty()).map_or_else(|| event.string("taskId").map(str::to_owned), Ok)
}

fn read_tool_call(call: EventReader<'_>) -> Result<ToolUse, EventError> {
    let input = call.get("input").cloned().unwrap_or_default();
    let used = cline_tools::normalize(call.string("name")?, &input)?;
    Ok(used.with_id(call.optional_string("id")?))
}

fn read_tool(event: EventReader<'_>) -> Result<ToolUse, EventError> {
    let native = event.string("toolName")?;
    let input = event.object("parameters")?;
    if native != "use_mcp_tool" {
        return ToolUse::normalized(native, input.to_value(), &TOOLS);
    }
    let tool = format!("mcp__{}__{}", input.string("server_name")?, input.string("tool_name")?);
    let wrong = || EventError::Member("arguments".to_owned(), "an object, or a string with one in JSON");
    let arguments = match input.get("arguments") {
        None => json!({}),
        Some(Value::String(text)) => json::parse(text.as_str()).map_err(|_| wrong())?,
        Some(other) => other.clone(),
    };
    match arguments {
        Value::Object(_) => Ok(ToolUse::unchanged(native, tool, arguments)),
        _ => Err(wrong()),
    }
}

pub(crate) fn answer(event: &HookEvent, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Rewrite(input) if event.name == "tool_call" => {
            Answer::document(&json!({ "cancel": false, "overrideInput": input }))
        }
        Verdict::Proceed | Verdict::ReplaceResult(_) => Answer::document(&json!({ "cancel": false })),
        Verdict::Rewrite(_) => {
            refuse("a policy changes the input of this tool, which this version of Cline does not support")
        }
        Verdict::Ask { reason, .. } | Verdict::Deny(reason) => refuse(reason),
    }
}

pub(crate) fn refuse(reason: &str) -> Answer {
    let mut answer = Answer::document(&json!({ "cancel": true, "errorMessage": reason }));
    answer.stderr = reason.to_owned();
    answer
}
