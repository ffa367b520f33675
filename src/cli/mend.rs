//! `callgate check --fix` and `--diff`: what can be mended without doubt.

use std::fs;
use std::io::Write;

use similar::TextDiff;

use super::exit::{Exit, Stop};
use super::output::{self, GREEN, Output, RED, amount, one_line};
use crate::lint::{Beside, Linted, fix};

/// Writes the mended files, and gives what is left to be mended by hand. Everything that was not mended stays as it was.
pub(super) fn write(linted: Linted, beside: &Beside<'_>) -> Result<Linted, Stop> {
    let fixed = fix(linted, beside);
    for (name, (before, after)) in &fixed.changed {
        replace(name, before, after).map_err(|problem| Stop::trouble(format!("`{name}` {problem}")))?;
    }
    if fixed.fixes > 0 {
        let (made, files) = (fixed.fixes, fixed.changed.len());
        output::note(format!(
            "{} mended in {}",
            amount(made, "problem", "problems"),
            amount(files, "file", "files")
        ));
    }
    Ok(fixed.linted)
}

/// Replaces what a file holds, its byte order mark kept.
fn replace(name: &str, before: &str, after: &str) -> Result<(), String> {
    const MARK: &str = "\u{feff}";
    let now = fs::read_to_string(name).map_err(|error| format!("can't be read: {error}"))?;
    let (mark, text) = now.strip_prefix(MARK).map_or(("", now.as_str()), |text| (MARK, text));
    if text != before {
        return Err("has changed meanwhile; run `callgate check --fix` again".to_owned());
    }
    fs::write(name, format!("{mark}{after}")).map_err(|error| format!("can't be written: {error}"))
}

/// Shows what would be written, as a unified diff. The exit status says whether there is anything.
pub(super) fn diff(linted: Linted, beside: &Beside<'_>, output: &mut Output) -> Result<Exit, Stop> {
    let has_errors = linted.diagnostics.has_errors();
    let fixed = fix(linted, beside);
    for (name, (before, after)) in &fixed.changed {
        write_diff(name, before, after, output)?;
    }
    if has_errors {
        output.flush()?;
        output::complain("there are errors, which are mended by hand first: `callgate check` shows them");
    }
    Ok(if has_errors || !fixed.changed.is_empty() { Exit::Fails } else { Exit::Done })
}

/// Shows what would become of a file.
pub(super) fn write_diff(name: &str, before: &str, after: &str, output: &mut Output) -> Result<(), Stop> {
    let diff = TextDiff::from_lines(before, after);
    let unified = diff.unified_diff().header(name, name).to_string();
    unified.split_inclusive('\n').try_for_each(|line| write_line(line, output))
}

fn write_line(line: &str, output: &mut Output) -> Result<(), Stop> {
    // In a file or a pipe it is a patch, letter by letter; a terminal would act on some letters.
    if output.width.is_none() {
        return Ok(output.write_all(line.as_bytes())?);
    }
    let shown = one_line(line.trim_end_matches(['\r', '\n'])).into_owned();
    let shown = match line.chars().next() {
        Some('+') => output.paint(GREEN, &shown).into_owned(),
        Some('-') => output.paint(RED, &shown).into_owned(),
        _ => shown,
    };
    Ok(writeln!(output, "{shown}")?)
}
