//! Claude Code: <https://code.claude.com/docs/en/hooks>.
//!
//! A hook that fails blocks only by exit status 2 with a reason on stderr: every other failure lets the tool run.

use callgate::json::{Value, json};

use crate::answer::{Answer, Verdict};
use crate::event::{EventKind, HookEvent, ToolResult};
use crate::event_error::EventError;
use crate::event_reader::EventReader;
use crate::tool_use::{ToolRule, ToolUse};

const TOOLS: [ToolRule; 6] = [
    ToolRule::new("Bash", "Bash", "command", &[]),
    ToolRule::new("Read", "Read", "file_path", &[]),
    ToolRule::new("Write", "Write", "file_path", &[]),
    ToolRule::new("Edit", "Edit", "file_path", &[]),
    ToolRule::new("MultiEdit", "Edit", "file_path", &[]),
    ToolRule::new("NotebookEdit", "Edit", "file_path", &["notebook_path"]),
];

/// The modes in which Claude Code asks its user. In the others a question may be answered without one.
const ASKING_MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

pub(crate) fn read(event: &Value) -> Result<HookEvent, EventError> {
    let event = EventReader::new(event)?;
    let name = event.string("hook_event_name")?;
    let tool = || {
        let input = event.object("tool_input")?.to_value();
        let used = ToolUse::normalized(event.string("tool_name")?, input, &TOOLS)?;
        Ok::<_, EventError>(used.with_id(event.optional_string("tool_use_id")?))
    };
    let kind = match name {
        "PreToolUse" => EventKind::BeforeTool(tool()?),
        "PostToolUse" => {
            let result = event.get("tool_response").cloned().unwrap_or_default();
            EventKind::AfterTool(tool()?, ToolResult::Output(result))
        }
        "PostToolUseFailure" => {
            let error = event.optional_string("error")?.unwrap_or_else(|| "the tool failed".to_owned());
            EventKind::AfterTool(tool()?, ToolResult::Error(error))
        }
        "UserPromptSubmit" => EventKind::Prompt(event.text("prompt")?.to_owned()),
        "SessionStart" => EventKind::SessionStart,
        "SessionEnd" => EventKind::SessionEnd,
        other => return Err(EventError::UnknownEvent(other.to_owned())),
    };
    let permission_mode = event.optional_string("permission_mode")?;
    Ok(HookEvent {
        can_ask: permission_mode.as_deref().is_some_and(|mode| ASKING_MODES.contains(&mode)),
        permission_mode,
        ..HookEvent::new(name, event.string("session_id")?, event.optional_string("cwd")?, kind)
    })
}

pub(crate) fn answer(event: &HookEvent, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Proceed => Answer::silent(),
        Verdict::Rewrite(input) => {
            let reason = "a policy changed the input of this tool";
            // Only a permission takes another input, and it skips the user's own permission rules: the user is asked instead, or has
            // switched the rules off.
            match event.permission_mode.as_deref() {
                _ if event.can_ask => Answer::document(&decision_document("ask", reason, Some(input))),
                Some("bypassPermissions") => {
                    Answer::document(&decision_document("allow", reason, Some(input)))
                }
                _ => denied(
                    "a policy changes the input of this tool, which this permission mode does not support",
                ),
            }
        }
        Verdict::Ask { reason, input } => Answer::document(&decision_document("ask", reason, input.as_ref())),
        Verdict::Deny(reason) => match event.kind {
            EventKind::BeforeTool(_) => denied(reason),
            _ => Answer::blocked(reason),
        },
        Verdict::ReplaceResult(result) => replaced(event, result),
    }
}

fn denied(reason: &str) -> Answer {
    Answer::blocking(&decision_document("deny", reason, None), reason)
}

fn decision_document(decision: &str, reason: &str, input: Option<&Value>) -> Value {
    let mut output = json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    });
    if let (Some(input), Some(members)) = (input, output.as_object_mut()) {
        members.insert("updatedInput", input.clone());
    }
    json!({ "hookSpecificOutput": output })
}

fn replaced(event: &HookEvent, result: &Value) -> Answer {
    let is_mcp =
        matches!(&event.kind, EventKind::AfterTool(tool, _) if tool.native_tool.starts_with("mcp__"));
    let mut output = json!({ "hookEventName": event.name, "updatedToolOutput": result });
    if let (true, Some(members)) = (is_mcp, output.as_object_mut()) {
        members.insert("updatedMCPToolOutput", result.clone());
    }
    Answer::document(&json!({ "hookSpecificOutput": output }))
}
