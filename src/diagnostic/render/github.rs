//! GitHub workflow commands, which appear as annotations on the lines of a pull request.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Diagnostics, Location, Severity, SourceMap};

/// Renders one workflow command per diagnostic, each on its own line.
pub fn github(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    diagnostics.iter().map(|diagnostic| command(diagnostic, sources)).collect()
}

fn command(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let title = format!("{} {}", diagnostic.code.id, diagnostic.code.name);
    let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let message = format!("{}{help}", diagnostic.message);
    match (diagnostic.span.and_then(|span| sources.locate(span)), &diagnostic.file) {
        (None, Some(file)) => {
            format!("::{level} file={},title={}::{}\n", property(file), property(&title), data(&message))
        }
        (location, _) => annotation(level, location.as_ref(), &title, &message),
    }
}

/// Renders one workflow command on its own line. `level`: `error`, `warning` or `notice`.
pub fn annotation(level: &str, location: Option<&Location>, title: &str, message: &str) -> String {
    let mut command = format!("::{level} ");
    // Writing to a string cannot fail.
    if let Some(location) = location {
        let _ = write!(command, "file={},line={}", property(&location.file), location.line);
        match location.line == location.end_line {
            true => {
                // The end column is inclusive.
                let last = location.end_column.saturating_sub(1).max(location.column);
                let _ =
                    write!(command, ",endLine={},col={},endColumn={last}", location.line, location.column);
            }
            // Columns are valid only within one line.
            false => {
                let _ = write!(command, ",endLine={}", location.end_line);
            }
        }
        command.push(',');
    }
    let _ = writeln!(command, "title={}::{}", property(title), data(message));
    command
}

/// Escapes a message so that nothing in it ends the command.
fn data(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '\r', '\n']) {
        return text.into();
    }
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A").into()
}

/// Escapes a property value so that nothing in it ends the property or the command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{MISSING_PATH, Span, UNKNOWN_KEY, UNKNOWN_TOOL};

    #[test]
    fn escapes_characters_with_a_meaning_in_commands() {
        let mut sources = SourceMap::default();
        let source = sources.add("a,b:c%\n.yaml", "x: 1\ny:\n  - z\n");
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(
            Diagnostic::new(&UNKNOWN_KEY, Span::new(source, 0, 1), "::stop\n::error::100%").with_help("b"),
        );
        diagnostics.push(Diagnostic::new(&UNKNOWN_TOOL, Span::new(source, 5, 13), "over lines"));
        diagnostics.push(Diagnostic::for_file(&MISSING_PATH, "gone", "`gone` does not exist"));
        assert_eq!(
            github(&diagnostics, &sources),
            "::error file=a%2Cb%3Ac%25%0A.yaml,line=1,endLine=1,col=1,endColumn=1,title=CG201 unknown-key::\
             ::stop%0A::error::100%25%0Ahelp: b\n\
             ::warning file=a%2Cb%3Ac%25%0A.yaml,line=2,endLine=3,title=CG502 unknown-tool::over lines\n\
             ::error file=gone,title=CG002 missing-path::`gone` does not exist\n"
        );
    }
}
