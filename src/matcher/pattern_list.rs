//! Reads the tool and server patterns of a rules file; `@name` stands for the patterns of a group.

use crate::call::method_name;
use crate::diagnostic::{Diagnostic, INVALID_PATTERN, Span, UNKNOWN_NAME, closest_match};
use crate::name_pattern::NamePattern;
use crate::rules_schema::PolicyReader;
use crate::script::DefinitionName;
use crate::source::YamlNode;

/// Patterns, each with its location.
#[derive(Clone, Debug, Default)]
pub struct PatternList {
    /// The patterns.
    pub patterns: Vec<NamePattern>,
    /// The location of each pattern; that of the group for a pattern of a group.
    pub spans: Vec<Span>,
}

impl PatternList {
    /// Reads one pattern or a list of patterns, and reports invalid ones. A list that only names empty groups matches nothing.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Self {
        let mut list = Self::default();
        for item in node.items().unwrap_or(std::slice::from_ref(node)) {
            for pattern in read_item(item, reader) {
                list.patterns.push(pattern);
                list.spans.push(item.span);
            }
        }
        list.patterns.shrink_to_fit();
        list
    }
}

/// Reads a pattern, or the patterns of a group.
fn read_item(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Vec<NamePattern> {
    let Some(text) = node.as_str() else { return Vec::new() };
    if let Some(method) = method_name(text) {
        let message = "no tool has a name that begins with `method:`";
        let help = format!("for requests by an MCP method write `match: {{ method: {method} }}`");
        reader.report(Diagnostic::new(&INVALID_PATTERN, node.span, message).with_help(help));
        return Vec::new();
    }
    let Some(group) = text.strip_prefix('@') else {
        return match read_pattern(node, reader) {
            Some(NamePattern::Exact(_) | NamePattern::Glob(_)) if text.contains('|') => {
                report_alternatives(node, text, reader);
                Vec::new()
            }
            pattern => pattern.into_iter().collect(),
        };
    };
    reader.use_definition(DefinitionName::Group(group.to_owned()));
    match reader.names.group(group) {
        Some([]) => vec![NamePattern::Nothing],
        Some(patterns) => patterns.to_vec(),
        None => {
            let help = match closest_match(group, reader.names.group_names()) {
                Some(meant) => format!("did you mean `@{meant}`?"),
                None => {
                    format!("define it under `groups:`; for a tool of this name write `\"/^@{group}$/\"`")
                }
            };
            let message = format!("unknown group `@{group}`");
            reader.report(Diagnostic::new(&UNKNOWN_NAME, node.span, message).with_help(help));
            Vec::new()
        }
    }
}

/// Reports `a|b`, which would be one name. Names with a `|` are written as regular expressions.
fn report_alternatives(node: &YamlNode, text: &str, reader: &mut PolicyReader<'_>) {
    let names: Vec<&str> = text.split('|').map(str::trim).filter(|name| !name.is_empty()).collect();
    let message = format!("`{}` is one name, not several", text.escape_debug());
    let help = format!("write a list: `[{}]`", names.join(", "));
    reader.report(Diagnostic::new(&INVALID_PATTERN, node.span, message).with_help(help));
}

/// Reads one pattern or a list of patterns for names other than those of tools.
pub fn read_patterns(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Vec<NamePattern> {
    let nodes = node.items().unwrap_or(std::slice::from_ref(node));
    nodes.iter().filter_map(|node| read_pattern(node, reader)).collect()
}

fn read_pattern(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<NamePattern> {
    read_name(node.as_str()?, node, reader)
}

/// Reads a pattern that is a part of a node's string.
pub fn read_name(text: &str, node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<NamePattern> {
    if let Some(pattern) = NamePattern::regex_of(text) {
        return reader.read_regex_in(node, pattern).map(NamePattern::Regex);
    }
    NamePattern::parse(text)
        .map_err(|problem| {
            let diagnostic = Diagnostic::new(&INVALID_PATTERN, node.span, problem.message);
            reader.report(diagnostic.with_help(problem.help));
        })
        .ok()
}
