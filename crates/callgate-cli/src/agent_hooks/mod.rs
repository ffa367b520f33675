//! The hooks of coding agents in their settings files: where they are, which events call `callgate hook`, and by which command.

pub(crate) mod cline_hooks;
mod settings_edit;

use std::path::{Path, PathBuf};

use crate::output::quote_shell_word;
use callgate_hooks::Agent;

pub(crate) use settings_edit::{
    HookEntry, InstalledHook, add_hooks, allows_managed_hooks_only, find_hooks, is_disabled, remove_hooks,
};

/// The first word of every command that is installed, by which it is found again. The shell ignores it.
const MARKER: &str = ": callgate-hook;";

/// What the name of the backup of a settings file ends with.
pub(crate) const BACKUP_SUFFIX: &str = ".before-callgate-hooks";

/// How an agent's settings name hooks.
pub(crate) struct HookSettings {
    pub(crate) agent: Agent,
    /// An environment variable with the directory of the settings, and the file in it.
    override_variable: Option<(&'static str, &'static str)>,
    /// The file in the user's home directory.
    user: &'static str,
    /// The file in a project.
    project: &'static str,
    /// Events whose hooks are chosen by the tool, and all others.
    tool_events: &'static [&'static str],
    other_events: &'static [&'static str],
    /// The file of administrators, which applies to all users: on Linux, macOS and Windows.
    managed: [&'static str; 3],
    /// What the user has to do afterwards.
    pub(crate) next_step: &'static str,
    /// What administrators have to do afterwards.
    pub(crate) managed_next_step: &'static str,
    /// The agent's program, and its version with which the hooks were tested, if there is one.
    pub(crate) program: Option<(&'static str, &'static str)>,
}

impl HookSettings {
    /// The settings of an agent. `None` if its hooks are not in a settings file.
    pub(crate) fn of(agent: Agent) -> Option<&'static Self> {
        match agent {
            Agent::ClaudeCode => Some(&Self {
                agent: Agent::ClaudeCode,
                override_variable: Some(("CLAUDE_CONFIG_DIR", "settings.json")),
                user: ".claude/settings.json",
                project: ".claude/settings.json",
                tool_events: &["PreToolUse", "PostToolUse", "PostToolUseFailure"],
                other_events: &["UserPromptSubmit", "SessionStart", "SessionEnd"],
                managed: [
                    "/etc/claude-code/managed-settings.json",
                    "/Library/Application Support/ClaudeCode/managed-settings.json",
                    "C:/Program Files/ClaudeCode/managed-settings.json",
                ],
                next_step: "Restart Claude Code, then run `callgate doctor claude-code`",
                managed_next_step: "Users can't remove these hooks. Restart Claude Code, then run `callgate doctor claude-code`",
                program: Some(("claude", "2.1.332")),
            }),
            Agent::Codex => Some(&Self {
                agent: Agent::Codex,
                override_variable: Some(("CODEX_HOME", "hooks.json")),
                user: ".codex/hooks.json",
                project: ".codex/hooks.json",
                tool_events: &["PreToolUse", "PostToolUse"],
                other_events: &["UserPromptSubmit", "SessionStart"],
                managed: [
                    "/etc/codex/hooks.json",
                    "/etc/codex/hooks.json",
                    "C:/ProgramData/OpenAI/Codex/hooks.json",
                ],
                next_step: "Start Codex, send a message and trust the hooks that it shows, then run `callgate doctor codex`",
                managed_next_step: "Set `hooks = true` under `[features]` in `requirements.toml` beside this file: without it, users can \
                                    switch hooks off. Then run `callgate doctor codex`",
                program: Some(("codex", "0.169.0")),
            }),
            Agent::GeminiCli => Some(&Self {
                agent: Agent::GeminiCli,
                override_variable: Some(("GEMINI_CLI_HOME", ".gemini/settings.json")),
                user: ".gemini/settings.json",
                project: ".gemini/settings.json",
                tool_events: &["BeforeTool", "AfterTool"],
                other_events: &["BeforeAgent", "SessionStart", "SessionEnd"],
                managed: [
                    "/etc/gemini-cli/settings.json",
                    "/Library/Application Support/GeminiCli/settings.json",
                    "C:/ProgramData/gemini-cli/settings.json",
                ],
                next_step: "Restart Gemini CLI, then run `callgate doctor gemini-cli`",
                managed_next_step: "Set `hooksConfig.enabled` to true in this file: without it, users can switch hooks off. Restart Gemini CLI, \
                                    then run `callgate doctor gemini-cli`",
                program: Some(("gemini", "0.61.0")),
            }),
            Agent::Cursor => Some(&Self {
                agent: Agent::Cursor,
                override_variable: None,
                user: ".cursor/hooks.json",
                project: ".cursor/hooks.json",
                tool_events: &["preToolUse", "postToolUse", "postToolUseFailure"],
                other_events: &["beforeSubmitPrompt", "sessionStart", "sessionEnd"],
                managed: [
                    "/etc/cursor/hooks.json",
                    "/Library/Application Support/Cursor/hooks.json",
                    "C:/ProgramData/Cursor/hooks.json",
                ],
                next_step: "Restart Cursor, then run `callgate doctor cursor`",
                managed_next_step: "Restart Cursor, then run `callgate doctor cursor`",
                program: None,
            }),
            Agent::Cline => None,
        }
    }

    /// The user's settings file. `None` if the home directory is unknown.
    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let overridden = self.override_variable.and_then(|(name, file)| Some(variable(name)?.join(file)));
        overridden.or_else(|| Some(variable("HOME").or_else(|| variable("USERPROFILE"))?.join(self.user)))
    }

    /// The settings file of the project in this directory.
    pub(crate) fn project_file(&self, directory: &Path) -> PathBuf {
        directory.join(self.project)
    }

    /// The settings file of administrators on this operating system.
    pub(crate) fn managed_file(&self) -> PathBuf {
        let [linux, macos, windows] = self.managed;
        PathBuf::from(match std::env::consts::OS {
            "macos" => macos,
            "windows" => windows,
            _ => linux,
        })
    }

    /// The event before a tool, by which tools are denied.
    pub(crate) fn first_event(&self) -> &'static str {
        self.tool_events.first().copied().unwrap_or_default()
    }
}

/// The command of a hook. Agents run it by a shell of the user's choice, so it runs `sh` itself; whatever ends it without a decision (a missing
/// program, a signal) becomes status 2, which blocks in every agent with settings.
pub(crate) fn hook_command(agent: Agent, program: &str, options: &[String]) -> String {
    let words: Vec<String> = [program, "hook", agent.name()]
        .into_iter()
        .chain(options.iter().map(String::as_str))
        .map(quote_shell_word)
        .collect();
    let script = format!(
        "{MARKER} {} || {{ [ $? -eq 2 ] || echo 'Callgate could not decide this' >&2; exit 2; }}",
        words.join(" ")
    );
    format!("/bin/sh -c {}", quote_shell_word(&script))
}
