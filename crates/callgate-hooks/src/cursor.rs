//! Cursor: <https://cursor.com/docs/hooks>.
//!
//! A hook that fails lets the tool run, unless its entry has `failClosed: true`; status 2 denies. `ask` is not reliable, so a call that needs a
//! person is denied with what to do.

use callgate::json::{self, Value, json};

use crate::answer::{Answer, Verdict};
use crate::event::{EventKind, HookEvent, ToolResult};
use crate::event_error::EventError;
use crate::event_reader::EventReader;
use crate::tool_use::{ToolRule, ToolUse};

const TOOLS: [ToolRule; 7] = [
    ToolRule::new("Shell", "Bash", "command", &[]),
    ToolRule::new("Bash", "Bash", "command", &[]),
    ToolRule::new("run_terminal_cmd", "Bash", "command", &[]),
    ToolRule::new("Read", "Read", "file_path", &["path", "target_file"]),
    ToolRule::new("Write", "Write", "file_path", &["path", "target_file"]),
    ToolRule::new("Edit", "Edit", "file_path", &["path", "target_file"]),
    ToolRule::new("Delete", "Delete", "file_path", &["path", "target_file"]),
];

const WRONG_INPUT: &str = "an object, or a string with one in JSON";

pub(crate) fn read(event: &Value) -> Result<HookEvent, EventError> {
    let event = EventReader::new(event)?;
    let name = event.string("hook_event_name")?;
    let kind = match name {
        "preToolUse" | "beforeMCPExecution" => EventKind::BeforeTool(read_tool(event)?),
        "beforeShellExecution" => {
            let input = json!({ "command": event.text("command")? });
            let used = ToolUse::normalized("Shell", input, &TOOLS)?;
            EventKind::BeforeTool(ToolUse { cwd: event.optional_string("cwd")?, ..used })
        }
        "beforeReadFile" => {
            let input = json!({ "file_path": event.string("file_path")? });
            EventKind::BeforeTool(ToolUse::normalized("Read", input, &TOOLS)?)
        }
        "postToolUse" => {
            let output = event.get("tool_output").cloned().unwrap_or_default();
            EventKind::AfterTool(read_tool(event)?, ToolResult::Output(output))
        }
        "postToolUseFailure" => {
            let error = event.optional_string("error_message")?;
            let error = error.unwrap_or_else(|| "the tool failed".to_owned());
            EventKind::AfterTool(read_tool(event)?, ToolResult::Error(error))
        }
        "beforeSubmitPrompt" => EventKind::Prompt(event.text("prompt")?.to_owned()),
        "sessionStart" => EventKind::SessionStart,
        "sessionEnd" => EventKind::SessionEnd,
        other => return Err(EventError::UnknownEvent(other.to_owned())),
    };
    let session = event.string("conversation_id").or_else(|_| event.string("session_id"))?;
    let event_cwd = event.optional_string("cwd")?;
    let event = HookEvent::new(name, session, event.first_string("workspace_roots")?, kind);
    Ok(HookEvent { cwd: event_cwd.or_else(|| event.workspace.clone()), ..event })
}

fn read_tool(event: EventReader<'_>) -> Result<ToolUse, EventError> {
    let native = event.string("tool_name")?;
    let wrong = || EventError::Member("tool_input".to_owned(), WRONG_INPUT);
    let input = match event.get("tool_input") {
        Some(Value::String(text)) => json::parse(text.as_str()).map_err(|_| wrong())?,
        Some(other) => other.clone(),
        None => json!({}),
    };
    let id = event.optional_string("tool_use_id")?;
    let members = EventReader::new(&input).map_err(|_| wrong())?;
    if is_mcp(native) || event.string("hook_event_name")? == "beforeMCPExecution" {
        let name = native.strip_prefix("MCP:").unwrap_or(native);
        let tool = match name.split_once(':') {
            Some((server, tool)) => format!("mcp__{}__{}", server.trim(), tool.trim()),
            // Cursor does not name the server.
            None => format!("mcp__unknown__{}", name.trim()),
        };
        return Ok(ToolUse::unchanged(native, tool, members.to_value()).with_id(id));
    }
    let directory = members.optional_string("working_directory")?;
    let used = ToolUse::normalized(native, members.to_value(), &TOOLS)?;
    let is_shell = used.calls.iter().any(|call| call.tool == "Bash");
    Ok(ToolUse { cwd: directory.filter(|_| is_shell), ..used }.with_id(id))
}

/// Whether a tool is an MCP tool.
pub(crate) fn is_mcp(native: &str) -> bool {
    native.starts_with("MCP:")
}

pub(crate) fn answer(event: &HookEvent, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Proceed => Answer::document(&match event.kind {
            EventKind::Prompt(_) => json!({ "continue": true }),
            _ => json!({}),
        }),
        // Only this event takes another input.
        Verdict::Rewrite(input) if event.name == "preToolUse" => {
            Answer::document(&json!({ "permission": "allow", "updated_input": input }))
        }
        Verdict::Rewrite(_) => {
            refuse("a policy changes the input of this tool, which this event does not support")
        }
        Verdict::Ask { reason, .. } | Verdict::Deny(reason) => refuse(reason),
        Verdict::ReplaceResult(result) => match &event.kind {
            EventKind::AfterTool(tool, _) if is_mcp(&tool.native_tool) => {
                Answer::document(&json!({ "updated_mcp_tool_output": result }))
            }
            _ => Answer::document(&json!({})),
        },
    }
}

pub(crate) fn refuse(reason: &str) -> Answer {
    let document = json!({
        "permission": "deny",
        "continue": false,
        "user_message": reason,
        "agent_message": reason,
    });
    Answer::blocking(&document, reason)
}
