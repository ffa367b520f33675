//! Which of the files that decide calls other users can change.

use std::path::{Path, PathBuf};

use super::Finding;
use callgate_shell::{Analyzer, ShellCommand, ShellWord};

/// The files that a hook command uses: the program and the rules.
pub(super) fn files_of(command: &str) -> Vec<PathBuf> {
    let script = Analyzer::new(Vec::new()).analyze(command, None);
    script.commands.iter().filter(|command| names_hook(command)).flat_map(files).collect()
}

fn names_hook(command: &ShellCommand) -> bool {
    command.arguments.first().and_then(ShellWord::as_known) == Some("hook")
}

fn files(command: &ShellCommand) -> Vec<PathBuf> {
    let words = command.arguments.iter().filter_map(ShellWord::as_known);
    let rules =
        words.skip_while(|word| *word != "--policies").skip(1).take_while(|word| !word.starts_with("--"));
    std::iter::once(command.program_path.as_str()).chain(rules).map(PathBuf::from).collect()
}

/// Who else can change a file can switch the policies off.
pub(super) fn writable_by_others(path: &Path) -> Option<Finding> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).ok()?.permissions().mode();
        (mode & 0o022 != 0).then(|| {
            Finding::Failed(format!("other users can write `{}` (mode {:o})", path.display(), mode & 0o777))
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
