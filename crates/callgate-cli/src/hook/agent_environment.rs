//! What agents say to their hooks in the environment, and not in the event.

use std::path::Path;

use callgate::json::{self, Value, json};
use callgate_hooks::Agent;

/// What the environment of a hook says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentEnvironment {
    /// The project's directory. It stays the same when the agent changes its own.
    pub(super) project: Option<String>,
    /// Whether a user can answer questions. An agent without a terminal refuses what it would have to ask.
    pub(super) is_attended: bool,
}

impl AgentEnvironment {
    /// The environment of this process.
    pub(super) fn read(agent: Agent) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let project = match agent {
            Agent::ClaudeCode => variable("CLAUDE_PROJECT_DIR"),
            Agent::GeminiCli => variable("GEMINI_PROJECT_DIR"),
            Agent::Codex | Agent::Cursor | Agent::Cline => None,
        };
        let is_attended =
            agent != Agent::ClaudeCode || variable("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0");
        Self { project: project.filter(|directory| Path::new(directory).is_absolute()), is_attended }
    }

    /// One line of JSON, for the helper.
    #[cfg(unix)]
    pub(super) fn to_line(&self) -> String {
        format!("{}\n", json!({ "project": self.project, "attended": self.is_attended }))
    }

    /// Reads such a line. `None` if it is not one.
    #[cfg(unix)]
    pub(super) fn parse(line: &str) -> Option<Self> {
        let members = json::parse(line).ok()?;
        let project = match members.get("project")? {
            Value::Null => None,
            project => Some(project.as_str()?.to_owned()),
        };
        Some(Self { project, is_attended: members.get("attended")?.as_bool()? })
    }
}
