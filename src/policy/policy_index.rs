//! Policy index: compiles a [`Plan`] into [`CompiledPolicies`], which are immutable and find the policies of a call by its tool.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use regex::{RegexSet, RegexSetBuilder};

use super::compiled_files::CompiledFiles;
use super::gate_index::GateIndex;
use super::scalar_conditions::ScalarConditions;
use super::tool_policies::ToolPolicies;
use super::tool_policy_cache::{SharedToolPolicies, ToolPolicyCache};
use super::{Defaults, Mode, Plan, Policy, ReloadSettings, Unmatched};
use crate::call::{ContextReads, Phase, method_name, qualified_method};
use crate::middleware::PolicyKind;
use crate::path::ArgumentNames;
use crate::script::Names;
use crate::tool_result::ResultFormats;
use crate::tools::ToolDescriptor;

/// A RegexSet whose DFA outgrows its limit becomes a thousand times slower, so the limit is high.
const DFA_SIZE_LIMIT: usize = 64 << 20;
/// The length of all patterns of a RegexSet together; building the set takes a hundred times as much memory.
const MAX_REGEX_SET_BYTES: usize = 512 << 10;

/// All policies of a bundle, compiled. Immutable except for the cache of tool names.
#[derive(Debug)]
pub struct CompiledPolicies {
    policies: Box<[Arc<Policy>]>,
    disabled_ids: Vec<String>,
    defaults: Defaults,
    reload_settings: ReloadSettings,
    revision: String,
    names: Arc<Names>,
    results: ResultFormats,
    tools: Vec<ToolDescriptor>,
    by_exact_name: HashMap<String, Vec<u32>>,
    patterns: RegexSet,
    /// For each pattern of the set, the indices of the policies with that pattern.
    by_pattern: Vec<Vec<u32>>,
    for_all_tools: Vec<u32>,
    caches: Vec<u32>,
    /// Policies act when a call starts, on some tool.
    acts_at_start: bool,
    run_policies: Vec<u32>,
    scalar_conditions: ScalarConditions,
    tool_cache: ToolPolicyCache,
    shared_tools: SharedToolPolicies,
    files: CompiledFiles,
}

impl CompiledPolicies {
    /// Indexes a plan. If `known_patterns` are those of the tools of its policies, they are not compiled again.
    #[doc(hidden)]
    pub fn compile(plan: Plan, known_patterns: &RegexSet) -> Self {
        let Plan {
            policies,
            disabled_ids,
            defaults,
            reload: reload_settings,
            revision,
            names,
            results,
            tools,
            files,
        } = plan;
        let mut by_exact_name: HashMap<String, Vec<u32>> = HashMap::new();
        let mut by_pattern: Vec<(String, Vec<u32>)> = Vec::new();
        let mut pattern_positions: HashMap<String, usize> = HashMap::new();
        let mut for_all_tools = Vec::new();
        let mut caches = Vec::new();
        let mut acts_at_start = false;
        let mut run_policies = Vec::new();
        for (index, policy) in (0u32..).zip(&policies) {
            if policy.matcher.tools.is_empty() {
                for_all_tools.push(index);
            }
            if let PolicyKind::Cache(_) = policy.kind {
                caches.push(index);
            }
            acts_at_start |=
                matches!(policy.kind, PolicyKind::Fact(_)) && policy.kind.is_active_in(Phase::Execute);
            if policy.applies_to_run {
                run_policies.push(index);
            }
            for pattern in &policy.matcher.tools {
                match pattern.as_regex() {
                    None => match by_exact_name.get_mut(pattern.text()) {
                        Some(indices) => indices.push(index),
                        None => drop(by_exact_name.insert(pattern.text().to_owned(), vec![index])),
                    },
                    Some(regex) => {
                        let position = *pattern_positions.entry(regex).or_insert_with_key(|regex| {
                            by_pattern.push((regex.clone(), Vec::new()));
                            by_pattern.len() - 1
                        });
                        if let Some((_, indices)) = by_pattern.get_mut(position) {
                            indices.push(index);
                        }
                    }
                }
            }
        }
        let (regexes, by_pattern): (Vec<String>, Vec<Vec<u32>>) = by_pattern.into_iter().unzip();
        let length: usize = regexes.iter().map(String::len).sum();
        let regexes_of_set = if length > MAX_REGEX_SET_BYTES { &[][..] } else { &regexes };
        let set = if known_patterns.patterns() == regexes_of_set {
            Ok(known_patterns.clone())
        } else {
            RegexSetBuilder::new(regexes_of_set)
                .size_limit(DFA_SIZE_LIMIT)
                .dfa_size_limit(DFA_SIZE_LIMIT)
                .build()
        };
        // If the set is too large, every policy with a pattern is a candidate for every tool, and its pattern is matched separately.
        let (patterns, by_pattern) = match set {
            Ok(set) if length <= MAX_REGEX_SET_BYTES => (set, by_pattern),
            _ => {
                for_all_tools.extend(by_pattern.into_iter().flatten());
                (RegexSet::empty(), Vec::new())
            }
        };
        Self {
            scalar_conditions: ScalarConditions::new(&policies),
            policies: policies.into_boxed_slice(),
            disabled_ids,
            defaults,
            reload_settings,
            revision: revision.to_string(),
            names,
            results,
            tools,
            by_exact_name,
            patterns,
            by_pattern,
            for_all_tools,
            caches,
            acts_at_start,
            run_policies,
            tool_cache: ToolPolicyCache::default(),
            shared_tools: SharedToolPolicies::default(),
            files,
        }
    }

