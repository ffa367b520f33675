//! Tests in a policy's conditions: collects them with their source nodes and their logical context (`all`, `any`, `not`).

use std::collections::HashMap;
use std::sync::Arc;

use callgate::call::Root;
use callgate::matcher::{EXPR_KEY, OPTION_KEYS};
use callgate::path::{Path, PathStep};
use callgate::source::{MappingEntry, YamlNode};

/// How a test applies to several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EachMode {
    Any,
    Every,
    None,
}

/// What a test reads.
enum TestSubject<'a> {
    /// A path, or an expression that only reads a member of the call: `input.amount` is `$.input.amount`.
    Path(Arc<Path>),
    /// Any other expression.
    Expression(&'a str),
}

/// A test as written.
pub(super) struct TestSource<'a> {
    pub(super) node: &'a YamlNode,
    /// The node of its path or expression.
    pub(super) subject_node: &'a YamlNode,
    subject: TestSubject<'a>,
    pub(super) each: EachMode,
    /// Whether the test is under an even number of `not`s, or none.
    pub(super) positive: bool,
    /// Whether the policy can only match if the test holds.
    pub(super) required: bool,
    /// Whether an absent value counts as matching.
    pub(super) absence_counts: bool,
    /// The scope: the conditions that must hold together with it.
    pub(super) scope: usize,
}

impl<'a> TestSource<'a> {
    /// The path or expression.
    pub(super) fn text(&self) -> &str {
        match &self.subject {
            TestSubject::Path(path) => path.text(),
            TestSubject::Expression(text) => text,
        }
    }

    /// The path. Returns `None` for an expression that computes something.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.subject {
            TestSubject::Path(path) => Some(path),
            TestSubject::Expression(_) => None,
        }
    }

    /// The steps of the path, if it is singular.
    pub(super) fn steps(&self) -> Option<&[PathStep]> {
        self.path()?.steps()
    }

    /// The member of the call that the path begins with.
    pub(super) fn root(&self) -> Option<Root> {
        self.path().map(Path::root)
    }

    /// Whether there is at most one value.
    pub(super) fn is_singular(&self) -> bool {
        self.path().is_none_or(Path::is_singular)
    }

    /// The operators with their operands, without `exists`.
    pub(super) fn operators(&self) -> impl Iterator<Item = &'a MappingEntry> + use<'a> {
        let entries = self.node.entries().unwrap_or_default().iter();
        let others = ["path", EXPR_KEY, "exists"];
        entries.filter(move |entry| {
            let key = entry.key.as_str();
            !others.contains(&key) && !OPTION_KEYS.contains(&key)
        })
    }

    /// Whether its operators make different strings equal, so that no conclusion can be drawn from comparing literals.
    pub(super) fn is_folded(&self) -> bool {
        self.node.get("ignore_case").is_some() || self.node.get("confusables").is_some()
    }

    /// Whether another test has the same options, except for those about several and absent values.
    pub(super) fn has_options_of(&self, other: &Self) -> bool {
        let options = OPTION_KEYS.iter().filter(|key| !["each", "absent"].contains(key));
        let value = |test: &Self, key: &str| test.node.get(key).map(YamlNode::to_json);
        options.into_iter().all(|key| value(self, key) == value(other, key))
    }

    pub(super) fn operator(&self, key: &str) -> Option<&'a MappingEntry> {
        self.node.entries()?.iter().find(|entry| entry.key == key)
    }

    pub(super) fn exists(&self) -> Option<bool> {
        self.node.get("exists").and_then(YamlNode::as_bool)
    }
}

/// The tree of scopes. Conditions of one scope must hold together.
#[derive(Default)]
pub(super) struct ScopeTree {
    parents: Vec<Option<usize>>,
}

impl ScopeTree {
    fn add(&mut self, parent: Option<usize>) -> usize {
        self.parents.push(parent);
        self.parents.len() - 1
    }

    /// Whether the conditions in `outer` must hold whenever those in `inner` do.
    pub(super) fn implies(&self, inner: usize, outer: usize) -> bool {
        let mut at = Some(inner);
        while let Some(scope) = at {
            if scope == outer {
                return true;
            }
            at = self.parents.get(scope).copied().flatten();
        }
        false
    }
}

/// The conditions and tests of one policy.
pub(super) struct ConditionSources<'a, 'd> {
    pub(super) required_conditions: Vec<&'a YamlNode>,
    pub(super) tests: Vec<TestSource<'a>>,
    pub(super) scopes: ScopeTree,
    rules: AbsenceRules,
    definitions: &'d LetDefinitions<'a>,
    /// How many conditions of named values are still collected.
    remaining: usize,
}

/// What an absent value means for a policy.
#[derive(Clone, Copy)]
pub(super) struct AbsenceRules {
    /// The policy restricts.
    pub(super) restricts: bool,
    /// By default an absent value counts as matching.
    pub(super) absence_counts: bool,
}

/// The definitions of named values, by name.
pub(super) type LetDefinitions<'a> = HashMap<&'a str, &'a YamlNode>;

/// The maximum number of conditions of named values that are collected for a policy: they may name each other many times.
const MAX_NAMED_CONDITIONS: usize = 1_000;

