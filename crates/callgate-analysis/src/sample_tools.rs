//! The tools that samples for a policy call: patterns, known tools and policy tests → calls that samples start from.

use callgate::ToolCall;
use callgate::json::{Value, json};
use callgate::matcher::NamePattern;
use callgate::policy::{CompiledPolicies, Policy};
use callgate::tools::ToolDescriptor;

use crate::call_sample::{CallSample, SampleOrigin};
use crate::pattern_examples::examples_of_name;
use crate::sample_space::{SampleTool, arguments_of_schema};

/// The most tools of one policy.
const MAX_TOOLS: usize = 12;
/// The most calls of policy tests for one policy.
const MAX_TESTED: usize = 12;
/// The name of a tool that no pattern names.
const ANY_TOOL: &str = "any_tool";

/// What is known of tools beside the rules.
#[derive(Clone, Copy)]
pub(crate) struct KnownCalls<'a> {
    /// The tools.
    pub(crate) tools: &'a [ToolDescriptor],
    /// The calls of the policy tests.
    pub(crate) tested: &'a [CallSample],
}

/// Returns the calls that samples for versions of a policy start from: those of policy tests first, then tools that only one of the
/// versions applies to.
pub(crate) fn sample_tools(
    versions: &[(&Policy, &CompiledPolicies)],
    known: KnownCalls<'_>,
) -> Vec<SampleTool> {
    let applies = |sample: &CallSample| {
        let server = sample.call.server.as_deref().unwrap_or("");
        versions.iter().filter(|(policy, _)| policy.matcher.matches_tool(server, &sample.call.tool)).count()
    };
    let mut bases: Vec<CallSample> = Vec::new();
    for (policy, policies) in versions {
        let matcher = &policy.matcher;
        let groups = policy.definitions.iter().filter_map(|(name, _)| policies.names().group(name.name()));
        let patterns: Vec<&NamePattern> = matcher.tools.iter().chain(groups.flatten()).collect();
        let is_named = |tool: &&ToolDescriptor| {
            patterns.is_empty() && !matcher.is_for_methods
                || patterns.iter().any(|pattern| pattern.matches(&tool.name))
        };
        let of_list =
            known.tools.iter().filter(is_named).map(|tool| (tool.name.clone(), tool.server.clone()));
        let of_patterns =
            patterns.iter().flat_map(|pattern| examples_of_name(pattern)).map(|name| (name, None));
        let any = patterns.is_empty().then(|| (ANY_TOOL.to_owned(), None));
        for (name, server) in of_list.chain(of_patterns).chain(any).take(MAX_TOOLS) {
            let servers = matcher.servers.iter().flat_map(examples_of_name).map(Some);
            for server in servers.chain([server]) {
                let call =
                    ToolCall { server, ..ToolCall::recorded("sample", &name, arguments(&name, known.tools)) };
                let base = CallSample::new(call, SampleOrigin::Generated);
                if !bases.contains(&base) {
                    bases.push(base);
                }
            }
        }
    }
    // One version alone, then both, then none.
    bases.sort_by_key(|base| match applies(base) {
        0 => 2,
        count if count < versions.len() => 0,
        _ => 1,
    });
    bases.truncate(MAX_TOOLS);
    let tested = known.tested.iter().filter(|sample| applies(sample) > 0).take(MAX_TESTED);
    let tested = tested.map(|base| SampleTool { base: base.clone(), is_tested: true });
    tested.chain(bases.into_iter().map(|base| SampleTool { base, is_tested: false })).collect()
}

fn arguments(name: &str, known: &[ToolDescriptor]) -> Value {
    let tool = known.iter().find(|tool| tool.name == name);
    tool.and_then(|tool| tool.input_schema.as_ref()).map_or_else(|| json!({}), arguments_of_schema)
}
