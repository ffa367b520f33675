//! Validation of the prefixes by which tool names are routed to servers.

use super::ConfigReader;
use callgate::diagnostic::{CONFLICTING_KEYS, Diagnostic, Span};
use callgate::safe_text::{escape_controls, truncate};
use callgate::source::YamlNode;

impl ConfigReader<'_> {
    /// Reports overlapping prefixes: calls are routed by prefix, so no prefix may begin with another.
    pub(super) fn check_prefixes(&mut self, servers: &[YamlNode]) {
        let mut known: Vec<(&str, String, Span)> = Vec::new();
        for node in servers {
            let Some(name_node) = node.get("name") else { continue };
            let Some(name) = name_node.as_str() else { continue };
            let own = node.get("prefix").and_then(|node| Some((node.as_str()?.to_owned(), node.span)));
            let (prefix, span) = own.unwrap_or_else(|| (default_prefix(name), name_node.span));
            let alike = known.iter().find(|(other, theirs, _)| {
                // Empty prefixes and duplicate names are reported elsewhere.
                let overlap = prefix.starts_with(theirs.as_str()) || theirs.starts_with(&prefix);
                overlap && !prefix.is_empty() && !theirs.is_empty() && *other != name
            });
            if let Some((other, theirs, first)) = alike {
                let [ours, theirs, other] =
                    [&prefix, theirs, *other].map(|text| truncate(&escape_controls(text)));
                let message = match (ours == theirs, prefix.starts_with(&theirs)) {
                    (true, _) => format!("`{ours}` is also the prefix of `{other}`"),
                    (_, true) => format!("`{ours}` begins with the prefix of `{other}`, `{theirs}`"),
                    (_, false) => format!("the prefix of `{other}`, `{theirs}`, begins with `{ours}`"),
                };
                let help = "give one of them another `prefix`: calls are routed by prefix, so none may begin with another";
                let diagnostic =
                    Diagnostic::new(&CONFLICTING_KEYS, span, message).with_label(*first, "the other prefix");
                self.reader.report(diagnostic.with_help(help));
            }
            known.push((name, prefix, span));
        }
    }
}

/// The default prefix of a server's tool names.
pub(super) fn default_prefix(name: &str) -> String {
    format!("{name}__")
}
