//! Lint context: the bundle that is linted, the known tools and the policy tests, with lookups over them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::lint_inputs::{LintInputs, RequiredInput};
use crate::policy_source::{PolicySource, PolicySourceReader};
use callgate::diagnostic::{SourceId, SourceMap};
use callgate::matcher::NamePattern;
use callgate::middleware::PolicyKind;
use callgate::policy::{CompiledPolicies, LoadedBundle};
use callgate::seal::Keys;
use callgate::source::{LoadedFile, YamlNode};
use callgate::tools::{ToolDescriptor, ToolSet};
use callgate_policy_tests::LoadedSuite;

/// A list of known tools.
type ToolList<'a> = Rc<[&'a ToolDescriptor]>;

/// The bundle that is linted, with the known tools and the policy tests.
pub(super) struct LintContext<'a> {
    /// The policies that are not off, in evaluation order.
    pub(super) policies: Vec<PolicySource<'a>>,
    /// For each policy index of `compiled`, the index in `policies`.
    policy_positions: HashMap<u32, usize>,
    pub(super) compiled: &'a Arc<CompiledPolicies>,
    pub(super) files: &'a [LoadedFile],
    pub(super) sources: &'a SourceMap,
    /// The known tools.
    pub(super) tools: &'a [ToolDescriptor],
    tools_are_known: bool,
    tools_by_name: HashMap<&'a str, Vec<&'a ToolDescriptor>>,
    /// Cache of the tools that match a pattern, by whether it is an exact name, and by its text.
    matching_tools_cache: RefCell<HashMap<(bool, String), ToolList<'a>>>,
    tool_set: OnceCell<ToolSet>,
    keys: OnceCell<Option<Keys>>,
    pub(super) tests: Option<&'a LoadedSuite>,
}

impl<'a> LintContext<'a> {
    pub(super) fn new(
        compiled: &'a Arc<CompiledPolicies>,
        built: &'a LoadedBundle,
        beside: &LintInputs<'a>,
    ) -> Self {
        let nodes = built
            .files
            .iter()
            .flat_map(|file| file.root.get("policies").and_then(YamlNode::items).unwrap_or_default());
        let by_span: HashMap<_, &YamlNode> = nodes.map(|node| (node.span, node)).collect();
        let mut writing = PolicySourceReader::new(compiled.defaults(), &built.files);
        let (mut policies, mut policy_positions) = (Vec::new(), HashMap::new());
        for (index, policy) in (0u32..).zip(compiled.policies()) {
            let written = by_span.get(&policy.span).and_then(|node| writing.read_policy(policy, index, node));
            if let Some(written) = written {
                policy_positions.insert(index, policies.len());
                policies.push(written);
            }
        }
        let tools = beside.tools.unwrap_or_default();
        let mut tools_by_name: HashMap<&str, Vec<&ToolDescriptor>> = HashMap::new();
        for tool in tools {
            tools_by_name.entry(&tool.name).or_default().push(tool);
        }
        Self {
            policies,
            policy_positions,
            compiled,
            files: &built.files,
            sources: &built.sources,
            tools,
            tools_are_known: beside.tools.is_some(),
            tools_by_name,
            matching_tools_cache: RefCell::default(),
            tool_set: OnceCell::new(),
            keys: OnceCell::new(),
            tests: beside.tests,
        }
    }

    pub(super) fn has_input(&self, needs: RequiredInput) -> bool {
        match needs {
            RequiredInput::Nothing => true,
            RequiredInput::Tools => self.tools_are_known,
            RequiredInput::Tests => self.tests.is_some_and(|tests| !tests.suite.is_empty()),
        }
    }

    /// The enforced policies, in evaluation order.
    pub(super) fn enforced_policies(&self) -> impl Iterator<Item = &PolicySource<'a>> {
        self.policies.iter().filter(|written| written.is_enforced())
    }

    /// The policies whose tool patterns match this name, in evaluation order.
    pub(super) fn policies_matching_tool(&self, tool: &str) -> impl Iterator<Item = &PolicySource<'a>> {
        let indices = self.compiled.matching_tool(tool).into_iter();
        indices.filter_map(|index| self.policies.get(*self.policy_positions.get(&index)?))
    }

    /// Returns the policies that may apply to the same calls, by their tool patterns: for exact names the policies that match one of
    /// them, for patterns those with the same pattern or for every tool.
    pub(super) fn related_policies<'s>(&'s self, written: &PolicySource<'a>) -> Vec<&'s PolicySource<'a>> {
        let mut found: Vec<&PolicySource<'a>> = Vec::new();
        for pattern in &written.policy.matcher.tools {
            found.extend(self.policies_matching_tool(pattern.text()));
        }
        if found.is_empty() {
            found.extend(self.policies_matching_tool(""));
        }
        found.sort_by_key(|other| other.index);
        found.dedup_by_key(|other| other.index);
        found
    }

    /// Returns random keys for example calls. Returns `None` if the operating system returns no random bytes.
    pub(super) fn keys(&self) -> Option<&Keys> {
        self.keys.get_or_init(|| Keys::random().ok()).as_ref()
    }

    /// Returns the known tools with their schemas, which are compiled on the first call.
    pub(super) fn tool_set(&self) -> &ToolSet {
        self.tool_set.get_or_init(|| ToolSet::new(self.tools.iter().cloned()))
    }

    /// Returns the known tools that a policy applies to.
    pub(super) fn tools_for(&self, written: &PolicySource<'_>) -> Vec<&'a ToolDescriptor> {
        let matcher = &written.policy.matcher;
        let mut tools: Vec<&ToolDescriptor> = match matcher.tools.as_slice() {
            [] => self.tools.iter().collect(),
            [pattern] => self.matching_tools(pattern).to_vec(),
            patterns => patterns.iter().flat_map(|pattern| self.matching_tools(pattern).to_vec()).collect(),
        };
        // A tool without a server belongs to calls of every server.
        tools.retain(|tool| {
            tool.server.as_deref().is_none_or(|server| matcher.matches_tool(server, &tool.name))
        });
        tools
    }

    /// Returns the known tools whose names match a pattern. The result is cached.
    pub(super) fn matching_tools(&self, pattern: &NamePattern) -> ToolList<'a> {
        let key = (pattern.as_regex().is_some(), pattern.text().to_owned());
        if let Some(known) = self.matching_tools_cache.borrow().get(&key) {
            return Rc::clone(known);
        }
        let fitting: ToolList<'a> = match pattern {
            NamePattern::Exact(name) => {
                self.tools_by_name.get(name.as_str()).into_iter().flatten().copied().collect()
            }
            _ => self.tools.iter().filter(|tool| pattern.matches(&tool.name)).collect(),
        };
        self.matching_tools_cache.borrow_mut().insert(key, Rc::clone(&fitting));
        fitting
    }

    /// Returns the text of a file.
    pub(super) fn text(&self, source: SourceId) -> &'a str {
        self.sources.get(source).map_or("", |source| source.text())
    }

    /// Whether a policy changes arguments before the call is evaluated.
    pub(super) fn changes_input(written: &PolicySource<'_>) -> bool {
        matches!(&written.policy.kind, PolicyKind::Transform(transform) if !transform.input.is_empty())
    }
}
