//! `callgate test --generate`: recorded calls → test cases.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use super::TestArgs;
use crate::check;
use crate::exit::{CommandError, ExitStatus};
use crate::json_inputs::read_tools;
use crate::output::{Output, count_noun, print_build_errors, print_note, quote_shell_word};
use callgate::call::CallRecord;
use callgate::engine;
use callgate::source::is_policy_test;
use callgate::tools::ToolDescriptor;
use callgate_policy_tests::{GeneratedTests, RecordingSource, rules_paths};

pub(super) fn generate(
    arguments: &TestArgs,
    calls: &Path,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    if let Some(path) = &arguments.output {
        check_output(path)?;
    }
    let records = read_calls(calls, arguments.filter.as_deref())?;
    let tools = arguments
        .tools
        .as_deref()
        .map(|path| Ok::<_, CommandError>((path, read_tools(path)?)))
        .transpose()?;
    let policies = match engine::load(&rules_paths(&arguments.paths)) {
        Ok(policies) => policies,
        Err(error) => {
            print_build_errors(error.build_result());
            return Ok(check::exit_status(&error.build_result().diagnostics));
        }
    };
    let directory = arguments.output.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let named: Option<(String, Vec<ToolDescriptor>)> =
        tools.map(|(path, tools)| (relative_path(directory, path), tools));
    let name = calls.file_name().map_or_else(|| "stdin".to_owned(), |name| name.display().to_string());
    let origin = RecordingSource {
        calls: if calls == Path::new("-") { "stdin" } else { &name },
        tools: named.as_ref().map(|(path, tools)| (path.as_str(), tools.as_slice())),
    };
    let generated = callgate_policy_tests::generate(records, &policies, origin)
        .map_err(|error| CommandError::new(error.to_string()))?;
    match &arguments.output {
        Some(path) => write_new_file(path, &generated.text)?,
        None => write!(output, "{}", generated.text)?,
    }
    output.flush()?;
    print_summary(&generated, arguments);
    Ok(ExitStatus::Success)
}

fn check_output(path: &Path) -> Result<(), CommandError> {
    if !is_policy_test(path) {
        return Err(CommandError::new(format!(
            "`{}` does not have a test file's name; use a name such as `recorded.test.yaml`",
            path.display()
        )));
    }
    if path.symlink_metadata().is_ok() {
        return Err(already_exists(path));
    }
    Ok(())
}

fn already_exists(path: &Path) -> CommandError {
    CommandError::new(format!(
        "`{}` already exists and may have been reviewed; use another file",
        path.display()
    ))
}

fn write_new_file(path: &Path, text: &str) -> Result<(), CommandError> {
    let unwritable = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => already_exists(path),
        _ => CommandError::new(format!("`{}` can't be written: {error}", path.display())),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(unwritable)?;
    file.write_all(text.as_bytes()).map_err(unwritable)
}

/// Reads the calls whose session name contains the filter, case-insensitively.
fn read_calls(path: &Path, filter: Option<&str>) -> Result<Vec<CallRecord>, CommandError> {
    let mut lines = crate::run::JsonLinesReader::open(path)?;
    let filter = filter.map(str::to_lowercase);
    let mut records = Vec::new();
    while let Some(line) = lines.next_line(|| Ok(()))? {
        let number = line.number;
        let record = line.text.and_then(|text| CallRecord::parse(text).map_err(|error| error.to_string()));
        match record {
            Ok(record) => {
                let name = record.session.as_deref().unwrap_or_default().to_lowercase();
                if filter.as_ref().is_none_or(|text| name.contains(text)) {
                    records.push(record);
                }
            }
            Err(problem) => {
                return Err(CommandError::new(format!("{}:{number}: {problem}", lines.name())));
            }
        }
    }
    match (&filter, records.is_empty()) {
        (Some(text), true) => Err(CommandError::new(format!("no session has `{text}` in its name"))),
        (None, true) => Err(CommandError::new(format!("`{}` contains no calls", path.display()))),
        _ => Ok(records),
    }
}

/// The path of a file relative to `directory`.
fn relative_path(directory: &Path, path: &Path) -> String {
    let full = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (from, to) = (full(directory), full(path));
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let same = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from.iter().skip(same).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to.iter().skip(same).copied()).collect();
    way.display().to_string()
}

fn print_summary(generated: &GeneratedTests, arguments: &TestArgs) {
    let GeneratedTests { cases, calls, redacted_by, .. } = generated;
    let written =
        arguments.output.as_ref().map_or_else(String::new, |path| format!(" in `{}`", path.display()));
    print_note(format!(
        "{} generated from {}{written}; review them: they expect what the rules do now",
        count_noun(*cases, "case", "cases"),
        count_noun(*calls, "call", "calls")
    ));
    if !redacted_by.is_empty() {
        print_note(format!("values redacted by {} were not written", redacted_by.join(", ")));
    }
    if let Some(path) = &arguments.output {
        let full = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_below = arguments.paths.iter().any(|above| full(path).starts_with(full(above)));
        let paths = rules_paths(&arguments.paths).into_iter().chain((!is_below).then(|| path.clone()));
        let words: Vec<String> = paths.map(|path| quote_shell_word(&path.display().to_string())).collect();
        print_note(format!("run them with `callgate test {}`", words.join(" ")));
    }
}
