//! The agents, and the protocol of each.

use callgate::json::Value;

use crate::answer::{Answer, Verdict};
use crate::event::HookEvent;
use crate::event_error::EventError;
use crate::{claude_code, cline, codex, cursor, gemini_cli};

/// A coding agent with hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// Cursor.
    Cursor,
    /// Cline.
    Cline,
}

impl Agent {
    /// Every agent.
    pub const ALL: [Self; 5] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::Cursor, Self::Cline];

    /// The name on the command line, and `$.context.agent`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Cursor => "cursor",
            Self::Cline => "cline",
        }
    }

    /// The product's name.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Cline => "Cline",
        }
    }

    /// Reads an event.
    ///
    /// # Errors
    /// The event is not one that this agent sends: the answer is that of [`refuse`](Self::refuse).
    pub fn read_event(self, event: &Value) -> Result<HookEvent, EventError> {
        let event = match self {
            Self::ClaudeCode => claude_code::read(event),
            Self::Codex => codex::read(event),
            Self::GeminiCli => gemini_cli::read(event),
            Self::Cursor => cursor::read(event),
            Self::Cline => cline::read(event),
        }?;
        Ok(event.with_absolute_paths())
    }

    /// The answer to an event.
    pub fn answer(self, event: &HookEvent, verdict: &Verdict) -> Answer {
        match self {
            Self::ClaudeCode => claude_code::answer(event, verdict),
            Self::Codex => codex::answer(event, verdict),
            Self::GeminiCli => gemini_cli::answer(event, verdict),
            Self::Cursor => cursor::answer(event, verdict),
            Self::Cline => cline::answer(event, verdict),
        }
    }

    /// The answer to input that can't be used: it blocks whatever event it was.
    pub fn refuse(self, reason: &str) -> Answer {
        match self {
            Self::ClaudeCode | Self::Codex => Answer::blocked(reason),
            Self::GeminiCli => gemini_cli::refuse(reason),
            Self::Cursor => cursor::refuse(reason),
            Self::Cline => cline::refuse(reason),
        }
    }

    /// Whether the agent can show its model another result of this tool than the real one.
    pub fn can_replace_result(self, native_tool: &str) -> bool {
        match self {
            Self::ClaudeCode | Self::Codex | Self::GeminiCli => true,
            Self::Cursor => cursor::is_mcp(native_tool),
            Self::Cline => false,
        }
    }
}
