//! `callgate test`: runs policy tests and reports failures.

mod coverage;
mod generate;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::OutputFormat;
use super::check;
use super::exit::{CommandError, ExitStatus};
use super::output::{GREEN, Output, RED};
use super::progress::Progress;
use super::test_mutate;
use callgate::diagnostic::{Diagnostic, Diagnostics, render};
use callgate::policy::{self, LoadedBundle};
use callgate_policy_tests::{
    CaseReport, Coverage, CoverageReport, LoadedSuite, Suite, SuiteReport, rules_paths,
};

/// Run policy tests and report failures.
///
/// The rules are every *.yaml and *.yml file below the paths, the tests every *.test.yaml and *.test.yml among them. Each case runs in
/// its own session, with stubbed tools and a fixed clock: no tool is executed, and nothing waits for real time.
///
/// Exit status: 0 all cases pass (with --mutate: no mutant survives), 1 a case fails, coverage is too low or a file has errors, 2 there
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
pub(super) struct TestArgs {
    /// Rules files and test files, or directories to search for them
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Run only cases whose name or file name contains this; with `--mutate`: mutate only policies whose id or file name contains it
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Mutation testing: change the rules, one small change at a time, and list the mutants that no case detects
    #[arg(long, conflicts_with_all = ["coverage", "coverage_min", "generate"])]
    mutate: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = TestFormat::Text)]
    format: TestFormat,
    /// Report branch coverage: policies and conditions that were never true, never false or never decisive in any case
    #[arg(long)]
    coverage: bool,
    /// Fail if branch coverage is below this percentage; implies --coverage
    #[arg(long, value_name = "PERCENT", value_parser = coverage::parse_percent)]
    coverage_min: Option<f64>,
    /// Generate test cases from recorded calls (JSON Lines as for `callgate run`; `-` for stdin): one for each session, or for each
    /// whose name contains --filter. The cases expect the current outcomes; review them
    #[arg(long, value_name = "CALLS", conflicts_with_all = ["format", "coverage", "coverage_min"])]
    generate: Option<PathBuf>,
    /// Write the generated cases to this file, such as `recorded.test.yaml`; never overwrites a file [default: stdout]
    #[arg(long, value_name = "FILE", requires = "generate")]
    output: Option<PathBuf>,
    /// The tool descriptors of the recorded calls: a JSON array, or the result of an MCP tools/list [default: the tools that the rules
    /// declare]
    #[arg(long, value_name = "FILE", requires = "generate")]
    tools: Option<PathBuf>,
}

/// Output formats of test results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TestFormat {
    /// Human-readable text
    Text,
    /// One JSON document for programs, stable
    Json,
    /// JUnit XML, for continuous integration reports
    Junit,
    /// GitHub workflow commands, for annotations
    Github,
    /// An LCOV tracefile of the coverage, for editors, genhtml and coverage services; results go to stderr
    Lcov,
}

pub(super) fn test(arguments: &TestArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let rules = rules_paths(&arguments.paths);
    if let Some(calls) = &arguments.generate {
        return generate::generate(arguments, calls, output);
    }
    let mut loaded = callgate_policy_tests::load(&arguments.paths);
    if rules.is_empty() {
        return Err(CommandError::new(
            "these paths contain only tests; add the rules that they test: `callgate test policies tests`",
        ));
    }
    let mut built = policy::build(&rules);
    let policies = built.policies.take().map(Arc::new);
    match &policies {
        Some(policies) => loaded.check_against(policies),
        None => loaded.ignore_unknown_names(),
    }
    let Some(policies) = policies.filter(|_| !loaded.diagnostics.has_errors()) else {
        return report_errors(arguments.format, &built, &loaded, output);
    };
    let suite = select_cases(&loaded.suite, arguments)?;
    if arguments.mutate {
        let format = match arguments.format {
            TestFormat::Text => OutputFormat::Text,
            TestFormat::Json => OutputFormat::Json,
            TestFormat::Junit | TestFormat::Github | TestFormat::Lcov => {
                return Err(CommandError::new("`--mutate` supports only the formats `text` and `json`"));
            }
        };
        return test_mutate::run_mutation_tests(&built, &suite, arguments.filter.as_deref(), format, output);
    }
    let mut progress = Progress::new("cases", true);
    let mut times = Vec::new();
    let mut begun = Instant::now();
    let mut seen = |_: &CaseReport| {
        times.push(begun.elapsed());
        begun = Instant::now();
        progress.increment();
    };
    let (report, covered) = if arguments.needs_coverage() {
        let coverage = Arc::new(Coverage::new(&policies, &built.files));
        let report = suite.run_with_coverage(&policies, &coverage, &mut seen);
        (report, Some(coverage.report(&built.sources)))
    } else {
        (suite.run_with_progress(&policies, &mut seen), None)
    };
    progress.clear();
    let covered = covered.as_ref();
    match arguments.format {
        TestFormat::Text => write_text(&report, output)?,
        TestFormat::Lcov => coverage::print_results(&report),
        form => write_document(form, Some((&report, covered, &times)), &built, &loaded, output)?,
    }
    let is_enough = match covered {
        Some(covered) => coverage::write_coverage(covered, arguments, output)?,
        None => true,
    };
    Ok(if report.passed() && is_enough { ExitStatus::Success } else { ExitStatus::Failure })
}

