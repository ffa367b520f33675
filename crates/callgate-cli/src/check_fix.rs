//! `callgate check --fix` and `--diff`: applies the safe fixes of lints, or shows them as a diff.

use std::fs;
use std::io::Write;

use similar::TextDiff;

use super::exit::{CommandError, ExitStatus};
use super::output::{self, GREEN, Output, RED, count_noun, escape_line};
use callgate_lint::{LintInputs, LintResult, fix};

/// Writes the fixed files, and returns the remaining problems. Everything else in the files stays unchanged.
pub(super) fn write_fixes(linted: LintResult, beside: &LintInputs<'_>) -> Result<LintResult, CommandError> {
    let fixed = fix(linted, beside);
    for (name, (before, after)) in &fixed.changed {
        replace_content(name, before, after)
            .map_err(|problem| CommandError::new(format!("`{name}` {problem}")))?;
    }
    if fixed.fixes > 0 {
        let (count, files) = (fixed.fixes, fixed.changed.len());
        output::print_note(format!(
            "{} fixed in {}",
            count_noun(count, "problem", "problems"),
            count_noun(files, "file", "files")
        ));
    }
    Ok(fixed.linted)
}

/// Replaces the content of a file, except for its byte order mark.
fn replace_content(name: &str, before: &str, after: &str) -> Result<(), String> {
    const MARK: &str = "\u{feff}";
    let now = fs::read_to_string(name).map_err(|error| format!("can't be read: {error}"))?;
    let (mark, text) = now.strip_prefix(MARK).map_or(("", now.as_str()), |text| (MARK, text));
    if text != before {
        return Err("was changed in the meantime; run `callgate check --fix` again".to_owned());
    }
    fs::write(name, format!("{mark}{after}")).map_err(|error| format!("can't be written: {error}"))
}

/// Shows the fixes as a unified diff. The exit status is [`ExitStatus::Failure`] if there are fixes or errors.
pub(super) fn show_fixes(
    linted: LintResult,
    beside: &LintInputs<'_>,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let has_errors = linted.diagnostics.has_errors();
    let fixed = fix(linted, beside);
    for (name, (before, after)) in &fixed.changed {
        write_diff(name, before, after, output)?;
    }
    if has_errors {
        output.flush()?;
        output::print_error("the rules have errors; fix them by hand first: `callgate check` shows them");
    }
    Ok(if has_errors || !fixed.changed.is_empty() { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Writes the unified diff of one file.
pub(super) fn write_diff(
    name: &str,
    before: &str,
    after: &str,
    output: &mut Output,
) -> Result<(), CommandError> {
    let diff = TextDiff::from_lines(before, after);
    let unified = diff.unified_diff().header(name, name).to_string();
    unified.split_inclusive('\n').try_for_each(|line| write_line(line, output))
}

fn write_line(line: &str, output: &mut Output) -> Result<(), CommandError> {
    // A file or a pipe gets an exact patch; for a terminal, control characters are escaped.
    if output.width.is_none() {
        return Ok(output.write_all(line.as_bytes())?);
    }
    let text = escape_line(line.trim_end_matches(['\r', '\n'])).into_owned();
    let text = match line.chars().next() {
        Some('+') => output.paint(GREEN, &text).into_owned(),
        Some('-') => output.paint(RED, &text).into_owned(),
        _ => text,
    };
    Ok(writeln!(output, "{text}")?)
}
