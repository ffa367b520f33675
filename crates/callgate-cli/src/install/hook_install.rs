//! `callgate install --hooks` and `callgate uninstall --hooks`: add `callgate hook` to the settings of a coding agent, and remove it.

use std::io::Write;
use std::path::Path;

use super::clients::Client;
use super::{ClientArgs, ConfigScope};
use crate::agent_hooks::{BACKUP_SUFFIX, HookEntry, HookSettings, add_hooks, hook_command, remove_hooks};
use crate::check_fix::write_diff;
use crate::edited_file::EditedFile;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{BOLD, Output, escape_line};
use callgate_hooks::Agent;

/// The settings and the file that the arguments name.
fn open(whose: &ClientArgs) -> Result<(&'static HookSettings, EditedFile), CommandError> {
    let agent = match whose.client {
        Client::ClaudeCode => Agent::ClaudeCode,
        Client::Codex => Agent::Codex,
        Client::Gemini => Agent::GeminiCli,
        Client::Cursor => Agent::Cursor,
        Client::Cline | Client::ClaudeDesktop | Client::VsCode => {
            let title = whose.client.properties().title;
            return Err(CommandError::new(format!(
                "{title} has no hooks that Callgate supports; omit `--hooks`"
            )));
        }
    };
    let settings = HookSettings::of(agent)
        .ok_or_else(|| CommandError::new(format!("{} has no settings file for hooks", agent.title())))?;
    let path = match (&whose.file, whose.scope) {
        (Some(file), _) => file.clone(),
        (None, ConfigScope::User) => settings.user_file().ok_or_else(|| {
            CommandError::new("the settings file can't be located, because `HOME` is not set; use `--file`")
        })?,
        (None, ConfigScope::Project) => settings.project_file(Path::new("")),
        (None, ConfigScope::Managed) => settings.managed_file(),
    };
    Ok((settings, EditedFile::open(path, BACKUP_SUFFIX)?))
}

/// Adds the hooks.
pub(super) fn install(
    whose: &ClientArgs,
    program: &str,
    options: &[String],
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let (settings, file) = open(whose)?;
    let command = hook_command(settings.agent, program, options);
    let entry = HookEntry { settings, command: &command };
    let before = file.text.as_str();
    let text = add_hooks(before, &entry).map_err(|why| unusable(&file, &why))?;
    if whose.dry_run {
        write_diff(&file.display_path.display().to_string(), before, &text, output)?;
        return Ok(ExitStatus::Success);
    }
    let is_changed = text != before;
    if is_changed {
        let without = without_hooks(&file)?;
        file.replace(&text, &without)?;
        if whose.scope == ConfigScope::Managed {
            file.let_all_users_read()?;
        }
    }
    write_title(&file.display_path, output)?;
    if !is_changed {
        writeln!(output, "  the hooks are already installed")?;
        return Ok(ExitStatus::Success);
    }
    writeln!(output, "  every tool call of {} is now decided by `callgate hook`", settings.agent.title())?;
    writeln!(
        output,
        "\nBackup without Callgate: {}",
        escape_line(&file.backup_path().display().to_string())
    )?;
    let next_step = match whose.scope {
        ConfigScope::Managed => settings.managed_next_step,
        ConfigScope::User | ConfigScope::Project => settings.next_step,
    };
    writeln!(output, "{next_step}.")?;
    Ok(ExitStatus::Success)
}

/// Removes the hooks.
pub(super) fn uninstall(whose: &ClientArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let (_, file) = open(whose)?;
    let before = file.text.as_str();
    let text = without_hooks(&file)?;
    if whose.dry_run {
        write_diff(&file.display_path.display().to_string(), before, &text, output)?;
        return Ok(ExitStatus::Success);
    }
    if text != before {
        file.restore(&text)?;
    }
    write_title(&file.display_path, output)?;
    writeln!(output, "  {}", if text == before { "nothing to do" } else { "the hooks are removed" })?;
    Ok(ExitStatus::Success)
}

/// The file's text without the hooks: that of the backup if nothing else has changed since, down to its formatting.
fn without_hooks(file: &EditedFile) -> Result<String, CommandError> {
    let before = file.text.as_str();
    let removed = remove_hooks(before).map_err(|why| unusable(file, &why))?;
    if removed == before {
        return Ok(removed);
    }
    let spaceless = |text: &str| text.split_whitespace().collect::<String>();
    let is_same = |backup: &String| match spaceless(backup).as_str() {
        "" | "{}" => ["{}", "{\"version\":1}", "{\"version\":1,}"].contains(&spaceless(&removed).as_str()),
        backup => {
            let with_version = spaceless(&removed).replacen("\"version\":1,", "", 1);
            backup == spaceless(&removed) || backup == with_version
        }
    };
    Ok(file.backup_text().filter(is_same).unwrap_or(removed))
}

/// Prints the name of what is edited.
pub(super) fn write_title(path: &Path, output: &mut Output) -> Result<(), CommandError> {
    let name = escape_line(&path.display().to_string()).into_owned();
    Ok(writeln!(output, "{}", output.paint(BOLD, &name).into_owned())?)
}

fn unusable(file: &EditedFile, why: &str) -> CommandError {
    CommandError::new(format!("`{}`: {why}; nothing was written", file.display_path.display()))
}
