//! The hook protocols of coding agents, as pure functions: an event's JSON → [`HookEvent`] with normalised tool calls, and a [`Verdict`] →
//! the [`Answer`] that this agent understands. One file per agent; nothing here decides, reads or writes.
//!
//! Tools are normalised so that one bundle serves all agents: `Bash` with `command`; `Read`, `Write` and `Edit` with `file_path`; MCP tools
//! `mcp__server__tool`; every other tool keeps its name.

mod agent;
mod answer;
mod claude_code;
mod cline;
mod cline_tools;
mod codex;
mod cursor;
mod event;
mod event_error;
mod event_reader;
mod gemini_cli;
mod patch_paths;
mod tool_use;

pub use agent::Agent;
pub use answer::{Answer, Verdict};
pub use event::{EventKind, HookEvent, ToolResult};
pub use event_error::EventError;
pub use tool_use::{NormalizedCall, ToolUse};
