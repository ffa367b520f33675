//! Stable JSON array of diagnostics for programs.

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Diagnostics, Fix, Location, Severity, SourceMap};

/// One diagnostic; the members and their order are part of the API contract.
#[derive(Serialize)]
struct DiagnosticRecord<'a> {
    code: &'static str,
    name: &'static str,
    severity: Severity,
    message: &'a str,
    help: Option<&'a str>,
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    policy: Option<&'a str>,
    fix: Option<FixRecord<'a>>,
}

/// The fix that `check --fix` applies.
#[derive(Serialize)]
struct FixRecord<'a> {
    title: &'a str,
    edits: Vec<EditRecord<'a>>,
}

/// Replaces the text between two positions.
#[derive(Serialize)]
struct EditRecord<'a> {
    file: String,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    text: &'a str,
}

/// Renders all diagnostics as one JSON array. Members that do not apply are null: the position in a file that can't be read, the
/// policy of a problem outside any policy, the fix of a problem without automatic fix.
///
/// # Errors
/// Returns the error of `serde_json`, which strings and numbers do not cause.
pub fn json(diagnostics: &Diagnostics, sources: &SourceMap) -> crate::json::Result<String> {
    let records: Vec<_> = diagnostics.iter().map(|diagnostic| record(diagnostic, sources)).collect();
    crate::json::to_string_pretty(&records)
}

fn record<'a>(diagnostic: &'a Diagnostic, sources: &SourceMap) -> DiagnosticRecord<'a> {
    let location = diagnostic.span.and_then(|span| sources.locate(span));
    let number = |pick: fn(&Location) -> usize| location.as_ref().map(pick);
    DiagnosticRecord {
        code: diagnostic.code.id,
        name: diagnostic.code.name,
        severity: diagnostic.severity(),
        message: &diagnostic.message,
        help: diagnostic.help.as_deref(),
        line: number(|location| location.line),
        column: number(|location| location.column),
        end_line: number(|location| location.end_line),
        end_column: number(|location| location.end_column),
        file: location.map(|location| location.file).or_else(|| diagnostic.file.clone()),
        policy: diagnostic.policy.as_deref(),
        fix: diagnostic.fix.as_ref().map(|fix| fix_record(fix, sources)),
    }
}

fn fix_record<'a>(fix: &'a Fix, sources: &SourceMap) -> FixRecord<'a> {
    let edits = fix.edits.iter().filter_map(|edit| {
        let Location { file, line, column, end_line, end_column } = sources.locate(edit.span)?;
        Some(EditRecord { file, line, column, end_line, end_column, text: &edit.replacement })
    });
    FixRecord { title: &fix.title, edits: edits.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{MISSING_PATH, Span, UNKNOWN_KEY};

    #[test]
    fn writes_all_members_in_contract_order() {
        let mut sources = SourceMap::default();
        let source = sources.add("é.yaml", "a: é\ntol: x\n");
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(Diagnostic::for_file(&MISSING_PATH, "gone", "`gone` does not exist"));
        let mut at_key = Diagnostic::new(&UNKNOWN_KEY, Span::new(source, 6, 9), "unknown key `tol`")
            .with_help("`tool`?")
            .with_fix(Some(Fix::replace("write `tool`", Span::new(source, 6, 9), "tool")));
        at_key.policy = Some("p".to_owned());
        diagnostics.push(at_key);
        let expected = r#"[{"code":"CG002","name":"missing-path","severity":"error","message":"`gone` does not exist","help":null,"file":"gone","line":null,"column":null,"end_line":null,"end_column":null,"policy":null,"fix":null},{"code":"CG201","name":"unknown-key","severity":"error","message":"unknown key `tol`","help":"`tool`?","file":"é.yaml","line":2,"column":1,"end_line":2,"end_column":4,"policy":"p","fix":{"title":"write `tool`","edits":[{"file":"é.yaml","line":2,"column":1,"end_line":2,"end_column":4,"text":"tool"}]}}]"#;
        let written = json(&diagnostics, &sources).unwrap();
        let compact: crate::json::Value = crate::json::from_str(&written).unwrap();
        assert_eq!(compact.to_string(), expected);
    }
}
