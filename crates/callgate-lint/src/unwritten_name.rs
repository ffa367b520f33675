//! Lint: facts, labels and members of the session that are read, and that nothing writes.

use std::collections::{BTreeMap, BTreeSet};

use crate::expression_source::{
    ExpressionSource, SourceKind, TestNode, collect_expressions, collect_tests, leading_name,
};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::call::SESSION_MEMBERS;
use callgate::diagnostic::{Diagnostics, UNWRITTEN_NAME, closest_match};
use callgate::middleware::PolicyKind;

pub(super) static LINT: Lint = Lint { code: &UNWRITTEN_NAME, needs: RequiredInput::Nothing, check };

/// The operators that compare labels with literals.
const COMPARISONS: [&str; 6] = ["eq", "ne", "in", "not_in", "contains", "contains_any"];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    check_members(checked, found);
    // Each name with a policy that writes it.
    let (mut facts, mut labels) = (BTreeMap::new(), BTreeMap::new());
    for written in &checked.policies {
        match &written.policy.kind {
            PolicyKind::Fact(fact) => {
                facts.insert(fact.name.as_str(), written.id());
            }
            PolicyKind::Label(label) => {
                labels.extend(label.add.iter().map(|label| (label.as_str(), written.id())));
            }
            _ => {}
        }
    }
    let mut reported = BTreeSet::new();
    for source in collect_expressions(checked.files) {
        for (at, name) in members_read(&source, "session.facts") {
            if !facts.contains_key(name) && reported.insert(("fact", name)) {
                let (message, help) = describe("fact", name, &facts);
                let part = at..at + name.len();
                let diagnostic = source.diagnostic(checked.sources, &UNWRITTEN_NAME, part, message);
                found.push(diagnostic.with_help(help));
            }
        }
    }
    for source in collect_expressions(checked.files) {
        for (at, label) in labels_read(source.text) {
            if !labels.contains_key(label) && reported.insert(("label", label)) {
                let (message, help) = describe("label", label, &labels);
                let part = at..at + label.len();
                let diagnostic = source.diagnostic(checked.sources, &UNWRITTEN_NAME, part, message);
                found.push(diagnostic.with_help(help));
            }
        }
    }
    for test in collect_tests(checked.files).into_iter().filter(tests_labels) {
        for (node, label) in
            test.operands(&COMPARISONS).into_iter().filter_map(|node| Some((node, node.as_str()?)))
        {
            if !labels.contains_key(label) && reported.insert(("label", label)) {
                let (message, help) = describe("label", label, &labels);
                found.push(test.diagnostic(&UNWRITTEN_NAME, node.span, message).with_help(help));
            }
        }
    }
}

/// Reports members of the session that Callgate does not set.
fn check_members(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let mut reported = BTreeSet::new();
    for source in collect_expressions(checked.files) {
        for (at, name) in members_read(&source, "session") {
            if SESSION_MEMBERS.contains(&name) || !reported.insert(name) {
                continue;
            }
            let help = match closest_match(name, SESSION_MEMBERS) {
                Some(near) => format!("did you mean `session.{near}`?"),
                None => {
                    format!("the members are {}; allow this if the host sets it", SESSION_MEMBERS.join(", "))
                }
            };
            let message = format!("`{name}` is not a member of the session");
            let part = at..at + name.len();
            found.push(source.diagnostic(checked.sources, &UNWRITTEN_NAME, part, message).with_help(help));
        }
    }
}

/// The labels that a text looks for: `"untrusted" in session.labels`, `session.labels.contains("untrusted")`,
/// `$.session.labels[?@ == 'untrusted']`.
fn labels_read(text: &str) -> Vec<(usize, &str)> {
    const LABELS: &str = "session.labels";
    let of = |at: usize| {
        let before = text.get(..at)?.trim_end();
        let behind = text.get(at + LABELS.len()..)?;
        let head = before.strip_suffix("in").map(|head| head.trim_end_matches('!').trim_end());
        if let Some(head) = head.filter(|head| head.ends_with(['"', '`'])) {
            let inner = head.get(..head.len() - 1)?;
            let start = inner.rfind(['"', '`'])? + 1;
            return Some((start, inner.get(start..)?));
        }
        let open = [".contains(\"", ", \"", "[?@ == '", "[?@=='", "[?@ == \"", "[?@==\""];
        let link = open.into_iter().find(|link| behind.starts_with(link))?;
        // `contains(session.labels, "x")`
        if link == ", \"" && !before.ends_with("contains(") {
            return None;
        }
        let start = at + LABELS.len() + link.len();
        let label = text.get(start..)?.split(['"', '\'']).next()?;
        Some((start, label))
    };
    text.match_indices(LABELS).filter_map(|(at, _)| of(at)).collect()
}

