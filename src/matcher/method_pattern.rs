//! Reads `match: { method: … }`: methods and globs → patterns for qualified names of methods.

use super::PatternList;
use crate::call::{qualified_method, unevaluated_method};
use crate::diagnostic::{Diagnostic, INVALID_PATTERN, UNKNOWN_NAME, closest_match};
use crate::name_pattern::NamePattern;
use crate::rules_schema::PolicyReader;
use crate::source::YamlNode;

/// The requests of MCP that policies can match. Extensions have others.
const KNOWN_METHODS: [&str; 13] = [
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
];

/// Reads one method or a list of methods, and reports those that no policy can match.
pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> PatternList {
    let mut list = PatternList::default();
    for item in node.items().unwrap_or(std::slice::from_ref(node)) {
        let Some(text) = item.as_str() else { continue };
        match parse(text) {
            Ok(pattern) => {
                list.patterns.push(pattern);
                list.spans.push(item.span);
            }
            Err(diagnostic) => reader.report(diagnostic(item)),
        }
    }
    if list.patterns.is_empty() {
        list.patterns.push(NamePattern::Nothing);
        list.spans.push(node.span);
    }
    list
}

type Report = Box<dyn FnOnce(&YamlNode) -> Diagnostic>;

fn parse(text: &str) -> Result<NamePattern, Report> {
    let invalid = |message: String, help: String| -> Report {
        Box::new(move |node| Diagnostic::new(&INVALID_PATTERN, node.span, message).with_help(help))
    };
    if let Some(why) = unevaluated_method(text) {
        return Err(invalid(format!("policies can't match the method `{text}`"), why.to_owned()));
    }
    if text.starts_with("notifications/") {
        let help = "match requests, such as `resources/subscribe`".to_owned();
        return Err(invalid("notifications are not evaluated".to_owned(), help));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.' | '$' | '*');
    if text.is_empty() || !text.chars().all(is_plain) || text.starts_with('/') {
        let help = "write a method such as `resources/read`, or a glob such as `resources/*`".to_owned();
        return Err(invalid(format!("`{}` is not a method", text.escape_debug()), help));
    }
    if !text.contains('*')
        && !KNOWN_METHODS.contains(&text)
        && let Some(meant) = closest_match(text, KNOWN_METHODS)
    {
        let message = format!("unknown method `{text}`");
        let help = format!("did you mean `{meant}`?");
        return Err(Box::new(move |node| Diagnostic::new(&UNKNOWN_NAME, node.span, message).with_help(help)));
    }
    let name = qualified_method(text);
    Ok(if text.contains('*') { NamePattern::Glob(name) } else { NamePattern::Exact(name) })
}
