//! `callgate test --mutate`: mutation testing of rules; lists mutants that no policy test detects.

use std::io::Write;

use super::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::output::{GREEN, Output, RED, print_error};
use super::progress::Progress;
use callgate::policy::LoadedBundle;
use callgate_policy_tests::{Suite, mutation, render};

/// Mutates the policies whose id or file name contains `only`, and runs the whole suite on each mutant.
pub(super) fn run_mutation_tests(
    built: &LoadedBundle,
    suite: &Suite,
    only: Option<&str>,
    format: OutputFormat,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let mut progress = Progress::new("changes", true);
    let mutated = mutation::mutate(built, suite, only, &mut |count, of| progress.set(count, of));
    progress.clear();
    let mutated = match mutated {
        Ok(mutated) => mutated,
        Err(report) => {
            write!(output, "{}", render::text(&report, output.colour))?;
            output.flush()?;
            print_error(
                "mutation testing needs a passing suite, but these cases fail on the unchanged rules; fix them first, using \
                 `callgate test` without `--mutate`",
            );
            return Ok(ExitStatus::Failure);
        }
    };
    if let (0, Some(only)) = (mutated.changes, only) {
        return Err(CommandError::new(format!(
            "no policy that can be mutated has `{only}` in its id or in its file name"
        )));
    }
    if format == OutputFormat::Json {
        let document = mutation::json(&mutated).map_err(|error| CommandError::new(error.to_string()))?;
        writeln!(output, "{document}")?;
    } else {
        write!(output, "{}", mutation::text(&mutated, output.colour))?;
        let style = if mutated.passed() { GREEN } else { RED };
        let summary = output.paint(style, &mutation::summary(&mutated)).into_owned();
        writeln!(output, "{summary}")?;
    }
    Ok(if mutated.passed() { ExitStatus::Success } else { ExitStatus::Failure })
}
