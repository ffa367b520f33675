//! `callgate test`: runs the policy tests beside the rules and shows what did not come as expected.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use super::Format;
use super::check;
use super::exit::{Exit, Stop};
use super::mutate;
use super::output::{GREEN, Output, RED};
use super::progress::Progress;
use crate::diagnostic::{Diagnostic, Diagnostics, render};
use crate::policy::{self, Built};
use crate::suite::{self, LoadedSuite, Report, Suite, rules_paths};

/// Run the policy tests beside rules files and show what did not come as expected.
///
/// The rules are every *.yaml and *.yml file below the paths, the tests every *.test.yaml and *.test.yml among them. Each case is a session
/// of its own, with stubbed tools and a clock that stands still: no tool is run, and nobody waits.
///
/// Exit status: 0 all cases pass (with `--mutate`: no change survives), 1 a case fails or a file has errors, 2 there are no tests, or a path can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate test\n  \
    callgate test policies --filter refund\n  \
    callgate test policies --mutate\n  \
    callgate test policies --format json | jq '.failed'")]
pub(super) struct Test {
    /// Rules files and test files, and directories to search for them
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Run only the cases in whose name, or in the name of whose file, this occurs; with `--mutate`: change only the policies
    /// in whose id, or in the name of whose file, it occurs
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Change the rules, one small change at a time, and list the changes that no case notices
    #[arg(long)]
    mutate: bool,
    /// How results are written: for people, or as one JSON document for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn test(arguments: &Test, output: &mut Output) -> Result<Exit, Stop> {
    let rules = rules_paths(&arguments.paths);
    let mut loaded = suite::load(&arguments.paths);
    if rules.is_empty() {
        return Err(Stop::trouble(
            "there are only tests below these paths; name the rules that they test, too: `callgate test policies tests`",
        ));
    }
    let mut built = policy::build(&rules);
    let chains = built.chains.take().map(Arc::new);
    if let Some(chains) = &chains {
        loaded.check_against(chains);
    }
    let Some(chains) = chains.filter(|_| !loaded.diagnostics.has_errors()) else {
        return show_problems(arguments.format, &built, &loaded, output);
    };
    let suite = chosen(&loaded.suite, arguments)?;
    if arguments.mutate {
        return mutate::run(&built, &suite, arguments.filter.as_deref(), arguments.format, output);
    }
    let mut progress = Progress::new("cases", true);
    let report = suite.run_with(&chains, &mut |_| progress.step());
    progress.end();
    match arguments.format {
        Format::Json => write_json(Some(&report), &built, &loaded, output)?,
        Format::Text => write_text(&report, output)?,
    }
    Ok(if report.passed() { Exit::Done } else { Exit::Fails })
}

/// The cases that were asked for.
fn chosen(suite: &Suite, arguments: &Test) -> Result<Suite, Stop> {
    if suite.is_empty() {
        let paths: Vec<String> = arguments.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Stop::trouble(format!(
            "there are no tests below {}; write some into a file such as `rules.test.yaml` beside the rules \
             (`callgate init` shows how)",
            paths.join(" and ")
        )));
    }
    let text = arguments.filter.as_ref().filter(|_| !arguments.mutate);
    let Some(text) = text else { return Ok(suite.clone()) };
    let chosen = suite.only(text);
    if chosen.is_empty() {
        return Err(Stop::trouble(format!(
            "no case has `{text}` in its name; leave out `--filter` to run all"
        )));
    }
    Ok(chosen)
}

/// Files with errors are shown instead of run.
fn show_problems(
    format: Format,
    built: &Built,
    loaded: &LoadedSuite,
    output: &mut Output,
) -> Result<Exit, Stop> {
    match format {
        Format::Json => write_json(None, built, loaded, output)?,
        Format::Text => {
            let tests = problems_of_tests(built, loaded);
            let both = [("rules", &built.diagnostics, &built.sources), ("tests", &tests, &loaded.sources)];
            let mut summaries = Vec::new();
            for (of, diagnostics, sources) in both.into_iter().filter(|(_, found, _)| !found.is_empty()) {
                if !summaries.is_empty() {
                    writeln!(output)?;
                }
                write!(output, "{}", render::text(diagnostics, sources, output.colour))?;
                summaries.push(format!("{of}: {}", render::summary(diagnostics, sources)));
            }
            // The last word comes last, also where both streams are one terminal.
            output.flush()?;
            let _ = writeln!(anstream::stderr(), "\n{RED}{}{RED:#}", summaries.join("; "));
        }
    }
    let mut all = built.diagnostics.clone();
    all.extend(loaded.diagnostics.clone());
    Ok(check::exit(&all))
}

/// What is wrong with the test files. A path that can't be read is wrong for the rules, too, and told once.
fn problems_of_tests(built: &Built, loaded: &LoadedSuite) -> Diagnostics {
    let mut found = Diagnostics::default();
    let told = |one: &Diagnostic| one.span.is_none() && built.diagnostics.iter().any(|other| other == one);
    loaded.diagnostics.iter().filter(|one| !told(one)).cloned().for_each(|one| found.push(one));
    found
}

fn write_json(
    report: Option<&Report>,
    built: &Built,
    loaded: &LoadedSuite,
    output: &mut Output,
) -> Result<(), Stop> {
    let tests = problems_of_tests(built, loaded);
    let problems = [(&built.diagnostics, &built.sources), (&tests, &loaded.sources)];
    let document =
        suite::render::json(report, &problems).map_err(|error| Stop::trouble(error.to_string()))?;
    Ok(writeln!(output, "{document}")?)
}

fn write_text(report: &Report, output: &mut Output) -> Result<(), Stop> {
    write!(output, "{}", suite::render::text(report, output.colour))?;
    let summary = suite::render::summary(report);
    let style = if report.passed() { GREEN } else { RED };
    let summary = output.paint(style, &summary).into_owned();
    Ok(writeln!(output, "{summary}")?)
}
