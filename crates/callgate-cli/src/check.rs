//! `callgate check`: compiles a bundle and reports its errors and lint warnings.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::check_fix;
use super::exit::{CommandError, ExitStatus};
use super::json_inputs::read_tools;
use super::output::{BOLD, GREEN, Output, RED, YELLOW, count_noun};
use callgate::argument_schema::ArgumentSchema;
use callgate::diagnostic::{
    Diagnostic, Diagnostics, INVALID_SCHEMA, MISSING_PATH, NO_RULES_FILES, UNREADABLE_FILE, render,
};
use callgate::policy::{self, CompiledPolicies, Mode};
use callgate::tools::ToolDescriptor;
use callgate_lint::{LintInputs, LintResult, lint};

/// Check rules files for errors and likely mistakes.
///
/// A bundle is every *.yaml and *.yml file below the paths, except policy tests (*.test.yaml) and hidden files. All
/// problems of all files are reported at once, each with its position and a fix. `callgate rule CODE` explains a code;
/// `# callgate: allow CODE because …`, on the same line or the line above, suppresses a warning.
///
/// Exit status: 0 no errors, 1 errors found (with --deny-warnings: or warnings; with --diff: or something to fix), 2 a
/// path can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate check\n  \
    callgate check policies --tools tools.json\n  \
    callgate check policies --diff\n  \
    callgate check policies --format json | jq '.[].message'")]
pub(super) struct CheckArgs {
    /// Rules files, or directories to search for them
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Check against these tools, and check their schemas: a JSON array, or the result of an MCP tools/list
    /// [default: the tools that the rules declare]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
    /// Exit with status 1 for warnings, too
    #[arg(long)]
    deny_warnings: bool,
    /// Apply the safe fixes to the files, and report the remaining problems
    #[arg(long)]
    fix: bool,
    /// Show what --fix would change, without changing files
    #[arg(long, conflicts_with_all = ["fix", "format"])]
    diff: bool,
}

/// Output formats of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// Human-readable text
    Text,
    /// A JSON array for programs, stable
    Json,
    /// SARIF 2.1.0, for code scanning services
    Sarif,
    /// GitHub workflow commands, for annotations
    Github,
}

pub(super) fn check(arguments: &CheckArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let mut built = policy::build(&arguments.paths);
    let tools = arguments.tools.as_deref().map(read_tools).transpose()?;
    if let (Some(path), Some(tools)) = (&arguments.tools, &tools) {
        check_tools(path, tools, &mut built.diagnostics);
    }
    let mut tests = callgate_policy_tests::load(&arguments.paths);
    if let Some(policies) = &built.policies {
        tests.resolve_names(policies);
    }
    let declared =
        built.policies.as_ref().map(|rules| rules.tools().to_vec()).filter(|tools| !tools.is_empty());
    let tools = tools.or(declared);
    let beside = LintInputs { tools: tools.as_deref(), tests: Some(&tests) };
    let mut linted = lint(built, &beside);
    if arguments.diff {
        return check_fix::show_fixes(linted, &beside, output);
    }
    if arguments.fix {
        linted = check_fix::write_fixes(linted, &beside)?;
    }
    write_report(arguments.format, &linted, output)?;
    Ok(match exit_status(&linted.diagnostics) {
        ExitStatus::Success if arguments.deny_warnings && !linted.diagnostics.is_empty() => {
            ExitStatus::Failure
        }
        exit => exit,
    })
}

fn write_report(form: CheckFormat, linted: &LintResult, output: &mut Output) -> Result<(), CommandError> {
    let (diagnostics, sources) = (&linted.diagnostics, &linted.sources);
    let unwritable = |error: callgate::json::Error| CommandError::new(error.to_string());
    match form {
        CheckFormat::Text => write_text(linted, output)?,
        CheckFormat::Json => writeln!(output, "{}", render::json(diagnostics, sources).map_err(unwritable)?)?,
        CheckFormat::Sarif => {
            writeln!(output, "{}", render::sarif(diagnostics, sources).map_err(unwritable)?)?
        }
        CheckFormat::Github => write!(output, "{}", render::github(diagnostics, sources))?,
    }
    Ok(())
}

/// The exit status for these diagnostics: [`ExitStatus::Error`] if the only errors are unreadable paths.
pub(super) fn exit_status(diagnostics: &Diagnostics) -> ExitStatus {
    let of_path = |diagnostic: &Diagnostic| {
        diagnostic.span.is_none()
            && [&UNREADABLE_FILE, &MISSING_PATH, &NO_RULES_FILES].contains(&diagnostic.code)
    };
    match diagnostics.has_errors() {
        false => ExitStatus::Success,
        true if diagnostics.iter().all(of_path) => ExitStatus::Error,
        true => ExitStatus::Failure,
    }
}

fn check_tools(path: &Path, tools: &[ToolDescriptor], diagnostics: &mut Diagnostics) {
    for tool in tools {
        let Some(Err(error)) = tool.input_schema.as_ref().map(ArgumentSchema::compile) else { continue };
        let message = format!("the schema of the tool `{}` can't be used: {error}", tool.name);
        diagnostics.push(
            Diagnostic::for_file(&INVALID_SCHEMA, path.display().to_string(), message).with_help(
                "fix the schema: until then, `validate: { schema: tool }` denies every call of this tool",
            ),
        );
    }
}

fn write_text(linted: &LintResult, output: &mut Output) -> Result<(), CommandError> {
    let summary = render::summary(&linted.diagnostics, &linted.sources);
    if !linted.diagnostics.is_empty() {
        write!(output, "{}", render::text(&linted.diagnostics, &linted.sources, output.colour))?;
        // Flushed first, so that the summary comes last if both streams go to one terminal.
        output.flush()?;
        let style = if linted.diagnostics.has_errors() { RED } else { YELLOW };
        let _ = writeln!(anstream::stderr(), "\n{style}{summary}{style:#}");
    } else if let Some(compiled) = &linted.policies {
        let (size, no_problems) = (bundle_summary(compiled, linted), output.paint(GREEN, &summary));
        let size = output.paint(BOLD, &size).into_owned();
        writeln!(output, "{size}: {no_problems}")?;
    }
    Ok(())
}

fn bundle_summary(compiled: &CompiledPolicies, linted: &LintResult) -> String {
    let policies = compiled.policies();
    let shadows = policies.iter().filter(|policy| policy.mode == Mode::Shadow).count();
    let shadows = if shadows > 0 { format!(" ({shadows} in shadow)") } else { String::new() };
    let revision: String = compiled.revision().chars().take(12).collect();
    format!(
        "{}{shadows} in {}, revision {revision}",
        count_noun(policies.len(), "policy", "policies"),
        count_noun(linted.sources.iter().count(), "file", "files"),
    )
}