/// The cases selected by `--filter`.
fn select_cases(suite: &Suite, arguments: &TestArgs) -> Result<Suite, CommandError> {
    if suite.is_empty() {
        let paths: Vec<String> = arguments.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(CommandError::new(format!(
            "there are no tests below {}; add some in a file such as `rules.test.yaml` next to the rules \
             (`callgate init` writes an example)",
            paths.join(" and ")
        )));
    }
    let text = arguments.filter.as_ref().filter(|_| !arguments.mutate);
    let Some(text) = text else { return Ok(suite.clone()) };
    let chosen = suite.filter_by_name(text);
    if chosen.is_empty() {
        return Err(CommandError::new(format!(
            "no case name or file name contains `{text}`; omit `--filter` to run all cases"
        )));
    }
    Ok(chosen)
}

/// Reports the errors of rules and test files, whose cases are not run.
fn report_errors(
    form: TestFormat,
    built: &LoadedBundle,
    loaded: &LoadedSuite,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    match form {
        TestFormat::Text | TestFormat::Lcov => {
            let tests = test_diagnostics(built, loaded);
            let both = [("rules", &built.diagnostics, &built.sources), ("tests", &tests, &loaded.sources)];
            let (mut summaries, mut page) = (Vec::new(), String::new());
            for (of, diagnostics, sources) in both.into_iter().filter(|(_, found, _)| !found.is_empty()) {
                if !summaries.is_empty() {
                    page.push('\n');
                }
                page.push_str(&render::text(diagnostics, sources, output.colour || form == TestFormat::Lcov));
                summaries.push(format!("{of}: {}", render::summary(diagnostics, sources)));
            }
            match form {
                // stdout is for the tracefile only. The stream removes the colours where they are not supported.
                TestFormat::Lcov => {
                    let _ = write!(anstream::stderr(), "{page}");
                }
                _ => write!(output, "{page}")?,
            }
            // Flushed first, so that the summary comes last if both streams go to one terminal.
            output.flush()?;
            let _ = writeln!(anstream::stderr(), "\n{RED}{}{RED:#}", summaries.join("; "));
        }
        form => write_document(form, None, built, loaded, output)?,
    }
    let mut all = built.diagnostics.clone();
    all.extend(loaded.diagnostics.clone());
    Ok(check::exit_status(&all))
}

/// The diagnostics of the test files, without those of unreadable paths that the rules' diagnostics already have.
fn test_diagnostics(built: &LoadedBundle, loaded: &LoadedSuite) -> Diagnostics {
    let mut found = Diagnostics::default();
    let is_reported =
        |one: &Diagnostic| one.span.is_none() && built.diagnostics.iter().any(|other| other == one);
    loaded.diagnostics.iter().filter(|one| !is_reported(one)).cloned().for_each(|one| found.push(one));
    found
}

/// Writes a machine-readable document: the diagnostics, and the results with the time of each case if the cases were run.
fn write_document(
    form: TestFormat,
    report: Option<(&SuiteReport, Option<&CoverageReport>, &[Duration])>,
    built: &LoadedBundle,
    loaded: &LoadedSuite,
    output: &mut Output,
) -> Result<(), CommandError> {
    let tests = test_diagnostics(built, loaded);
    let problems = [(&built.diagnostics, &built.sources), (&tests, &loaded.sources)];
    let (report, covered, times) =
        report.map_or((None, None, &[][..]), |(report, covered, times)| (Some(report), covered, times));
    let document = match form {
        TestFormat::Junit => callgate_policy_tests::render::junit(report, times, &problems),
        TestFormat::Github => callgate_policy_tests::render::github(report, &problems),
        TestFormat::Json | TestFormat::Text | TestFormat::Lcov => {
            let json = callgate_policy_tests::render::json(report, covered, &problems);
            json.map_err(|error| CommandError::new(error.to_string()))? + "\n"
        }
    };
    Ok(write!(output, "{document}")?)
}

fn write_text(report: &SuiteReport, output: &mut Output) -> Result<(), CommandError> {
    write!(output, "{}", callgate_policy_tests::render::text(report, output.colour))?;
    let summary = callgate_policy_tests::render::summary(report);
    let style = if report.passed() { GREEN } else { RED };
    let summary = output.paint(style, &summary).into_owned();
    Ok(writeln!(output, "{summary}")?)
}