fn tests_labels(test: &TestNode<'_>) -> bool {
    ["$.session.labels", "$.session.labels[*]", "session.labels"].contains(&test.subject())
}

/// Returns the message and the help for a name that no policy writes.
fn describe(what: &str, name: &str, written: &BTreeMap<&str, &str>) -> (String, String) {
    let help = match (closest_match(name, written.keys().copied()), what) {
        (Some(near), _) => {
            let by = written.get(near).copied().unwrap_or_default();
            format!("did you mean `{near}`, which `{by}` writes?")
        }
        (None, "fact") => {
            format!("add a policy with `fact: {{ name: {name} }}`, or allow this if the host sets it")
        }
        (None, _) => {
            format!("add a policy with `label: {{ add: [{name}] }}`, or allow this if the host sets it")
        }
    };
    (format!("no policy writes the {what} `{name}`"), help)
}

/// The members of an object that a text names: `session.facts.order`, `$.session.facts['order']`. Those of scripts and templates included.
fn members_read<'a>(source: &ExpressionSource<'a>, object: &str) -> Vec<(usize, &'a str)> {
    let text = source.text;
    let is_root = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        let before = before.strip_suffix("$.").unwrap_or(before);
        !before.ends_with(|character: char| character.is_alphanumeric() || "_.?$".contains(character))
    };
    let starts = text.match_indices(object).map(|(at, _)| at).filter(is_root);
    let ends = starts.map(|at| at + object.len());
    let name_at = |end: usize| {
        let rest = text.get(end..)?;
        let link = ["?.", ".", "[\"", "['"].into_iter().find(|link| rest.starts_with(link))?;
        let start = end + link.len();
        let rest = text.get(start..)?;
        let name = match link {
            "[\"" => rest.split('"').next()?,
            "['" => rest.split('\'').next()?,
            _ => leading_name(rest),
        };
        // A method of the object, as in `session.facts.keys()`, is not a fact.
        let is_call = source.kind != SourceKind::Path && rest.get(name.len()..)?.starts_with('(');
        (!name.is_empty() && !is_call).then_some((start, name))
    };
    ends.filter_map(name_at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_in_paths_and_expressions() {
        for (text, label) in [
            ("\"a\" in session.labels", Some("a")),
            ("\"a\" !in session.labels", Some("a")),
            ("!session.labels.contains(\"a b\")", Some("a b")),
            ("contains(session.labels, \"a\")", Some("a")),
            ("$.session.labels[?@ == 'a']", Some("a")),
            ("input.a in session.labels", None),
            ("len(session.labels) > 1", None),
        ] {
            assert_eq!(labels_read(text).first().map(|(_, label)| *label), label, "{text}");
        }
    }

    #[test]
    fn facts_are_found_in_paths_and_expressions() {
        for (text, names) in [
            ("session.facts.order[input.id].status", &["order"][..]),
            ("session.facts[\"my order\"] ?? session.facts?.b", &["my order", "b"]),
            ("$.session.facts['a'][?@.b == 1]", &["a"]),
            ("session.facts.keys()", &[]),
            ("session.facts[input.name]", &[]),
            ("context.session.facts.a + my_session.facts.b", &[]),
        ] {
            let built = callgate::policy::build_texts([(
                "rules.yaml",
                callgate::json::json!({ "let": { "a": text } }).to_string().as_str(),
            )]);
            let sources = collect_expressions(&built.files);
            let found: Vec<&str> = sources
                .iter()
                .flat_map(|source| members_read(source, "session.facts"))
                .map(|(_, name)| name)
                .collect();
            assert_eq!(found, names, "{text}");
        }
    }
}
