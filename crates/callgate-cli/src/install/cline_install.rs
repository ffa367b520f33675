//! `callgate install cline --hooks` and `callgate uninstall cline --hooks`: write the hook files of Cline, and remove them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::hook_install::write_title;
use super::{ClientArgs, ConfigScope};
use crate::agent_hooks::BACKUP_SUFFIX;
use crate::agent_hooks::cline_hooks::{
    EVENTS, NEXT_STEP, is_executable, is_own, project_directory, script, user_directories,
};
use crate::check_fix::write_diff;
use crate::edited_file::{EditedFile, write_program};
use crate::exit::{CommandError, ExitStatus};
use crate::output::Output;

/// The directory of the hooks that the arguments name.
fn directory(whose: &ClientArgs) -> Result<PathBuf, CommandError> {
    match (&whose.file, whose.scope) {
        (Some(directory), _) if directory.is_file() => Err(CommandError::new(format!(
            "`{}` is a file; Cline's hooks are files in a directory, so name that with `--file`",
            directory.display()
        ))),
        (Some(directory), _) => Ok(directory.clone()),
        (None, ConfigScope::User) => user_directories().into_iter().next().ok_or_else(|| {
            CommandError::new(
                "the directory of the hooks can't be located, because `HOME` is not set; use `--file`",
            )
        }),
        (None, ConfigScope::Project) => Ok(project_directory(Path::new(""))),
        (None, ConfigScope::Managed) => {
            Err(CommandError::new("Cline has no hooks of administrators; omit `--scope managed`"))
        }
    }
}

/// The hook files in a directory, each as it is read; they may be missing.
fn read_files(directory: &Path) -> Result<Vec<EditedFile>, CommandError> {
    EVENTS.iter().map(|event| EditedFile::open(directory.join(event), BACKUP_SUFFIX)).collect()
}

/// Writes the hooks.
pub(super) fn install(
    whose: &ClientArgs,
    program: &str,
    options: &[String],
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    if cfg!(windows) {
        return Err(CommandError::new(
            "on Windows, Cline runs hooks by PowerShell: save `PreToolUse.ps1`, `PostToolUse.ps1` and `UserPromptSubmit.ps1` yourself, each \
             of which runs `callgate hook cline`",
        ));
    }
    let directory = directory(whose)?;
    let files = read_files(&directory)?;
    // One that is overwritten would be lost, and Cline runs no second one.
    if let Some(other) = files.iter().find(|file| file.exists() && !is_own(&file.text)) {
        return Err(CommandError::new(format!(
            "`{}` is a hook of your own, and Cline runs one per event and directory: move it to another directory of hooks, or call \
             `callgate hook cline` in it; nothing was written",
            other.display_path.display()
        )));
    }
    let text = script(program, options);
    if whose.dry_run {
        for file in &files {
            write_diff(&file.display_path.display().to_string(), &file.text, &text, output)?;
        }
        return Ok(ExitStatus::Success);
    }
    let is_changed = |file: &&EditedFile| file.text != text || !is_executable(&file.display_path);
    let changed: Vec<&EditedFile> = files.iter().filter(is_changed).collect();
    for file in &changed {
        write_program(&file.display_path, &text)?;
    }
    write_title(&directory, output)?;
    if changed.is_empty() {
        writeln!(output, "  the hooks are already installed")?;
        return Ok(ExitStatus::Success);
    }
    writeln!(output, "  every tool call of Cline is now decided by `callgate hook`\n\n{NEXT_STEP}.")?;
    Ok(ExitStatus::Success)
}

/// Removes the hooks.
pub(super) fn uninstall(whose: &ClientArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let directory = directory(whose)?;
    let files = read_files(&directory)?;
    let own: Vec<&EditedFile> = files.iter().filter(|file| is_own(&file.text)).collect();
    if whose.dry_run {
        for file in &own {
            write_diff(&file.display_path.display().to_string(), &file.text, "", output)?;
        }
        return Ok(ExitStatus::Success);
    }
    for file in &own {
        let path = &file.display_path;
        fs::remove_file(path)
            .map_err(|error| CommandError::new(format!("`{}` can't be removed: {error}", path.display())))?;
    }
    write_title(&directory, output)?;
    writeln!(output, "  {}", if own.is_empty() { "nothing to do" } else { "the hooks are removed" })?;
    Ok(ExitStatus::Success)
}
