//! `callgate test --mutate`: mutation testing of rules; lists mutants that no policy test detects.

use std::io::Write;

use super::Format;
use super::exit::{ExitStatus, Stop};
use super::output::{GREEN, Output, RED, complain};
use super::progress::Progress;
use crate::policy::Built;
use crate::suite::{Suite, mutate, render};

/// Mutates the policies whose id or file name contains `only`, and runs the whole suite on each mutant.
pub(super) fn run(
    built: &Built,
    suite: &Suite,
    only: Option<&str>,
    format: Format,
    output: &mut Output,
) -> Result<ExitStatus, Stop> {
    let mut progress = Progress::new("changes", true);
    let mutated = mutate::mutate(built, suite, only, &mut |count, of| progress.step_of(count, of));
    progress.end();
    let mutated = match mutated {
        Ok(mutated) => mutated,
        Err(report) => {
            write!(output, "{}", render::text(&report, output.colour))?;
            output.flush()?;
            complain(
                "mutation testing needs a passing suite, but these cases fail on the unchanged rules; fix them first, using \
                 `callgate test` without `--mutate`",
            );
            return Ok(ExitStatus::Fails);
        }
    };
    if let (0, Some(only)) = (mutated.changes, only) {
        return Err(Stop::trouble(format!(
            "no policy that can be mutated has `{only}` in its id or in its file name"
        )));
    }
    if format == Format::Json {
        let document = mutate::json(&mutated).map_err(|error| Stop::trouble(error.to_string()))?;
        writeln!(output, "{document}")?;
    } else {
        write!(output, "{}", mutate::text(&mutated, output.colour))?;
        let style = if mutated.passed() { GREEN } else { RED };
        let summary = output.paint(style, &mutate::summary(&mutated)).into_owned();
        writeln!(output, "{summary}")?;
    }
    Ok(if mutated.passed() { ExitStatus::Done } else { ExitStatus::Fails })
}
