//! The `callgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    callgate_cli::run(std::env::args_os())
}
