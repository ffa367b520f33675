//! Cline's hooks: executable files named by their event, in a directory of the user or of the project. Cline runs one file per event and
//! directory.

use std::path::{Path, PathBuf};

use super::MARKER;
use crate::output::quote_shell_word;
use callgate_hooks::Agent;

/// The events that call `callgate hook`; the first is the one before a tool.
pub(crate) const EVENTS: [&str; 3] = ["PreToolUse", "PostToolUse", "UserPromptSubmit"];

/// Cline's command line, and its version with which the hooks were tested.
pub(crate) const PROGRAM: (&str, &str) = ("cline", "3.0.65");

/// What the user has to do afterwards.
pub(crate) const NEXT_STEP: &str =
    "Switch hooks on in Cline's settings, restart Cline, then run `callgate doctor cline`";

/// The directories of the user's hooks. The first one is read by the extension and by the command line, the second only by the command line
/// from version 3.0. Empty if the home directory is unknown.
pub(crate) fn user_directories() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let below = |home: PathBuf| ["Documents/Cline/Hooks", ".cline/hooks"].map(|path| home.join(path));
    home.map(below).into_iter().flatten().collect()
}

/// The directory of a project's hooks.
pub(crate) fn project_directory(project: &Path) -> PathBuf {
    project.join(".clinerules/hooks")
}

/// The text of a hook. Only `cancel: true` on stdout stops a tool, so whatever ends the program without an answer prints that.
pub(crate) fn script(program: &str, options: &[String]) -> String {
    let words: Vec<String> = [program, "hook", Agent::Cline.name()]
        .into_iter()
        .chain(options.iter().map(String::as_str))
        .map(quote_shell_word)
        .collect();
    format!(
        "#!/bin/sh\n{MARKER} {} || printf '%s\\n' \
         '{{\"cancel\":true,\"errorMessage\":\"Callgate could not decide this\"}}'\n",
        words.join(" ")
    )
}

/// Whether a file is a hook that Callgate wrote.
pub(crate) fn is_own(text: &str) -> bool {
    text.lines().nth(1).is_some_and(|line| line.starts_with(MARKER))
}

/// Whether Cline runs a file; others it ignores.
pub(crate) fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    path.exists()
}
