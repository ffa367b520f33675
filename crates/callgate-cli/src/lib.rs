//! The command line: one module a command, and shared helpers.
//!
//! Results go to stdout, everything else to stderr. Exit status: 0 success, 1 negative result, 2 usage or I/O error.

mod agent_hooks;
mod approvals;
mod async_runtime;
mod audit;
mod backtest;
mod bundle;
mod candidate_args;
mod observability;
mod open_logs;
mod supervise;
mod check;
mod completions;
mod gateway_servers;
mod git_rules;
mod diff;
mod doctor;
mod edited_file;
mod shutdown_signal;
mod start_time;
mod exit;
mod file_limit;
mod explain;
mod hook;
mod json_inputs;
mod log_args;
mod metrics_args;
mod init;
mod install;
mod manual_pages;
mod proxy_http;
mod check_fix;
mod test_mutate;
mod output;
mod pins;
mod progress;
mod published_rules;
mod proxy;
mod diagnostic_page;
mod report;
mod rules_args;
mod recording_source;
mod run;
mod new_files;
mod notify_args;
mod suggest;
mod schema;
mod serve;
mod serve_config;
mod server_args;
mod server_list_file;
mod state_commands;
mod state_stats;
mod state_directory;
mod task;
mod tls_args;
mod tool_server_args;
mod test;
mod reload_output;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use exit::{CommandError, ExitStatus};
use output::Output;

/// The arguments of `callgate`.
#[derive(Parser)]
#[command(name = "callgate", version, about, long_about = LONG_ABOUT, after_help = EXIT_STATUS, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "A declarative policy engine between AI agents and their tools.\n\n\
    Policies are written in YAML. Every tool call of an agent is evaluated against them: it runs, is changed, is answered \
    without the tool, requires human approval, or is denied.\n\n\
    Start with `callgate init`.";

const EXIT_STATUS: &str =
    "Exit status: 0 success, 1 negative result (see each command), 2 usage or I/O error.";

#[derive(Subcommand)]
enum Command {
    Check(check::CheckArgs),
    Test(test::TestArgs),
    Run(run::RunArgs),
    Diff(diff::DiffArgs),
    Backtest(backtest::BacktestArgs),
    Suggest(suggest::SuggestArgs),
    Explain(explain::ExplainArgs),
    Report(report::ReportArgs),
    Approvals(approvals::ApprovalsArgs),
    Audit(audit::AuditArgs),
    State(state_commands::StateArgs),
    Task(task::TaskArgs),
    Proxy(Box<proxy::ProxyArgs>),
    Serve(Box<serve::ServeArgs>),
    Bundle(bundle::BundleArgs),
    Pins(pins::PinsArgs),
    Hook(Box<hook::HookArgs>),
    Doctor(doctor::DoctorArgs),
    Install(install::Install),
    Uninstall(install::UninstallArgs),
    Schema(schema::SchemaArgs),
    Init(init::InitArgs),
    Rule(diagnostic_page::RuleArgs),
    Completions(completions::CompletionsArgs),
    Man(manual_pages::ManArgs),
    Attend(supervise::SuperviseArgs),
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Human-readable text
    Text,
    /// JSON for programs, stable
    Json,
}

/// The definition of all commands and their options.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command of these arguments; the first argument is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match serve_config::with_config_file(arguments.into_iter().collect()) {
        Ok(arguments) => arguments,
        Err(why) => {
            output::print_error(&why);
            return ExitStatus::Error.into();
        }
    };
    let command = match Cli::try_parse_from(arguments) {
        Ok(arguments) => arguments.command,
        Err(answer) => {
            // Includes `--help` and `--version`, which are not errors. The output may be closed.
            let _ = answer.print();
            return if answer.use_stderr() { ExitStatus::Error.into() } else { ExitStatus::Success.into() };
        }
    };
    let mut output = Output::stdout();
    let ended = match command {
        Command::Check(arguments) => check::check(&arguments, &mut output),
        Command::Test(arguments) => test::test(&arguments, &mut output),
        Command::Run(arguments) => run::run(&arguments, &mut output),
        Command::Diff(arguments) => diff::diff(&arguments, &mut output),
        Command::Backtest(arguments) => backtest::backtest(&arguments, &mut output),
        Command::Suggest(arguments) => suggest::suggest(&arguments, &mut output),
        Command::Explain(arguments) => explain::explain(&arguments, &mut output),
        Command::Report(arguments) => report::report(&arguments, &mut output),
        Command::Approvals(arguments) => approvals::approvals(&arguments, &mut output),
        Command::Audit(arguments) => audit::audit(&arguments, &mut output),
        Command::State(arguments) => state_commands::state(&arguments, &mut output),
        Command::Task(arguments) => task::task(&arguments, &mut output),
        Command::Proxy(arguments) => proxy::proxy(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Bundle(arguments) => bundle::bundle(&arguments, &mut output),
        Command::Pins(arguments) => pins::pins(&arguments, &mut output),
        Command::Hook(arguments) => hook::hook(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments, &mut output),
        Command::Install(arguments) => install::install(&arguments, &mut output),
        Command::Uninstall(arguments) => install::uninstall(&arguments, &mut output),
        Command::Schema(arguments) => schema::schema(&arguments, &mut output),
        Command::Init(arguments) => init::init(&arguments, &mut output),
        Command::Rule(arguments) => diagnostic_page::rule(&arguments, &mut output),
        Command::Completions(arguments) => completions::completions(&arguments, &mut output),
        Command::Man(arguments) => manual_pages::man(&arguments, &mut output),
        Command::Attend(arguments) => supervise::supervise(&arguments),
    };
    // Output written before an error is part of the result.
    let ended = output.finish().and(ended);
    match ended {
        Ok(exit) => exit.into(),
        Err(CommandError::OutputClosed) => ExitStatus::Success.into(),
        Err(CommandError::Message(message)) => {
            output::print_error(&message);
            ExitStatus::Error.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_is_documented_and_well_formed() {
        let mut command = command();
        command.build();
        command.clone().debug_assert();
        for subcommand in command.get_subcommands() {
            assert!(subcommand.get_about().is_some(), "{} has no description", subcommand.get_name());
            for argument in subcommand.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", subcommand.get_name(), argument.get_id());
            }
        }
    }
}
