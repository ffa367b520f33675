//! `callgate check`: compiles a bundle and shows everything that is wrong with it.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::Format;
use super::exit::{Exit, Stop};
use super::files::read_tools;
use super::output::{BOLD, GREEN, Output, RED, YELLOW, amount};
use crate::diagnostic::{
    Diagnostic, Diagnostics, INVALID_SCHEMA, MISSING_PATH, NO_RULES_FILES, UNREADABLE_FILE, render,
};
use crate::policy::{self, Built, Chains, Mode};
use crate::schema::ArgumentSchema;

/// Check rules files and show everything that is wrong with them.
///
/// A bundle is every *.yaml and *.yml file below the paths, except policy tests (*.test.yaml) and hidden files. All
/// problems of all files are shown at once, each with its place and what to do. `callgate rule CODE` explains a code.
///
/// Exit status: 0 no errors, 1 errors found (with --deny-warnings: or warnings), 2 a path can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate check\n  \
    callgate check policies --tools tools.json\n  \
    callgate check policies --format json | jq '.[].message'")]
pub(super) struct Check {
    /// Rules files, and directories to search for them
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Check the schemas of these tools, too: a JSON list, or the result of an MCP tools/list
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// How problems are written: for people, or as a JSON list for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 for warnings, too
    #[arg(long)]
    deny_warnings: bool,
}

pub(super) fn check(arguments: &Check, output: &mut Output) -> Result<Exit, Stop> {
    let mut built = policy::build(&arguments.paths);
    if let Some(path) = &arguments.tools {
        check_tools(path, &mut built.diagnostics)?;
    }
    match arguments.format {
        Format::Json => {
            let list = render::json(&built.diagnostics, &built.sources)
                .map_err(|error| Stop::trouble(error.to_string()))?;
            writeln!(output, "{list}")?;
        }
        Format::Text => write_text(&built, output)?,
    }
    Ok(match exit(&built.diagnostics) {
        Exit::Done if arguments.deny_warnings && !built.diagnostics.is_empty() => Exit::Fails,
        exit => exit,
    })
}

/// The exit status for what was found. Where nothing is wrong but that a path can't be read, no rules were asked about.
pub(super) fn exit(diagnostics: &Diagnostics) -> Exit {
    let of_path = |diagnostic: &Diagnostic| {
        diagnostic.span.is_none()
            && [&UNREADABLE_FILE, &MISSING_PATH, &NO_RULES_FILES].contains(&diagnostic.code)
    };
    match diagnostics.has_errors() {
        false => Exit::Done,
        true if diagnostics.iter().all(of_path) => Exit::Trouble,
        true => Exit::Fails,
    }
}

fn check_tools(path: &Path, diagnostics: &mut Diagnostics) -> Result<(), Stop> {
    for tool in read_tools(path)? {
        let Some(Err(error)) = tool.input_schema.as_ref().map(ArgumentSchema::compile) else { continue };
        let message = format!("the schema of the tool `{}` can't be used: {error}", tool.name);
        diagnostics.push(
            Diagnostic::of_file(&INVALID_SCHEMA, path.display().to_string(), message).help(
                "`validate: { schema: tool }` denies every call of this tool until the schema is mended",
            ),
        );
    }
    Ok(())
}

fn write_text(built: &Built, output: &mut Output) -> Result<(), Stop> {
    let summary = render::summary(&built.diagnostics, &built.sources);
    if !built.diagnostics.is_empty() {
        write!(output, "{}", render::text(&built.diagnostics, &built.sources, output.colour))?;
        // The last word comes last, also where both streams are one terminal.
        output.flush()?;
        let style = if built.diagnostics.has_errors() { RED } else { YELLOW };
        let _ = writeln!(anstream::stderr(), "\n{style}{summary}{style:#}");
    } else if let Some(chains) = &built.chains {
        let (size, no_problems) = (size(chains, built), output.paint(GREEN, &summary));
        let size = output.paint(BOLD, &size).into_owned();
        writeln!(output, "{size}: {no_problems}")?;
    }
    Ok(())
}

fn size(chains: &Chains, built: &Built) -> String {
    let policies = chains.policies();
    let shadows = policies.iter().filter(|policy| policy.mode == Mode::Shadow).count();
    let shadows = if shadows > 0 { format!(" ({shadows} in shadow)") } else { String::new() };
    let revision: String = chains.revision().chars().take(12).collect();
    format!(
        "{}{shadows} in {}, revision {revision}",
        amount(policies.len(), "policy", "policies"),
        amount(built.sources.iter().count(), "file", "files"),
    )
}
