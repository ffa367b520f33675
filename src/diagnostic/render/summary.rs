//! The number of problems, in one line.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Diagnostics, Severity, SourceFile, SourceMap};

/// The number of problems: `3 errors, 1 warning in 2 files`.
pub fn summary(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
    let left_out = diagnostics.left_out();
    let mut amounts: Vec<_> = [(count(Severity::Error), "error"), (count(Severity::Warning), "warning")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format_count(count, word))
        .collect();
    amounts.extend((left_out > 0).then(|| format!("{left_out} more not shown")));
    if amounts.is_empty() {
        return "no problems".to_owned();
    }
    let files: HashSet<_> =
        diagnostics.iter().filter_map(|diagnostic| file_name(diagnostic, sources)).collect();
    match files.len() {
        0 => amounts.join(", "),
        files => format!("{} in {}", amounts.join(", "), format_count(files, "file")),
    }
}

fn format_count(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn file_name<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> Option<&'a str> {
    match diagnostic.span {
        Some(span) => sources.get(span.source).map(SourceFile::name),
        None => diagnostic.file.as_deref(),
    }
}
