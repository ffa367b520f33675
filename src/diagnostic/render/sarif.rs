//! SARIF 2.1.0 output for code scanning services.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Edit, Location, Severity, SourceMap};
use crate::json::{Map, Value, json};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

/// Renders all diagnostics as one SARIF log with one run and the pages of the codes that occur. Columns count characters.
///
/// # Errors
/// Returns the error of `serde_json`, which strings and numbers do not cause.
pub fn sarif(diagnostics: &Diagnostics, sources: &SourceMap) -> crate::json::Result<String> {
    let mut codes: Vec<&'static Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    codes.sort_by_key(|code| code.id);
    codes.dedup();
    let results: Vec<Value> =
        diagnostics.iter().map(|diagnostic| result(diagnostic, &codes, sources)).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "callgate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": codes.into_iter().map(rule).collect::<Vec<Value>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    crate::json::to_string_pretty(&log)
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn rule(code: &'static Code) -> Value {
    // The first paragraph after the title is the short description.
    let short = code.page.split("\n\n").nth(1).unwrap_or(code.name);
    json!({
        "id": code.id,
        "name": code.name,
        "shortDescription": { "text": short },
        "help": { "text": format!("callgate rule {}", code.id), "markdown": code.page },
        "defaultConfiguration": { "level": level(code.severity) },
    })
}

fn result(diagnostic: &Diagnostic, codes: &[&'static Code], sources: &SourceMap) -> Value {
    let mut result = Map::new();
    result.insert("ruleId", diagnostic.code.id.into());
    if let Ok(index) = codes.binary_search_by_key(&diagnostic.code.id, |code| code.id) {
        result.insert("ruleIndex", index.into());
    }
    result.insert("level", level(diagnostic.severity()).into());
    let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    result.insert("message", json!({ "text": format!("{}{help}", diagnostic.message) }));
    let location = diagnostic.span.and_then(|span| sources.locate(span));
    let physical_location = match (&location, &diagnostic.file) {
        (Some(location), _) => Some(physical(location)),
        (None, Some(file)) => Some(json!({ "artifactLocation": { "uri": uri(file) } })),
        (None, None) => None,
    };
    if let Some(physical_location) = physical_location {
        result.insert("locations", json!([{ "physicalLocation": physical_location }]));
    }
    let related: Vec<Value> = diagnostic
        .labels
        .iter()
        .filter_map(|label| Some((sources.locate(label.span)?, &label.message)))
        .map(|(location, text)| json!({ "physicalLocation": physical(&location), "message": { "text": text } }))
        .collect();
    if !related.is_empty() {
        result.insert("relatedLocations", related.into());
    }
    if let Some(fix) = &diagnostic.fix {
        let changes: Vec<Value> = fix.edits.iter().filter_map(|edit| change(edit, sources)).collect();
        let fix = json!({ "description": { "text": fix.title }, "artifactChanges": changes });
        result.insert("fixes", json!([fix]));
    }
    if let Some(policy) = &diagnostic.policy {
        result.insert("properties", json!({ "policy": policy }));
    }
    Value::Object(result)
}

fn change(edit: &Edit, sources: &SourceMap) -> Option<Value> {
    let location = sources.locate(edit.span)?;
    Some(json!({
        "artifactLocation": { "uri": uri(&location.file) },
        "replacements": [{ "deletedRegion": region(&location), "insertedContent": { "text": edit.replacement } }],
    }))
}

fn physical(location: &Location) -> Value {
    json!({ "artifactLocation": { "uri": uri(&location.file) }, "region": region(location) })
}

fn region(location: &Location) -> Value {
    json!({
        "startLine": location.line,
        "startColumn": location.column,
        "endLine": location.end_line,
        "endColumn": location.end_column,
    })
}

/// Converts a path to a URI: relative paths stay relative, because services resolve them against the repository.
fn uri(path: &str) -> String {
    let relative = path.strip_prefix("./").unwrap_or(path);
    let prefix = if relative.starts_with('/') { "file://" } else { "" };
    let mut uri = prefix.to_owned();
    for byte in relative.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_paths_to_uris() {
        for (path, expected) in [
            ("./rules/a.yaml", "rules/a.yaml"),
            ("/srv/a b.yaml", "file:///srv/a%20b.yaml"),
            ("a:b#é%.yaml", "a%3Ab%23%C3%A9%25.yaml"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
