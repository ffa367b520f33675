//! `callgate test`: runs the policy tests beside the rules and shows what did not come as expected.

mod coverage;
mod generate;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::Format;
use super::check;
use super::exit::{Exit, Stop};
use super::mutate;
use super::output::{GREEN, Output, RED};
use super::progress::Progress;
use crate::diagnostic::{Diagnostic, Diagnostics, render};
use crate::policy::{self, Built};
use crate::suite::{self, CaseReport, Coverage, CoverageReport, LoadedSuite, Report, Suite, rules_paths};

/// Run the policy tests beside rules files and show what did not come as expected.
///
/// The rules are every *.yaml and *.yml file below the paths, the tests every *.test.yaml and *.test.yml among them. Each case is a session
/// of its own, with stubbed tools and a clock that stands still: no tool is run, and nobody waits.
///
/// Exit status: 0 all cases pass (with --mutate: no change survives), 1 a case fails, too little is covered or a file has errors, 2 there
/// are no tests, or a path can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate test\n  \
    callgate test policies --filter refund\n  \
    callgate test policies --format junit > report.xml\n  \
    callgate test policies --coverage --coverage-min 100\n  \
    callgate test policies --format lcov > lcov.info\n  \
    callgate test policies --mutate\n  \
    callgate test policies --generate calls.jsonl --output policies/recorded.test.yaml")]
pub(super) struct Test {
    /// Rules files and test files, and directories to search for them
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Run only the cases in whose name, or in the name of whose file, this occurs; with `--mutate`: change only the policies
    /// in whose id, or in the name of whose file, it occurs
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Change the rules, one small change at a time, and list the changes that no case notices
    #[arg(long, conflicts_with_all = ["coverage", "coverage_min", "generate"])]
    mutate: bool,
    /// How results are written
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Show which policies, and which branches of them, the cases did not come to: what was never true, never false, never the reason
    #[arg(long)]
    coverage: bool,
    /// Fail if less of the branches than this is covered, in percent; with --coverage
    #[arg(long, value_name = "PERCENT", value_parser = coverage::percent)]
    coverage_min: Option<f64>,
    /// Write test cases out of recorded calls (JSON Lines as for `callgate run`; `-` for stdin): one for each session, or for those
    /// in whose name --filter occurs. They expect what the rules make of the calls now, and are to be reviewed
    #[arg(long, value_name = "CALLS", conflicts_with_all = ["format", "coverage", "coverage_min"])]
    generate: Option<PathBuf>,
    /// Where they are written, such as `recorded.test.yaml`; a file that is there is never overwritten. Without it: stdout
    #[arg(long, value_name = "FILE", requires = "generate")]
    output: Option<PathBuf>,
    /// The tools behind the recorded calls: a JSON list, or the result of an MCP tools/list
    #[arg(long, value_name = "FILE", requires = "generate")]
    tools: Option<PathBuf>,
}

/// Who reads the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// One JSON document for programs; stable
    Json,
    /// JUnit's XML, for the reports of continuous integration
    Junit,
    /// Workflow commands, for annotations on GitHub
    Github,
    /// A tracefile of the coverage, for editors, genhtml and services that show it; results go to stderr
    Lcov,
}

pub(super) fn test(arguments: &Test, output: &mut Output) -> Result<Exit, Stop> {
    let rules = rules_paths(&arguments.paths);
    if let Some(calls) = &arguments.generate {
        return generate::generate(arguments, calls, output);
    }
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
        let format = match arguments.format {
            Form::Text => Format::Text,
            Form::Json => Format::Json,
            Form::Junit | Form::Github | Form::Lcov => {
                return Err(Stop::trouble("what --mutate finds is written as `text` or `json`"));
            }
        };
        return mutate::run(&built, &suite, arguments.filter.as_deref(), format, output);
    }
    let mut progress = Progress::new("cases", true);
    let mut times = Vec::new();
    let mut begun = Instant::now();
    let mut seen = |_: &CaseReport| {
        times.push(begun.elapsed());
        begun = Instant::now();
        progress.step();
    };
    let (report, covered) = if arguments.asks_for_coverage() {
        let coverage = Arc::new(Coverage::of(&chains, &built.files));
        let report = suite.run_covered(&chains, &coverage, &mut seen);
        (report, Some(coverage.report(&built.sources)))
    } else {
        (suite.run_with(&chains, &mut seen), None)
    };
    progress.end();
    let covered = covered.as_ref();
    match arguments.format {
        Form::Text => write_text(&report, output)?,
        Form::Lcov => coverage::tell_results(&report),
        form => write_document(form, Some((&report, covered, &times)), &built, &loaded, output)?,
    }
    let is_enough = match covered {
        Some(covered) => coverage::write(covered, arguments, output)?,
        None => true,
    };
    Ok(if report.passed() && is_enough { Exit::Done } else { Exit::Fails })
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
fn show_problems(form: Form, built: &Built, loaded: &LoadedSuite, output: &mut Output) -> Result<Exit, Stop> {
    match form {
        Form::Text | Form::Lcov => {
            let tests = problems_of_tests(built, loaded);
            let both = [("rules", &built.diagnostics, &built.sources), ("tests", &tests, &loaded.sources)];
            let (mut summaries, mut page) = (Vec::new(), String::new());
            for (of, diagnostics, sources) in both.into_iter().filter(|(_, found, _)| !found.is_empty()) {
                if !summaries.is_empty() {
                    page.push('\n');
                }
                page.push_str(&render::text(diagnostics, sources, output.colour || form == Form::Lcov));
                summaries.push(format!("{of}: {}", render::summary(diagnostics, sources)));
            }
            match form {
                // What is written there is no tracefile. The stream itself takes the colours out where they are not to be.
                Form::Lcov => {
                    let _ = write!(anstream::stderr(), "{page}");
                }
                _ => write!(output, "{page}")?,
            }
            // The last word comes last, also where both streams are one terminal.
            output.flush()?;
            let _ = writeln!(anstream::stderr(), "\n{RED}{}{RED:#}", summaries.join("; "));
        }
        form => write_document(form, None, built, loaded, output)?,
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

/// What programs read: the results with how long each case took, if they were run.
fn write_document(
    form: Form,
    report: Option<(&Report, Option<&CoverageReport>, &[Duration])>,
    built: &Built,
    loaded: &LoadedSuite,
    output: &mut Output,
) -> Result<(), Stop> {
    let tests = problems_of_tests(built, loaded);
    let problems = [(&built.diagnostics, &built.sources), (&tests, &loaded.sources)];
    let (report, covered, times) =
        report.map_or((None, None, &[][..]), |(report, covered, times)| (Some(report), covered, times));
    let document = match form {
        Form::Junit => suite::render::junit(report, times, &problems),
        Form::Github => suite::render::github(report, &problems),
        Form::Json | Form::Text | Form::Lcov => {
            let json = suite::render::json(report, covered, &problems);
            json.map_err(|error| Stop::trouble(error.to_string()))? + "\n"
        }
    };
    Ok(write!(output, "{document}")?)
}

fn write_text(report: &Report, output: &mut Output) -> Result<(), Stop> {
    write!(output, "{}", suite::render::text(report, output.colour))?;
    let summary = suite::render::summary(report);
    let style = if report.passed() { GREEN } else { RED };
    let summary = output.paint(style, &summary).into_owned();
    Ok(writeln!(output, "{summary}")?)
}
