//! Text output without source lines, of a build without the feature `snippets`: messages, positions and help.

use std::fmt::Write;

use super::hidden_characters::escape_hidden;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, SourceMap, Span};

/// Renders each diagnostic as a paragraph ending in a line break, in order. There are no colours in this build.
pub fn text(diagnostics: &Diagnostics, sources: &SourceMap, _: bool) -> String {
    let paragraphs: Vec<_> = diagnostics.iter().map(|diagnostic| paragraph(diagnostic, sources)).collect();
    paragraphs.join("\n")
}

fn paragraph(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{level}[{}]: {}\n", diagnostic.code.id, escape_hidden(&diagnostic.message));
    // Writing to a string can't fail.
    let mut line = |arrow: &str, content: &str| {
        let _ = writeln!(text, " {arrow} {content}");
    };
    match (diagnostic.span, &diagnostic.file) {
        (Some(span), _) => line("-->", &position(span, sources)),
        (None, Some(file)) => line("-->", &escape_hidden(file)),
        (None, None) => {}
    }
    for label in &diagnostic.labels {
        line(":::", &format!("{}: {}", position(label.span, sources), escape_hidden(&label.message)));
    }
    if let Some(policy) = &diagnostic.policy {
        line(" = note:", &format!("in policy `{}`", escape_hidden(policy)));
    }
    if let Some(help) = &diagnostic.help {
        line(" = help:", &escape_hidden(help));
    }
    text
}

/// `rules.yaml:3:5`
fn position(span: Span, sources: &SourceMap) -> String {
    let Some(source) = sources.get(span.source) else { return String::new() };
    let (line, column) = source.position(span.start());
    format!("{}:{line}:{column}", escape_hidden(source.name()))
}
