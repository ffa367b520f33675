//! `callgate init`: writes a starter bundle.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::exit::{CommandError, ExitStatus};
use super::output::{BOLD, DIM, Output, quote_shell_word};

/// Write a commented starter bundle with tests and sample calls.
///
/// Existing files are never overwritten: if one of the files exists, none is written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  callgate init\n  callgate init agents/support")]
pub(super) struct InitArgs {
    /// The directory to write to; created if it does not exist
    #[arg(value_name = "DIR", default_value = "policies")]
    directory: PathBuf,
}

const FILES: [(&str, &str, &str); 3] = [
    ("rules.yaml", include_str!("../starter/rules.yaml"), "seven commented policies"),
    ("rules.test.yaml", include_str!("../starter/rules.test.yaml"), "policy tests, run with `callgate test`"),
    ("calls.jsonl", include_str!("../starter/calls.jsonl"), "sample calls of an agent"),
];

pub(super) fn init(arguments: &InitArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let directory = &arguments.directory;
    let paths = FILES.map(|(name, _, _)| directory.join(name));
    let existing: Vec<String> = paths
        .iter()
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if !existing.is_empty() {
        let (verb, them) = if existing.len() == 1 { ("exists", "it") } else { ("exist", "them") };
        return Err(CommandError::new(format!(
            "{} already {verb}, so nothing was written; move {them} away or use another directory",
            existing.join(" and ")
        )));
    }
    fs::create_dir_all(directory).map_err(|error| write_error(directory, &error))?;
    for (path, (_, text, _)) in paths.iter().zip(FILES) {
        // `create_new`: a file created in the meantime is not overwritten either.
        File::create_new(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| write_error(path, &error))?;
    }
    writeln!(output, "Written:")?;
    let longest = paths.iter().map(|path| path.display().to_string().chars().count()).max().unwrap_or(0);
    for (path, (_, _, about)) in paths.iter().zip(FILES) {
        let about = output.paint(DIM, about).into_owned();
        writeln!(output, "  {:longest$}  {about}", path.display().to_string())?;
    }
    let [rules, tests, calls] = paths.map(|path| path_word(&path));
    writeln!(output, "\nRun the policies on the sample calls, then change a policy and run them again:")?;
    for command in [
        format!("callgate check {rules}"),
        format!("callgate run --policies {rules} {calls}"),
        format!("callgate test {rules} {tests}"),
    ] {
        let command = output.paint(BOLD, &command).into_owned();
        writeln!(output, "  {command}")?;
    }
    Ok(ExitStatus::Success)
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}` can't be written: {error}", path.display()))
}

/// The path as one word of a shell command.
fn path_word(path: &Path) -> String {
    let text = path.display().to_string();
    // A leading dash would be read as an option.
    quote_shell_word(&if text.starts_with('-') { format!("./{text}") } else { text })
}