    pub(super) fn shared_names(&self) -> &Arc<Names> {
        &self.names
    }

    /// The names that the bundle defines, for layers that use them.
    #[doc(hidden)]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// How the texts that tools return are read.
    #[doc(hidden)]
    pub fn results(&self) -> &ResultFormats {
        &self.results
    }

    /// The tools that the bundle declares under `tools`.
    pub fn tools(&self) -> &[ToolDescriptor] {
        &self.tools
    }

    /// The policies, in evaluation order.
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// The patterns of tools that are no exact names.
    pub(super) fn patterns(&self) -> &RegexSet {
        &self.patterns
    }

    /// The rules files of the policies.
    pub(super) fn files(&self) -> &CompiledFiles {
        &self.files
    }

    /// Returns a policy by its index in [`policies`](Self::policies).
    #[doc(hidden)]
    pub fn policy(&self, index: u32) -> Option<&Policy> {
        self.policies.get(index as usize).map(Arc::as_ref)
    }

    /// The conditions of the policies as tests of scalars.
    #[doc(hidden)]
    pub fn scalar_conditions(&self) -> &ScalarConditions {
        &self.scalar_conditions
    }

    /// The policies that apply to the run instead of to single calls, in evaluation order.
    #[doc(hidden)]
    pub fn run_policies(&self) -> &[u32] {
        &self.run_policies
    }

    /// The bundle's defaults.
    #[doc(hidden)]
    pub fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// The ids of the policies with `mode: off`, which [`policies`](Self::policies) leaves out.
    pub fn disabled_ids(&self) -> &[String] {
        &self.disabled_ids
    }

    /// The conditions that changed rules must meet before they replace these.
    pub fn reload_settings(&self) -> ReloadSettings {
        self.reload_settings
    }

    /// The digest of the rules, in hexadecimal.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Whether calls can invalidate caches.
    pub(crate) fn has_caches(&self) -> bool {
        !self.caches.is_empty()
    }

    /// Whether policies act when a call starts.
    pub(crate) fn acts_at_start(&self) -> bool {
        self.acts_at_start
    }

    /// Returns the policies for a tool of a server. `server` is empty for a call without a server.
    #[doc(hidden)]
    pub fn tool_policies(&self, server: &str, tool: &str) -> Arc<ToolPolicies> {
        self.tool_cache.get_or_build(server, tool, || self.build_tool_policies(server, tool))
    }

    /// Fills the cache with the tools that were called under other chains, so that no call waits for that after a reload.
    pub(crate) fn prewarm_from(&self, others: &Self) {
        others.tool_cache.for_each_name(|server, tool| {
            self.tool_policies(server, tool);
        });
    }

    /// Returns the policies whose tool and server patterns match, in evaluation order. `server` is empty for a call without a server.
    #[doc(hidden)]
    pub fn matching_call(&self, server: &str, tool: &str) -> Vec<u32> {
        let mut indices = self.matching_tool(tool);
        indices.retain(|index| {
            self.policy(*index).is_some_and(|policy| policy.matcher.matches_tool(server, tool))
        });
        indices
    }

