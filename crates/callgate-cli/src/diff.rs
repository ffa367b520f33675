//! `callgate diff`: what a change of rules means for calls.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::check;
use super::exit::{CommandError, ExitStatus};
use super::git_rules::GitRules;
use super::json_inputs::read_tools;
use super::output::{GREEN, Output, RED, print_build_errors, print_displayed_build_errors};
use super::progress::Progress;
use super::run::{CallLine, CallLines, JsonLinesReader, warn_about_invalid_schemas};
use callgate::Task;
use callgate::json::Map;
use callgate::policy::CompiledPolicies;
use callgate::tools::ToolDescriptor;
use callgate_analysis::{
    BundleComparison, CallSample, ComparisonInputs, RulesVersion, SampleOrigin, compare, render,
};

/// Compare two versions of the rules: which policies became looser, stricter or equivalent, with example calls.
///
/// OLD and NEW are rules files or directories, or those of a git revision. Policies are compared by id; a changed definition, such as a `let`, counts for every
/// policy that reaches it. Example calls are generated from the conditions of both versions and taken from their policy tests, and
/// both versions have decided each call that is shown. No tool is executed.
///
/// A change is only reported as stricter or equivalent if that is certain. What is neither certain nor shown by an example is
/// reported as `may be looser`, with the reason.
///
/// Exit status: 0 compared, 1 a change that --deny names, or the rules have errors, 2 usage error, or a file can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate diff git:main:policies policies\n  \
    callgate diff old/policies new/policies --tools tools.json --calls calls.jsonl\n  \
    callgate diff git:origin/main:policies policies --format github --deny none > comment.md")]
pub(super) struct DiffArgs {
    /// The old rules: a rules file, or a directory to search for them; `git:REVISION:PATH` for those of a git revision
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new rules, in the same forms
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The known tools: a JSON array, or the result of an MCP tools/list [default: the tools that the rules declare]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Recorded calls to try too, as JSON Lines; each is decided in an empty session. The report names their lines, and does not show
    /// their arguments
    #[arg(long, value_name = "FILE")]
    calls: Option<PathBuf>,
    /// The changes for which the exit status is 1
    #[arg(long, value_enum, default_value_t = DeniedChanges::Looser)]
    deny: DeniedChanges,
    /// The most calls that are generated for a policy
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    calls_per_policy: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    format: DiffFormat,
}

/// Changes for which the exit status is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DeniedChanges {
    /// Changes that are looser, or may be
    Looser,
    /// All changes but equivalent ones
    Any,
    /// None
    None,
}

/// Output formats of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiffFormat {
    /// Human-readable text
    Text,
    /// A JSON document for programs, stable
    Json,
    /// Markdown for a comment on a pull request
    Github,
}

pub(super) fn diff(arguments: &DiffArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let given = arguments.tools.as_deref().map(read_tools).transpose()?;
    let samples = arguments.calls.as_deref().map(read_samples).transpose()?.unwrap_or_default();
    let (old_files, new_files) = (GitRules::read(&arguments.old)?, GitRules::read(&arguments.new)?);
    let old = load(&arguments.old, old_files.as_ref());
    let new = load(&arguments.new, new_files.as_ref());
    let (old, new) = match (old, new) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(exit), _) | (_, Err(exit)) => return Ok(exit),
    };
    let tools = given.unwrap_or_else(|| declared_tools(old.policies(), new.policies()));
    warn_about_invalid_schemas(&tools);
    let inputs =
        ComparisonInputs { tools: &tools, samples: &samples, calls_per_policy: arguments.calls_per_policy };
    let mut progress = Progress::new("policies", true);
    let mut compared = compare(&old, &new, &inputs, &mut |count, of| progress.set(count, of));
    progress.clear();
    for files in [old_files, new_files].iter().flatten() {
        let (prefix, shown) = files.displayed_prefix();
        compared.rename_files(&prefix, &shown);
    }
    write_report(&compared, arguments.format, output)?;
    let is_denied = match arguments.deny {
        DeniedChanges::Looser => compared.allows_more(),
        DeniedChanges::Any => compared.changes_meaning(),
        DeniedChanges::None => false,
    };
    Ok(if is_denied { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Loads one version. If it has errors, reports them and returns the exit status.
fn load(path: &Path, files: Option<&GitRules>) -> Result<RulesVersion, ExitStatus> {
    let path = files.map_or(path, GitRules::path);
    RulesVersion::load(&[path.to_owned()]).map_err(|built| {
        match files {
            Some(files) => {
                let (prefix, shown) = files.displayed_prefix();
                print_displayed_build_errors(&built, &|text| text.replace(&prefix, &shown));
            }
            None => print_build_errors(&built),
        }
        check::exit_status(&built.diagnostics)
    })
}

/// Reads recorded calls.
fn read_samples(path: &Path) -> Result<Vec<CallSample>, CommandError> {
    let mut lines = JsonLinesReader::open(path)?;
    let file = path.display().to_string();
    let mut samples = Vec::new();
    let context = Map::new();
    let mut call_lines = CallLines::new(&context);
    while let Some(line) = lines.next_line(|| Ok(()))? {
        let number = line.number;
        let call = line.text.and_then(|text| call_lines.read(text, number));
        let call = call.map_err(|problem| CommandError::new(format!("{file}:{number}: {problem}")))?;
        let Some(CallLine { record, .. }) = call else { continue };
        let task = record.task().unwrap_or(Task::NONE);
        let origin = SampleOrigin::Recording { file: file.clone(), line: number };
        samples.push(CallSample { task, ..CallSample::new(record.call, origin) });
    }
    Ok(samples)
}

fn write_report(
    compared: &BundleComparison,
    format: DiffFormat,
    output: &mut Output,
) -> Result<(), CommandError> {
    match format {
        DiffFormat::Text => {
            write!(output, "{}", render::text(compared, output.colour))?;
            let style = if compared.allows_more() { RED } else { GREEN };
            let summary = output.paint(style, &render::summary(compared)).into_owned();
            writeln!(output, "{summary}")?;
        }
        DiffFormat::Json => {
            let document = render::json(compared).map_err(|error| CommandError::new(error.to_string()))?;
            writeln!(output, "{document}")?;
        }
        DiffFormat::Github => write!(output, "{}", render::github(compared))?,
    }
    Ok(())
}

/// The tools that the new rules declare, and those that only the old ones do.
fn declared_tools(old: &CompiledPolicies, new: &CompiledPolicies) -> Vec<ToolDescriptor> {
    let mut tools = new.tools().to_vec();
    let is_known = |tool: &ToolDescriptor| {
        new.tools().iter().any(|known| known.name == tool.name && known.server == tool.server)
    };
    tools.extend(old.tools().iter().filter(|tool| !is_known(tool)).cloned());
    tools
}