/// The logical context of a condition.
#[derive(Clone, Copy)]
struct LogicalContext {
    scope: usize,
    positive: bool,
    required: bool,
    /// The condition is the definition of a named value.
    in_definition: bool,
}

impl<'a, 'd> ConditionSources<'a, 'd> {
    pub(super) fn new(rules: AbsenceRules, definitions: &'d LetDefinitions<'a>) -> Self {
        Self {
            required_conditions: Vec::new(),
            tests: Vec::new(),
            scopes: ScopeTree::default(),
            rules,
            definitions,
            remaining: MAX_NAMED_CONDITIONS,
        }
    }

    /// Reads `where`.
    pub(super) fn collect(
        &mut self,
        conditions: &'a YamlNode,
        mut path: impl FnMut(&str) -> Option<Arc<Path>>,
    ) {
        let scope = self.scopes.add(None);
        let context = LogicalContext { scope, positive: true, required: true, in_definition: false };
        for condition in conditions.items().unwrap_or(std::slice::from_ref(conditions)) {
            self.collect_condition(condition, context, &mut path);
        }
    }

    fn collect_condition(
        &mut self,
        node: &'a YamlNode,
        context: LogicalContext,
        path: &mut impl FnMut(&str) -> Option<Arc<Path>>,
    ) {
        let items = |key| node.get(key).and_then(YamlNode::items);
        if let Some(all) = items("all") {
            for item in all {
                self.collect_condition(item, context, path);
            }
            return;
        }
        if context.required && context.positive && !context.in_definition {
            self.required_conditions.push(node);
        }
        if let Some(definition) = node.as_str().and_then(|name| self.definitions.get(name.trim())) {
            return self.collect_definition(definition, context, path);
        }
        if let Some(any) = items("any") {
            for item in any {
                let scope = self.scopes.add(Some(context.scope));
                let required = context.required && any.len() == 1;
                self.collect_condition(item, LogicalContext { scope, required, ..context }, path);
            }
        } else if let Some(inner) = node.get("not") {
            let scope = self.scopes.add(None);
            let context = LogicalContext { scope, positive: !context.positive, required: false, ..context };
            self.collect_condition(inner, context, path);
        } else if let Some((subject_node, subject)) = read_subject(node, path) {
            let each = match node.get("each").and_then(YamlNode::as_str) {
                Some("every") => EachMode::Every,
                Some("none") => EachMode::None,
                _ => EachMode::Any,
            };
            let absence_counts = match node.get("absent").and_then(YamlNode::as_str) {
                // Open named values never permit.
                Some(word) => word == "match" && (self.rules.restricts || !context.in_definition),
                None => self.rules.absence_counts,
            };
            let LogicalContext { scope, positive, required, .. } = context;
            self.tests.push(TestSource {
                node,
                subject_node,
                subject,
                each,
                positive,
                required,
                absence_counts,
                scope,
            });
        }
    }

    /// Collects the tests of a named value that is a condition. Definitions that are expressions have none.
    fn collect_definition(
        &mut self,
        definition: &'a YamlNode,
        context: LogicalContext,
        path: &mut impl FnMut(&str) -> Option<Arc<Path>>,
    ) {
        let context = LogicalContext { in_definition: true, ..context };
        for condition in definition.items().unwrap_or(std::slice::from_ref(definition)) {
            let Some(remaining) = self.remaining.checked_sub(1) else { return };
            self.remaining = remaining;
            self.collect_condition(condition, context, path);
        }
    }
}

/// Reads the path or expression of a test. Returns `None` for a condition without operators, as an expression alone.
fn read_subject<'a>(
    node: &'a YamlNode,
    path: &mut impl FnMut(&str) -> Option<Arc<Path>>,
) -> Option<(&'a YamlNode, TestSubject<'a>)> {
    if let Some(subject) = node.get("path") {
        return Some((subject, TestSubject::Path(path(subject.as_str()?)?)));
    }
    let subject = node.get(EXPR_KEY).filter(|_| node.entries().is_some_and(|entries| entries.len() > 1))?;
    let text = subject.as_str()?;
    let read = member_path(text).and_then(|text| path(&text)).map(TestSubject::Path);
    Some((subject, read.unwrap_or(TestSubject::Expression(text))))
}

/// Returns the path of an expression that only reads a member of the call: `input.order.id` is `$.input.order.id`.
pub(super) fn member_path(expression: &str) -> Option<String> {
    let names: Vec<&str> = expression.trim().split('.').collect();
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_member = names.first().is_some_and(|root| Root::from_name(root).is_some());
    (is_member && names.iter().all(is_name)).then(|| format!("$.{}", names.join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_read_a_member_are_paths() {
        for (expression, path) in [
            ("input.order.id", Some("$.input.order.id")),
            (" tool ", Some("$.tool")),
            ("order.id", None),
            ("input.a + 1", None),
            ("input[\"a\"]", None),
            ("input.?a", None),
            ("input..a", None),
        ] {
            assert_eq!(member_path(expression).as_deref(), path, "{expression}");
        }
    }
}
