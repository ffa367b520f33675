//! Scalars of rules files: comparison, display in messages, and replacement in the source.

use std::cmp::Ordering;

use callgate::diagnostic::{SourceMap, Span};
use callgate::json::Value;
use callgate::matcher::EXPR_KEY;
use callgate::source::{StringStyle, YamlNode, YamlValue};

/// Returns the order of two numbers or two strings. Returns `None` for other values.
pub(super) fn compare_scalars(a: &YamlNode, b: &YamlNode) -> Option<Ordering> {
    match (&a.value, &b.value) {
        (YamlValue::Number(a), YamlValue::Number(b)) => Some(a.cmp(b)),
        (YamlValue::String(a), YamlValue::String(b)) => Some(a.text.cmp(&b.text)),
        _ => None,
    }
}

/// Whether this is a literal and not `{ path: … }` or `{ expr: … }`.
pub(super) fn is_literal(node: &YamlNode) -> bool {
    match node.entries() {
        Some([entry]) => !["path", EXPR_KEY].contains(&entry.key.as_str()),
        _ => true,
    }
}

/// Formats a value for a message. Long values are truncated.
pub(super) fn display_value(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the span of a scalar whose source is its exact text, so that it can be replaced. Returns `None` for aliases and block scalars.
pub(super) fn replaceable_span(sources: &SourceMap, node: &YamlNode) -> Option<Span> {
    let written = sources.get(node.span.source)?.text().get(node.span.start()..node.span.end())?;
    let is_exact = match &node.value {
        YamlValue::String(text) => match text.style {
            StringStyle::Plain => written == text.text,
            StringStyle::Quoted => {
                let inner = written.get(1..written.len().checked_sub(1)?)?;
                written.starts_with(['"', '\'']) && inner == text.text
            }
            StringStyle::Literal | StringStyle::Folded => false,
        },
        YamlValue::Number(number) => written == &*number.text(),
        _ => false,
    };
    is_exact.then_some(node.span)
}

/// Returns the source for a string that replaces a scalar, in quotes if the scalar had quotes or the string needs them.
pub(super) fn replacement_source(node: &YamlNode, text: &str) -> String {
    let plain = matches!(&node.value, YamlValue::String(written) if written.style == StringStyle::Plain);
    let means_itself = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && !["true", "false", "null"].contains(&text.to_ascii_lowercase().as_str());
    if plain && means_itself { text.to_owned() } else { quoted(text) }
}

/// Returns a string as a double-quoted scalar.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
