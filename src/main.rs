//! The `callgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    callgate::cli::run(std::env::args_os())
}
