//! Cline: <https://docs.cline.bot/features/hooks/hook-reference>.
//!
//! Only `cancel: true` on stdout stops a tool; a hook can change neither input nor result.

use callgate::json::{self, Value, json};

use crate::answer::{Answer, Verdict};
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
        other => return Err(EventError::UnknownEvent(other.to_owned())),
    };
    Ok(HookEvent::new(name, event.string("taskId")?, event.first_string("workspaceRoots")?, kind))
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

pub(crate) fn answer(_: &HookEvent, verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Proceed | Verdict::ReplaceResult(_) => Answer::document(&json!({ "cancel": false })),
        Verdict::Rewrite(_) => {
            refuse("a policy changes the input of this tool, which Cline does not support")
        }
        Verdict::Ask { reason, .. } | Verdict::Deny(reason) => refuse(reason),
    }
}

pub(crate) fn refuse(reason: &str) -> Answer {
    let mut answer = Answer::document(&json!({ "cancel": true, "errorMessage": reason }));
    answer.stderr = reason.to_owned();
    answer
}
