//! Codex: `codex-rs/hooks` in <https://github.com/openai/codex>, and <https://developers.openai.com/codex/hooks>.
//!
//! Answers are parsed with unknown members rejected, and an answer that can't be parsed lets the tool run; so does a plain `allow`, an `ask`, and
//! status 2 without a reason on stderr. A denial is therefore always status 2 with a reason, and permission is silence.

use callgate::json::{Value, json};

use crate::answer::{Answer, Verdict, result_text};
use crate::event::{EventKind, HookEvent, ToolResult};
use crate::event_error::EventError;
use crate::event_reader::EventReader;
use crate::patch_paths;
use crate::tool_use::{NormalizedCall, ToolRule, ToolUse};

const TOOLS: [ToolRule; 5] = [
    ToolRule::new("Bash", "Bash", "command", &["cmd"]),
    ToolRule::new("shell", "Bash", "command", &["cmd"]),
    ToolRule::new("shell_command", "Bash", "command", &["cmd"]),
    ToolRule::new("exec_command", "Bash", "command", &["cmd"]),
    ToolRule::new("view_image", "Read", "file_path", &["path"]),
];

pub(crate) fn read(event: &Value) -> Result<HookEvent, EventError> {
    let event = EventReader::new(event)?;
    let name = event.string("hook_event_name")?;
    let kind = match name {
        "PreToolUse" => EventKind::BeforeTool(read_tool(event)?),
        "PostToolUse" => {
            let result = event.get("tool_response").cloned().unwrap_or_default();
            EventKind::AfterTool(read_tool(event)?, ToolResult::Output(result))
        }
        "UserPromptSubmit" => EventKind::Prompt(event.text("prompt")?.to_owned()),
        "SessionStart" => EventKind::SessionStart,
        "SessionEnd" => EventKind::SessionEnd,
        other => return Err(EventError::UnknownEvent(other.to_owned())),
    };
    let permission_mode = event.optional_string("permission_mode")?;
    let directory = event.optional_string("cwd")?;
    Ok(HookEvent { permission_mode, ..HookEvent::new(name, event.string("session_id")?, directory, kind) })
}

fn read_tool(event: EventReader<'_>) -> Result<ToolUse, EventError> {
    let native = event.string("tool_name")?;
    let input = event.object("tool_input")?;
    let id = event.optional_string("tool_use_id")?;
    if native == "apply_patch" {
        let member = match (input.get("command"), input.get("input")) {
            (Some(_), Some(_)) => return Err(EventError::Ambiguous("command".into(), "input".into())),
            (Some(_), None) => "command",
            _ => "input",
        };
        let patch = input.string(member)?;
        let call = |path: String| NormalizedCall {
            tool: "Edit".to_owned(),
            input: json!({ "file_path": path, "patch": patch }),
        };
        let calls = patch_paths::read(patch)?.into_iter().map(call).collect();
        // A patch is not made again of the input of one file.
        let used = ToolUse { calls, ..ToolUse::unchanged(native, native, Value::Null) };
        return Ok(used.with_id(id));
    }
    let mut used = ToolUse::normalized(native, input.to_value(), &TOOLS)?;
    let is_shell = used.calls.iter().any(|call| call.tool == "Bash");
    if is_shell {
        used.cwd = input.optional_string("workdir")?;
        // Codex applies a patch in a command itself, and runs no other hook for it.
        if let Some(command) = used.calls.first().and_then(|call| call.input.get("command")?.as_str()) {
            let edit = |path: String| NormalizedCall {
                tool: "Edit".to_owned(),
                input: json!({ "file_path": path, "patch": command }),
            };
            let edits: Vec<NormalizedCall> =
                patch_paths::read_command(command)?.into_iter().map(edit).collect();
            used.calls.extend(edits);
        }
    }
    Ok(used.with_id(id))
}

pub(crate) fn answer(event: &HookEvent, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Proceed => Answer::silent(),
        Verdict::Rewrite(input) => Answer::document(&json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": input,
        } })),
        Verdict::Ask { reason, .. } | Verdict::Deny(reason) => Answer::blocked(reason),
        Verdict::ReplaceResult(result) => match &event.kind {
            EventKind::AfterTool(tool, _) if tool.native_tool.starts_with("mcp__") => {
                Answer::document(&json!({ "hookSpecificOutput": {
                    "hookEventName": "PostToolUse",
                    "updatedMCPToolOutput": result,
                } }))
            }
            _ => Answer::document(&json!({ "decision": "block", "reason": block_reason(result) })),
        },
    }
}

/// A block without a reason would not block.
fn block_reason(result: &Value) -> String {
    let text = result_text(result);
    if text.trim().is_empty() { "the tool returned nothing".to_owned() } else { text }
}
