//! `callgate audit verify`: what is proven of an audit log, and what is not.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::event_source::{open, unreadable_file};
use crate::exit::CommandError;
use crate::output::{BOLD, GREEN, Output, RED, YELLOW, count_noun, escape_line, format_time, group_digits};
use crate::pins::read_signers;
use crate::progress::Progress;
use callgate::json::{Value, json};
use callgate::seal::PublicKey;
use callgate_log::{AuditPosition, AuditReport, AuditVerifier, ChainHead, Located, audit_files};

/// Reads public keys: each is a key itself, or a file with keys.
pub(super) fn read_keys(keys: &[String]) -> Result<Vec<PublicKey>, CommandError> {
    let mut all = Vec::new();
    for key in keys {
        match key.parse() {
            Ok(key) => all.push(key),
            Err(_) => all.extend_from_slice(read_signers(Path::new(key))?.public_keys()),
        }
    }
    Ok(all)
}

/// Verifies a log in files with their rotated ones.
pub(super) fn verify(
    files: &[PathBuf],
    keys: Vec<PublicKey>,
    expected: Vec<ChainHead>,
) -> Result<AuditReport, CommandError> {
    let failed = |path: &Path, error| CommandError::new(unreadable_file(path, &error));
    let files = audit_files(files).map_err(|(path, error)| failed(&path, error))?;
    let mut verifier = AuditVerifier::new(keys, expected);
    let mut progress = Progress::new("lines", true);
    let mut result = Ok(());
    for path in &files {
        let name = path.display().to_string();
        let read = open(path).and_then(|file| verifier.read(&name, file, || progress.increment()));
        result = read.map_err(|error| failed(path, error));
        if result.is_err() {
            break;
        }
    }
    progress.clear();
    result.map(|()| verifier.finish())
}

/// Writes a report for people. `has_keys` says whether they named the keys.
pub(super) fn write_text(
    report: &AuditReport,
    has_keys: bool,
    output: &mut Output,
) -> Result<(), CommandError> {
    for found in &report.problems {
        let mark = output.paint(RED, "✗").into_owned();
        writeln!(output, "{mark} {}", located(found))?;
    }
    write_rest(report.problem_count, report.problems.len(), output)?;
    for found in &report.notes {
        let mark = output.paint(YELLOW, "!").into_owned();
        writeln!(output, "{mark} {}", located(found))?;
    }
    write_rest(report.note_count, report.notes.len(), output)?;
    let (verdict, style) = if report.is_intact() { ("intact", GREEN) } else { ("altered", RED) };
    let files = match report.files {
        1 => String::new(),
        files => format!(" in {files} files"),
    };
    let times = report.times.map(|(first, last)| {
        format!(", {} to {}", format_time(&first.to_string()), format_time(&last.to_string()))
    });
    let verdict = output.paint(style.effects(clap::builder::styling::Effects::BOLD), verdict).into_owned();
    writeln!(output, "{verdict}: {}{files}{}", lines(report.lines), times.unwrap_or_default())?;
    for key in &report.keys {
        let trust =
            if has_keys { "" } else { " (named by the log itself: compare it, or give it with --key)" };
        writeln!(output, "signed by {key}{trust}")?;
    }
    write_end(report, output)
}

/// Up to where the log is proven, and what may be missing at its end.
fn write_end(report: &AuditReport, output: &mut Output) -> Result<(), CommandError> {
    let Some(last) = report.last else { return Ok(()) };
    let proven = report.proven.unwrap_or(0);
    let proven_text = match report.proven {
        Some(seq) => format!("proven up to line {}", group(seq)),
        None => "nothing is proven".to_owned(),
    };
    let end = match (report.is_closed, last.seq.saturating_sub(proven)) {
        (true, _) if report.is_intact() => "; the log is closed".to_owned(),
        (_, 0) => "; the log is not closed: later lines may have been cut".to_owned(),
        (_, unproven) => format!(
            "; the log is not closed: its last {} may have been changed, and later ones cut",
            lines(unproven)
        ),
    };
    let end = if report.is_intact() { end } else { String::new() };
    writeln!(output, "{proven_text}{end}")?;
    writeln!(output, "last line {}", output.paint(BOLD, &last.to_string()).into_owned())?;
    Ok(())
}

fn write_rest(count: u64, listed: usize, output: &mut Output) -> Result<(), CommandError> {
    match count.saturating_sub(listed as u64) {
        0 => Ok(()),
        rest => Ok(writeln!(output, "… and {} more", group(rest))?),
    }
}

/// Writes a report as JSON.
pub(super) fn write_json(report: &AuditReport, output: &mut Output) -> Result<(), CommandError> {
    let (begins, ends) = report.times.map_or((Value::Null, Value::Null), |(first, last)| {
        (json!(first.to_string()), json!(last.to_string()))
    });
    let document = json!({
        "version": 1,
        "intact": report.is_intact(),
        "closed": report.is_closed,
        "files": report.files,
        "lines": report.lines,
        "first": report.first,
        "proven": report.proven,
        "last": report.last.map(|last| last.to_string()),
        "begins": begins,
        "ends": ends,
        "keys": report.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "problems": report.problems.iter().map(located_json).collect::<Vec<_>>(),
        "problem_count": report.problem_count,
        "notes": report.notes.iter().map(located_json).collect::<Vec<_>>(),
        "note_count": report.note_count,
    });
    Ok(writeln!(output, "{document:#}")?)
}

fn located_json<T: std::fmt::Display>(found: &Located<T>) -> Value {
    json!({ "file": found.at.file, "line": found.at.line, "message": found.what.to_string() })
}

fn located<T: std::fmt::Display>(found: &Located<T>) -> String {
    let AuditPosition { file, line } = &found.at;
    if file.is_empty() {
        return found.what.to_string();
    }
    format!("{}:{line}: {}", escape_line(file), found.what)
}

fn lines(count: u64) -> String {
    count_noun(usize::try_from(count).unwrap_or(usize::MAX), "line", "lines")
}

fn group(count: u64) -> String {
    group_digits(usize::try_from(count).unwrap_or(usize::MAX))
}
