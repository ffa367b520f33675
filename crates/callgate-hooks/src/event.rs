//! An event of an agent, independent of the agent.

use std::path::Path;

use callgate::json::Value;

use crate::tool_use::ToolUse;

/// An event of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct HookEvent {
    /// The agent's name of the event.
    pub name: String,
    /// The agent's session.
    pub session: String,
    /// The directory in which the agent works.
    pub cwd: Option<String>,
    /// The directory of the project.
    pub workspace: Option<String>,
    /// The agent's permission mode, such as `plan`.
    pub permission_mode: Option<String>,
    /// Whether the agent asks its user if a hook wants it to.
    pub can_ask: bool,
    /// What happened.
    pub kind: EventKind,
}

impl HookEvent {
    /// An event of an agent that works in its project's directory, and can't ask its user.
    pub(crate) fn new(name: &str, session: &str, directory: Option<String>, kind: EventKind) -> Self {
        Self {
            name: name.to_owned(),
            session: session.to_owned(),
            cwd: directory.clone(),
            workspace: directory,
            permission_mode: None,
            can_ask: false,
            kind,
        }
    }

    /// The same with absolute paths of files, if the directory of the tool is known.
    pub(crate) fn with_absolute_paths(mut self) -> Self {
        if let EventKind::BeforeTool(tool) | EventKind::AfterTool(tool, _) = &mut self.kind {
            let directory = Path::new(self.cwd.as_deref().unwrap_or_default());
            let directory = tool.cwd.as_ref().map_or_else(|| directory.to_owned(), |own| directory.join(own));
            tool.make_paths_absolute(&directory);
        }
        self
    }
}

/// What happened in an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A tool is about to run.
    BeforeTool(ToolUse),
    /// A tool has run.
    AfterTool(ToolUse, ToolResult),
    /// The user wrote a message.
    Prompt(String),
    /// A session begins or continues.
    SessionStart,
    /// A session ends.
    SessionEnd,
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    /// What the tool returned, in the agent's form.
    Output(Value),
    /// The message of the failure.
    Error(String),
}
