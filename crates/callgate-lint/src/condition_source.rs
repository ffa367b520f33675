//! Tests in a policy's conditions: collects them with their source nodes and their logical context (`all`, `any`, `not`).

use std::sync::Arc;

use callgate::path::Path;
use callgate::source::{MappingEntry, YamlNode};

/// How a test applies to several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EachMode {
    Any,
    Every,
    None,
}

/// A test as written.
pub(super) struct TestSource<'a> {
    pub(super) node: &'a YamlNode,
    /// The node of its path.
    pub(super) path_node: &'a YamlNode,
    pub(super) path: Arc<Path>,
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
    /// The operators with their operands, without `exists`.
    pub(super) fn operators(&self) -> impl Iterator<Item = &'a MappingEntry> + use<'a> {
        let entries = self.node.entries().unwrap_or_default().iter();
        entries.filter(|entry| !["path", "each", "absent", "base", "exists"].contains(&entry.key.as_str()))
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
pub(super) struct ConditionSources<'a> {
    pub(super) required_conditions: Vec<&'a YamlNode>,
    pub(super) tests: Vec<TestSource<'a>>,
    pub(super) scopes: ScopeTree,
    absence_counts: bool,
}

/// The logical context of a condition.
#[derive(Clone, Copy)]
struct LogicalContext {
    scope: usize,
    positive: bool,
    required: bool,
}

impl<'a> ConditionSources<'a> {
    pub(super) fn new(absence_counts: bool) -> Self {
        Self {
            required_conditions: Vec::new(),
            tests: Vec::new(),
            scopes: ScopeTree::default(),
            absence_counts,
        }
    }

    /// Reads `where`.
    pub(super) fn collect(
        &mut self,
        conditions: &'a YamlNode,
        mut path: impl FnMut(&'a str) -> Option<Arc<Path>>,
    ) {
        let scope = self.scopes.add(None);
        let context = LogicalContext { scope, positive: true, required: true };
        for condition in conditions.items().unwrap_or(std::slice::from_ref(conditions)) {
            self.collect_condition(condition, context, &mut path);
        }
    }

    fn collect_condition(
        &mut self,
        node: &'a YamlNode,
        context: LogicalContext,
        path: &mut impl FnMut(&'a str) -> Option<Arc<Path>>,
    ) {
        let items = |key| node.get(key).and_then(YamlNode::items);
        if let Some(all) = items("all") {
            for item in all {
                self.collect_condition(item, context, path);
            }
            return;
        }
        if context.required && context.positive {
            self.required_conditions.push(node);
        }
        if let Some(any) = items("any") {
            for item in any {
                let scope = self.scopes.add(Some(context.scope));
                let required = context.required && any.len() == 1;
                self.collect_condition(item, LogicalContext { scope, required, ..context }, path);
            }
        } else if let Some(inner) = node.get("not") {
            let scope = self.scopes.add(None);
            let context = LogicalContext { scope, positive: !context.positive, required: false };
            self.collect_condition(inner, context, path);
        } else if let Some(path_node) = node.get("path") {
            let Some(path) = path_node.as_str().and_then(path) else { return };
            let each = match node.get("each").and_then(YamlNode::as_str) {
                Some("every") => EachMode::Every,
                Some("none") => EachMode::None,
                _ => EachMode::Any,
            };
            let absence_counts = match node.get("absent").and_then(YamlNode::as_str) {
                Some(word) => word == "match",
                None => self.absence_counts,
            };
            let LogicalContext { scope, positive, required } = context;
            self.tests.push(TestSource {
                node,
                path_node,
                path,
                each,
                positive,
                required,
                absence_counts,
                scope,
            });
        }
    }
}
