//! Policy source: a compiled policy with its YAML nodes, conditions and tests.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::condition_source::{self, AbsenceRules, LetDefinitions, ScopeTree, TestSource};
use callgate::diagnostic::{Code, Diagnostic, Span};
use callgate::matcher::NamePattern;
use callgate::path::Path;
use callgate::policy::{Defaults, Mode, Policy};
use callgate::rules_schema::Polarity;
use callgate::source::{LoadedFile, MappingEntry, YamlNode};

/// A compiled policy with its source.
pub(super) struct PolicySource<'a> {
    pub(super) policy: &'a Policy,
    /// Its index in evaluation order.
    pub(super) index: u32,
    pub(super) node: &'a YamlNode,
    /// The kind key with its value.
    pub(super) kind: &'a MappingEntry,
    /// The conditions that must all hold.
    pub(super) required_conditions: Vec<&'a YamlNode>,
    /// All tests in its conditions.
    pub(super) tests: Vec<TestSource<'a>>,
    pub(super) scopes: ScopeTree,
}

impl<'a> PolicySource<'a> {
    pub(super) fn is_enforced(&self) -> bool {
        self.policy.mode == Mode::Enforce
    }

    pub(super) fn id(&self) -> &'a str {
        &self.policy.id
    }

    pub(super) fn id_span(&self) -> Span {
        self.node.get("id").map_or(self.node.span, |id| id.span)
    }

    pub(super) fn polarity(&self) -> Polarity {
        self.policy.kind.definition().polarity
    }

    /// Whether a script decides whether it applies where its `match` holds.
    pub(super) fn has_script(&self) -> bool {
        self.policy.kind.script().is_some()
    }

    /// Whether the policy has one of these kinds.
    pub(super) fn has_kind(&self, kinds: &[&str]) -> bool {
        kinds.contains(&self.kind.key.as_str())
    }

    /// Returns the settings of the approvals that the policy can require.
    pub(super) fn approval_settings(&self) -> Option<&'a YamlNode> {
        match self.kind.key.as_str() {
            "approval" => Some(&self.kind.value),
            "rate_limit" => self.kind.value.get("approval"),
            _ => None,
        }
    }

    /// Whether the policy stops or suspends calls that its conditions describe.
    pub(super) fn stops_calls(&self) -> bool {
        self.has_kind(&["deny", "halt", "approval", "require"])
    }

    /// Creates a diagnostic with the policy's id.
    pub(super) fn diagnostic(
        &self,
        code: &'static Code,
        span: Span,
        message: impl Into<String>,
    ) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(code, span, message);
        diagnostic.policy = Some(self.policy.id.clone());
        diagnostic
    }

    /// Returns the nodes of its tool patterns.
    pub(super) fn tool_patterns(&self) -> Vec<(&'a NamePattern, &'a YamlNode)> {
        let Some(matcher) = self.node.get("match") else { return Vec::new() };
        let tools = if matcher.entries().is_some() { matcher.get("tool") } else { Some(matcher) };
        let nodes = tools.map(|node| node.items().unwrap_or(std::slice::from_ref(node))).unwrap_or_default();
        let compiled = &self.policy.matcher;
        let patterns = compiled.tools.iter().zip(compiled.tool_spans());
        let node_at = |span: &Span| nodes.iter().find(|node| node.span == *span);
        patterns.filter_map(|(pattern, span)| Some((pattern, node_at(span)?))).collect()
    }

    /// Returns the tests that must all hold for the policy to match.
    pub(super) fn required_tests(&self) -> impl Iterator<Item = &TestSource<'a>> {
        self.tests.iter().filter(|test| test.required)
    }
}

/// Reads the sources of policies. Each distinct path is parsed once.
pub(super) struct PolicySourceReader<'a> {
    defaults: Defaults,
    /// The definitions that count of named values.
    definitions: Rc<LetDefinitions<'a>>,
    paths: HashMap<String, Option<Arc<Path>>>,
}

impl<'a> PolicySourceReader<'a> {
    pub(super) fn new(defaults: Defaults, files: &'a [LoadedFile]) -> Self {
        let lets = |of_defaults: bool| {
            let sections = files.iter().filter_map(move |file| match of_defaults {
                true => file.root.get("defaults")?.get("let"),
                false => file.root.get("let"),
            });
            sections.filter_map(YamlNode::entries).flatten().map(|entry| (entry.key.as_str(), &entry.value))
        };
        // A definition outside `defaults` replaces one under it.
        let definitions = Rc::new(lets(true).chain(lets(false)).collect());
        Self { defaults, definitions, paths: HashMap::new() }
    }

    pub(super) fn read_policy(
        &mut self,
        policy: &'a Policy,
        index: u32,
        node: &'a YamlNode,
    ) -> Option<PolicySource<'a>> {
        let entry = policy.kind.definition();
        let kind = node.entries()?.iter().find(|candidate| candidate.key == entry.name)?;
        let conditions = node.get("match").and_then(|matcher| matcher.get("where"));
        let absence = self.defaults.absent_matches && entry.polarity == Polarity::Restricting;
        let rules =
            AbsenceRules { restricts: entry.polarity == Polarity::Restricting, absence_counts: absence };
        let definitions = Rc::clone(&self.definitions);
        let mut found = condition_source::ConditionSources::new(rules, &definitions);
        if let Some(conditions) = conditions {
            found.collect(conditions, |text| self.path(text));
        }
        let condition_source::ConditionSources { required_conditions, tests, scopes, .. } = found;
        Some(PolicySource { policy, index, node, kind, required_conditions, tests, scopes })
    }

    fn path(&mut self, text: &str) -> Option<Arc<Path>> {
        if let Some(known) = self.paths.get(text) {
            return known.clone();
        }
        let path = Path::parse(text).ok().map(Arc::new);
        self.paths.insert(text.to_owned(), path.clone());
        path
    }
}
