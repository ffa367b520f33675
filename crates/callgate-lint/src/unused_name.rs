//! Lint: named values, constants, functions and groups that no policy uses.

use std::collections::BTreeSet;

use crate::expression_source::{find_name, leading_name};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostic, Diagnostics, Span, UNUSED_NAME, closest_match};
use callgate::script::DefinitionName;
use callgate::source::{YamlNode, span_in};
use callgate_policy_tests::reached_names;

pub(super) static LINT: Lint = Lint { code: &UNUSED_NAME, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    // A file of definitions alone is checked with the bundle that uses it.
    if checked.compiled.policies().is_empty() {
        return;
    }
    let used = UsedNames::new(checked);
    for file in checked.files {
        for section in ["let", "data", "groups"] {
            let own = file.root.get(section);
            let of_defaults = file.root.get("defaults").and_then(|defaults| defaults.get(section));
            for (entries, is_default) in [(own, false), (of_defaults, true)] {
                for entry in entries.and_then(YamlNode::entries).unwrap_or_default() {
                    if !used.contains(section, &entry.key) {
                        let near =
                            closest_match(&entry.key, defaults(checked, section)).filter(|_| !is_default);
                        found.push(diagnostic(section, &entry.key, entry.key_span, near));
                    }
                }
            }
        }
        if let Some((node, text)) = file.root.get("functions").and_then(|node| Some((node, node.as_str()?))) {
            for (at, name) in declared_functions(text) {
                if !used.contains("functions", name) {
                    let span = span_in(checked.sources, node, at..at + name.len());
                    found.push(diagnostic("functions", name, span, None));
                }
            }
        }
    }
}

/// The names of the defaults that a bundle replaces or may replace.
fn defaults<'a>(checked: &LintContext<'a>, section: &str) -> impl Iterator<Item = &'a str> {
    let sections =
        checked.files.iter().filter_map(move |file| file.root.get("defaults")?.get(section)?.entries());
    sections.flatten().map(|entry| entry.key.as_str()).collect::<Vec<_>>().into_iter()
}

fn diagnostic(section: &str, name: &str, span: Span, near: Option<&str>) -> Diagnostic {
    let (what, shown) = match section {
        "let" => ("named value", name.to_owned()),
        "data" => ("constant", format!("data.{name}")),
        "groups" => ("group", format!("@{name}")),
        _ => ("function", format!("{name}()")),
    };
    let help = match near {
        Some(near) if near != name => format!("did you mean the default `{near}`?"),
        _ => "remove it, or use it in a policy".to_owned(),
    };
    Diagnostic::new(&UNUSED_NAME, span, format!("no policy uses the {what} `{shown}`")).with_help(help)
}

/// The definitions that policies use.
struct UsedNames<'a> {
    reached: BTreeSet<DefinitionName>,
    /// Texts in which names are looked up as words: functions, and policies that are off.
    texts: Vec<&'a str>,
}

impl<'a> UsedNames<'a> {
    fn new(checked: &LintContext<'a>) -> Self {
        let reached = reached_names(checked.compiled, checked.files);
        let functions = checked.files.iter().filter_map(|file| file.root.get("functions"));
        let policies = checked.files.iter().filter_map(|file| file.root.get("policies")?.items()).flatten();
        let off = policies.filter(|policy| policy.get("mode").and_then(YamlNode::as_str) == Some("off"));
        let texts = functions
            .chain(off)
            .map(|node| checked.text(node.span.source).get(node.span.start()..node.span.end()));
        Self { reached, texts: texts.flatten().collect() }
    }

    fn contains(&self, section: &str, name: &str) -> bool {
        self.reached.iter().any(|reached| reached.section() == section && reached.name() == name)
            || self.texts.iter().any(|text| {
                // The declaration of a function is not a use of it.
                find_name(text, name)
                    .any(|at| !text.get(..at).is_some_and(|before| before.trim_end().ends_with("fn")))
            })
    }
}

/// The functions that a text declares, with their positions.
fn declared_functions(text: &str) -> Vec<(usize, &str)> {
    let names = find_name(text, "fn").filter_map(|at| {
        let rest = text.get(at + 2..)?;
        let start = at + 2 + (rest.len() - rest.trim_start().len());
        let name = leading_name(text.get(start..)?);
        (!name.is_empty()).then_some((start, name))
    });
    names.collect()
}
