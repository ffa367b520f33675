//! A call with what its policies need: its policies of each layer, its tool, the time and the place in its round.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;
use smallvec::SmallVec;

use super::Kernel;
use super::events::EventListener;
use super::policy_reference::{Layers, PolicyHandle, PolicyRef};
use crate::call::{CallView, ResultProblem, RoundDocument, SessionState, Task, ToolCall};
use crate::json::Value;
use crate::policy::{Policy, ToolPolicies};
use crate::seal::Keys;
use crate::time::{Moment, TimeSource};
use crate::tool_result::{ResultDeclaration, ResultFormat, ToolResult};
use crate::tools::{KnownTool, ResultSchema};

/// A call with its policies and its tool, looked up once.
pub(super) struct CallScope<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) layers: &'a Layers,
    pub(super) chains: SmallVec<[Arc<ToolPolicies>; 3]>,
    pub(super) tool: Option<&'a KnownTool>,
    pub(super) listener: Option<&'a dyn EventListener>,
    pub(super) keys: &'a Keys,
    /// The time, read once for all policies.
    pub(super) now: Moment<'a>,
    pub(super) task: &'a Task,
    pub(super) round: RoundDocument,
}

impl<'a> CallScope<'a> {
    pub(super) fn view<'v>(&'v self, session: &'v SessionState) -> CallView<'v> {
        let annotations = self.tool.and_then(|tool| tool.descriptor.annotations.as_ref());
        CallView {
            annotations,
            task: Some(self.task),
            round: Some(&self.round),
            now: Some(&self.now),
            ..CallView::new(self.call, session)
        }
    }

    /// Reads `$.result` from an output. Returns `None` if no policy of the call reads it, or if there is no output.
    pub(super) fn read_result(&self, output: Option<&Value>) -> Option<ToolResult> {
        let output = output?;
        if !self.policies(|chain| &chain.settle).any(|by| by.policy.reads_result) {
            return None;
        }
        Some(self.tool_result(output))
    }

    /// An output as data, as the bundle and the tool declare it.
    pub(super) fn tool_result(&self, output: &Value) -> ToolResult {
        let schema = self.tool.and_then(|tool| tool.results.as_ref());
        self.result_declaration().map_or_else(ToolResult::Unreadable, |declaration| {
            let result = ToolResult::from_output(output, declaration);
            match schema {
                Some(schema) => schema.check(output, result),
                None => result,
            }
        })
    }

    /// How results of the tool are read.
    pub(super) fn result_declaration(&self) -> Result<ResultDeclaration, ResultProblem> {
        let format = match self.layers.iter().next() {
            Some(bundle) => bundle.results().format_of(&self.call.tool)?,
            None => ResultFormat::Auto,
        };
        let schema = self.tool.and_then(|tool| tool.results.as_ref());
        Ok(ResultDeclaration { format, is_wrapped: schema.is_some_and(ResultSchema::is_wrapped) })
    }

    /// The policies of one phase over all layers, in order.
    pub(super) fn policies<'s>(
        &'s self,
        phase: fn(&ToolPolicies) -> &[u32],
    ) -> impl Iterator<Item = PolicyHandle<'a>> {
        (0u32..).zip(self.layers.iter().zip(&self.chains)).flat_map(move |(layer, (policies, chain))| {
            phase(chain).iter().filter_map(move |index| {
                let reference = PolicyRef { layer, index: *index };
                Some(PolicyHandle { reference, policy: policies.policy(*index)? })
            })
        })
    }

    /// Whether policies can wrap the execution of the call.
    pub(super) fn has_wrappers(&self) -> bool {
        self.chains.iter().any(|chain| !chain.execute.is_empty())
    }

    pub(super) fn policy(&self, reference: PolicyRef) -> Option<&'a Policy> {
        reference.find(self.layers)
    }
}

impl Kernel<'_> {
    /// A call with what its policies need.
    pub(super) fn subject<'a>(&'a self, call: &'a ToolCall) -> CallScope<'a> {
        let server = call.server.as_deref().unwrap_or("");
        let chains = self.layers.iter().map(|layer| layer.tool_policies(server, &call.tool)).collect();
        let (tool, listener) = (self.tools.get(call), self.listener);
        let now = self.moment();
        let (task, round) = (self.task, RoundDocument::new(self.round));
        CallScope { call, layers: self.layers, chains, tool, listener, keys: self.keys, now, task, round }
    }

    /// The time, for all policies of a decision.
    pub(crate) fn moment(&self) -> Moment<'_> {
        Moment::when_read(self)
    }
}

impl TimeSource for Kernel<'_> {
    /// The time is unknown if the clock panics.
    fn read(&self) -> Option<Timestamp> {
        catch_unwind(AssertUnwindSafe(|| self.clock.now())).ok()
    }
}
