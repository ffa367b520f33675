//! The bundle that is checked, with what is known beside it.

use std::collections::HashMap;
use std::sync::Arc;

use super::written::{Writing, Written};
use super::{Beside, Needs};
use crate::diagnostic::{SourceId, SourceMap};
use crate::middleware::Kind;
use crate::policy::{Built, Chains};
use crate::source::{LoadedFile, Node};
use crate::suite::LoadedSuite;
use crate::tools::{ToolDescriptor, ToolSet};

/// The bundle that is checked, with what is known beside it.
pub(super) struct Checked<'a> {
    /// The policies that are not off, in the order in which they act.
    pub(super) policies: Vec<Written<'a>>,
    /// For each policy of `chains`, its place in `policies`.
    places: HashMap<u32, usize>,
    pub(super) chains: &'a Arc<Chains>,
    pub(super) files: &'a [LoadedFile],
    pub(super) sources: &'a SourceMap,
    /// The tools that there are; none where they are not known.
    pub(super) tools: &'a [ToolDescriptor],
    tools_are_known: bool,
    pub(super) tool_set: ToolSet,
    pub(super) tests: Option<&'a LoadedSuite>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(chains: &'a Arc<Chains>, built: &'a Built, beside: &Beside<'a>) -> Self {
        let nodes = built
            .files
            .iter()
            .flat_map(|file| file.root.get("policies").and_then(Node::items).unwrap_or_default());
        let by_span: HashMap<_, &Node> = nodes.map(|node| (node.span, node)).collect();
        let mut writing = Writing::new(chains.defaults());
        let (mut policies, mut places) = (Vec::new(), HashMap::new());
        for (index, policy) in (0u32..).zip(chains.policies()) {
            let written = by_span.get(&policy.span).and_then(|node| writing.of(policy, index, node));
            if let Some(written) = written {
                places.insert(index, policies.len());
                policies.push(written);
            }
        }
        let tools = beside.tools.unwrap_or_default();
        Self {
            policies,
            places,
            chains,
            files: &built.files,
            sources: &built.sources,
            tools,
            tools_are_known: beside.tools.is_some(),
            tool_set: ToolSet::new(tools.iter().cloned()),
            tests: beside.tests,
        }
    }

    pub(super) fn knows(&self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::Tools => self.tools_are_known,
            Needs::Tests => self.tests.is_some_and(|tests| !tests.suite.is_empty()),
        }
    }

    /// The policies that act, in order.
    pub(super) fn acting(&self) -> impl Iterator<Item = &Written<'a>> {
        self.policies.iter().filter(|written| written.acts())
    }

    /// The policies whose patterns for tools fit this name, in order.
    pub(super) fn fitting(&self, tool: &str) -> impl Iterator<Item = &Written<'a>> {
        let indices = self.chains.fitting(tool).into_iter();
        indices.filter_map(|index| self.policies.get(*self.places.get(&index)?))
    }

    /// The policies that concern some of the calls that this one concerns, as far as names tell: those that fit one of its
    /// exact names, and for patterns those with the same pattern or for every tool.
    pub(super) fn beside<'s>(&'s self, written: &Written<'a>) -> Vec<&'s Written<'a>> {
        let mut found: Vec<&Written<'a>> = Vec::new();
        for pattern in &written.policy.matcher.tools {
            found.extend(self.fitting(pattern.text()));
        }
        if found.is_empty() {
            found.extend(self.fitting(""));
        }
        found.sort_by_key(|other| other.index);
        found.dedup_by_key(|other| other.index);
        found
    }

    /// The known tools that a policy concerns.
    pub(super) fn tools_of<'s>(
        &'s self,
        written: &'s Written<'a>,
    ) -> impl Iterator<Item = &'a ToolDescriptor> + 's {
        self.tools.iter().filter(|tool| {
            let server = tool.server.as_deref();
            let matcher = &written.policy.matcher;
            match server {
                Some(server) => matcher.concerns(server, &tool.name),
                // A tool without a server is found for calls of every server.
                None => {
                    matcher.tools.is_empty()
                        || matcher.tools.iter().any(|pattern| pattern.matches(&tool.name))
                }
            }
        })
    }

    /// The text of a file.
    pub(super) fn text(&self, source: SourceId) -> &'a str {
        self.sources.get(source).map_or("", |source| source.text())
    }

    /// Whether a policy changes arguments before they are judged.
    pub(super) fn changes_input(written: &Written<'_>) -> bool {
        matches!(&written.policy.kind, Kind::Transform(transform) if !transform.input.is_empty())
    }
}
