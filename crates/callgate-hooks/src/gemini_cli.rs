//! Gemini CLI: `docs/hooks/reference.md` in <https://github.com/google-gemini/gemini-cli>.
//!
//! Output that is not JSON, and any status except 0 and 2, let the tool run. A hook's `ask` would replace a denial of the user's own policy
//! engine, so it is never sent.

use callgate::json::{Value, json};

use crate::answer::{Answer, Verdict, result_text};
use crate::event::{EventKind, HookEvent, ToolResult};
use crate::event_error::EventError;
use crate::event_reader::EventReader;
use crate::tool_use::{ToolRule, ToolUse};

const TOOLS: [ToolRule; 4] = [
    ToolRule::new("run_shell_command", "Bash", "command", &[]),
    ToolRule::new("read_file", "Read", "file_path", &["absolute_path", "path"]),
    ToolRule::new("write_file", "Write", "file_path", &["absolute_path", "path"]),
    ToolRule::new("replace", "Edit", "file_path", &["absolute_path", "path"]),
];

pub(crate) fn read(event: &Value) -> Result<HookEvent, EventError> {
    let event = EventReader::new(event)?;
    let name = event.string("hook_event_name")?;
    let kind = match name {
        "BeforeTool" => EventKind::BeforeTool(read_tool(event)?),
        "AfterTool" => {
            // What the user is shown beside it is replaced with it.
            let response = event.object("tool_response")?;
            let output = response.get("llmContent").cloned().unwrap_or_default();
            EventKind::AfterTool(read_tool(event)?, ToolResult::Output(output))
        }
        "BeforeAgent" => EventKind::Prompt(event.text("prompt")?.to_owned()),
        "SessionStart" => EventKind::SessionStart,
        "SessionEnd" => EventKind::SessionEnd,
        other => return Err(EventError::UnknownEvent(other.to_owned())),
    };
    Ok(HookEvent::new(name, event.string("session_id")?, event.optional_string("cwd")?, kind))
}

fn read_tool(event: EventReader<'_>) -> Result<ToolUse, EventError> {
    let native = event.string("tool_name")?;
    let input = event.object("tool_input")?;
    if event.get("mcp_context").is_some() {
        let server = event.object("mcp_context")?;
        let tool = format!("mcp__{}__{}", server.string("server_name")?, server.string("tool_name")?);
        return Ok(ToolUse::unchanged(native, tool, input.to_value()));
    }
    let mut used = ToolUse::normalized(native, input.to_value(), &TOOLS)?;
    if native == "run_shell_command" {
        used.cwd = match (input.optional_string("dir_path")?, input.optional_string("directory")?) {
            (Some(_), Some(_)) => return Err(EventError::Ambiguous("dir_path".into(), "directory".into())),
            (one, other) => one.or(other),
        };
    }
    Ok(used)
}

pub(crate) fn answer(event: &HookEvent, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Proceed => Answer::document(&json!({})),
        Verdict::Rewrite(input) => Answer::document(&json!({ "hookSpecificOutput": {
            "hookEventName": event.name,
            "tool_input": input,
        } })),
        Verdict::Ask { reason, .. } | Verdict::Deny(reason) => refuse(reason),
        Verdict::ReplaceResult(result) => {
            Answer::document(&json!({ "decision": "deny", "reason": result_text(result) }))
        }
    }
}

pub(crate) fn refuse(reason: &str) -> Answer {
    Answer::blocking(&json!({ "decision": "deny", "reason": reason }), reason)
}
