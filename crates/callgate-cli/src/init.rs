//! `callgate init`: writes a starter bundle.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::exit::{CommandError, ExitStatus};
use super::new_files::NewFiles;
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
    let files = NewFiles::new(directory, &FILES.map(|(name, _, _)| name))?;
    files.write(&FILES.map(|(name, text, _)| (name, text)))?;
    let paths = FILES.map(|(name, _, _)| directory.join(name));
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

/// The path as one word of a shell command.
fn path_word(path: &Path) -> String {
    let text = path.display().to_string();
    // A leading dash would be read as an option.
    quote_shell_word(&if text.starts_with('-') { format!("./{text}") } else { text })
}