    /// Returns the policies whose tool patterns match, for any server.
    #[doc(hidden)]
    pub fn matching_tool(&self, tool: &str) -> Vec<u32> {
        let exact = self.by_exact_name.get(tool).into_iter().flatten();
        let matching = self.patterns.matches(tool);
        let patterned = matching.iter().filter_map(|position| self.by_pattern.get(position)).flatten();
        let mut indices: Vec<u32> = exact.chain(patterned).chain(&self.for_all_tools).copied().collect();
        indices.retain(|index| self.policy(*index).is_some_and(|policy| policy.matcher.is_for(tool)));
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    /// Whether policies can decide requests by a method to or from a server.
    #[doc(hidden)]
    pub fn concerns_method(&self, server: &str, method: &str) -> bool {
        self.defaults.unmatched_methods != Unmatched::Allow
            || !self.matching_call(server, &qualified_method(method)).is_empty()
    }

    pub(super) fn build_tool_policies(&self, server: &str, tool: &str) -> Arc<ToolPolicies> {
        let (indices, invalidates) = (self.matching_call(server, tool), self.invalidated_caches(tool));
        // No index is the separator.
        let content = indices.iter().copied().chain([u32::MAX]).chain(invalidates.iter().copied()).collect();
        self.shared_tools.get_or_build(content, || self.tool_policies_of(indices, invalidates))
    }

    fn tool_policies_of(&self, indices: Vec<u32>, invalidates: Vec<u32>) -> ToolPolicies {
        let in_phase = |phase| {
            let acts =
                |index: &u32| self.policy(*index).is_some_and(|policy| policy.kind.is_active_in(phase));
            indices.iter().copied().filter(acts).collect::<Vec<u32>>()
        };
        let (mut argument_reads, mut template_arguments) =
            (ArgumentNames::default(), ArgumentNames::default());
        for policy in indices.iter().filter_map(|index| self.policy(*index)) {
            if policy.mode == Mode::Enforce {
                argument_reads.merge(&policy.argument_reads);
                template_arguments.merge(&policy.template_arguments);
            }
        }
        let is_fact =
            |index: &u32| matches!(self.policy(*index).map(|policy| &policy.kind), Some(PolicyKind::Fact(_)));
        let (start, mut execute): (Vec<u32>, Vec<u32>) =
            in_phase(Phase::Execute).into_iter().partition(is_fact);
        execute.sort_by_key(|index| {
            self.policy(*index).map(|policy| (Reverse(policy.priority), policy.kind.wrapper_order(), *index))
        });
        let (name_filter, gate) = (argument_reads.filter(), in_phase(Phase::Gate));
        let reads_members = |index: &u32| {
            self.scalar_conditions.reads_only_members(*index, |name| name_filter.concerns(name))
        };
        let is_effect_of_members = name_filter.is_by_name() && gate.iter().all(reads_members);
        ToolPolicies {
            normalise: in_phase(Phase::Normalise).into(),
            gate: GateIndex::build(gate, &self.policies),
            execute: execute.into(),
            start: start.into(),
            settle: in_phase(Phase::Settle).into(),
            invalidates: invalidates.into(),
            context_reads: self.context_reads(&indices),
            name_filter,
            is_effect_of_members,
            argument_reads,
            template_arguments,
        }
    }

    /// Returns the context members read by the policies that an approval is bound to.
    fn context_reads(&self, indices: &[u32]) -> ContextReads {
        let mut reads = ContextReads::default();
        for policy in
            indices.iter().filter_map(|index| self.policy(*index)).filter(|policy| policy.binds_context())
        {
            reads.extend(&policy.context_reads);
        }
        reads
    }

    /// Returns the caches that a call of this tool invalidates, whichever tools they cache.
    fn invalidated_caches(&self, tool: &str) -> Vec<u32> {
        if method_name(tool).is_some() {
            return Vec::new();
        }
        let matching = |index: &u32| {
            self.policy(*index).is_some_and(|policy| match &policy.kind {
                PolicyKind::Cache(cache) => cache.invalidate_on.iter().any(|pattern| pattern.matches(tool)),
                _ => false,
            })
        };
        self.caches.iter().copied().filter(matching).collect()
    }
}
