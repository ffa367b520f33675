//! The command line: one file a command, and what they share.
//!
//! Results go to stdout, everything else to stderr. Exit status: 0 done, 1 what was asked about fails, 2 usage or I/O.

mod approvals;
mod attend;
mod check;
mod completions;
mod ending;
mod exit;
mod explain;
mod files;
mod init;
mod install;
mod listening;
mod mend;
mod mutate;
mod output;
mod pins;
mod progress;
mod proxy;
mod rule;
mod rules;
mod run;
mod schema;
mod servers;
mod state;
mod test;
mod watching;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use exit::{Exit, Stop};
use output::Output;

/// The arguments of `callgate`.
#[derive(Parser)]
#[command(name = "callgate", version, about, long_about = LONG_ABOUT, after_help = EXIT_STATUS, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "A declarative policy engine between AI agents and their tools.\n\n\
    Policies are written in YAML. Every tool call of an agent passes through them: it runs, is changed, is answered, \
    waits for a person, or is denied.\n\n\
    Begin with `callgate init`.";

const EXIT_STATUS: &str = "Exit status: 0 done, 1 what was asked about fails, 2 usage or I/O.";

#[derive(Subcommand)]
enum Command {
    Check(check::Check),
    Test(test::Test),
    Run(run::Run),
    Explain(explain::Explain),
    Approvals(approvals::Approvals),
    State(state::StateCommand),
    Proxy(proxy::Proxy),
    Pins(pins::Pins),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Schema(schema::Schema),
    Init(init::Init),
    Rule(rule::Rule),
    Completions(completions::Completions),
    Attend(attend::Attend),
}

/// Who reads the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs; stable
    Json,
}

/// Runs the command that these arguments ask for; the first is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments.command,
        Err(answer) => {
            // Also for `--help` and `--version`, which are answers and no errors. Nobody may be reading them.
            let _ = answer.print();
            return if answer.use_stderr() { Exit::Trouble.into() } else { Exit::Done.into() };
        }
    };
    let mut output = Output::stdout();
    let ended = match command {
        Command::Check(arguments) => check::check(&arguments, &mut output),
        Command::Test(arguments) => test::test(&arguments, &mut output),
        Command::Run(arguments) => run::run(&arguments, &mut output),
        Command::Explain(arguments) => explain::explain(&arguments, &mut output),
        Command::Approvals(arguments) => approvals::approvals(&arguments, &mut output),
        Command::State(arguments) => state::state(&arguments, &mut output),
        Command::Proxy(arguments) => proxy::proxy(&arguments),
        Command::Pins(arguments) => pins::pins(&arguments, &mut output),
        Command::Install(arguments) => install::install(&arguments, &mut output),
        Command::Uninstall(arguments) => install::uninstall(&arguments, &mut output),
        Command::Schema(arguments) => schema::schema(&arguments, &mut output),
        Command::Init(arguments) => init::init(&arguments, &mut output),
        Command::Rule(arguments) => rule::rule(&arguments, &mut output),
        Command::Completions(arguments) => completions::completions(&arguments, &mut output),
        Command::Attend(arguments) => attend::attend(&arguments),
    };
    // What was written before the trouble is part of the result.
    let ended = output.end().and(ended);
    match ended {
        Ok(exit) => exit.into(),
        Err(Stop::ReaderGone) => Exit::Done.into(),
        Err(Stop::Trouble(message)) => {
            output::complain(&message);
            Exit::Trouble.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_argument_is_documented_and_well_formed() {
        let mut command = Arguments::command();
        command.build();
        command.clone().debug_assert();
        for subcommand in command.get_subcommands() {
            assert!(subcommand.get_about().is_some(), "{} says not what it does", subcommand.get_name());
            for argument in subcommand.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", subcommand.get_name(), argument.get_id());
            }
        }
    }
}
