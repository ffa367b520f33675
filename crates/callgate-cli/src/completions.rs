//! `callgate completions`: shell completion scripts.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::Cli;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;

/// Print a shell completion script.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate completions bash > ~/.local/share/bash-completion/completions/callgate\n  \
    callgate completions zsh > \"${fpath[1]}/_callgate\"\n  \
    callgate completions fish > ~/.config/fish/completions/callgate.fish\n  \
    callgate completions powershell >> $PROFILE\n  \
    callgate completions elvish >> ~/.config/elvish/rc.elv")]
pub(super) struct CompletionsArgs {
    /// The shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn completions(
    arguments: &CompletionsArgs,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut Cli::command(), "callgate", &mut script);
    output.write_all(&script)?;
    Ok(ExitStatus::Success)
}
