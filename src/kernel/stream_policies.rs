//! Selects the `stream` policies for the output of a model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::run_policies::shadow;
use super::{Kernel, PolicyHandle, PolicyRef};
use crate::call::{CallView, RunShadowEffect, SessionState, ToolCall, Verdict};
use crate::json::Value;
use crate::matcher::Truth;
use crate::middleware::{PolicyKind, Stream, StreamFilter, StreamShadow};
use crate::policy::{Mode, Policy};

impl Kernel<'_> {
    /// The filter of one turn of the model that begins now: of all `stream` policies whose conditions hold or
    /// are undecided, the bundle's first. `context` is what the host vouches for.
    pub fn stream_filter(&self, context: &Value, session: &SessionState) -> StreamFilter {
        self.stream_filters(context, session).0
    }

    /// The filter of one turn, and the policies in shadow mode beside it.
    pub(crate) fn stream_filters(
        &self,
        context: &Value,
        session: &SessionState,
    ) -> (StreamFilter, Vec<(RunShadowEffect, StreamShadow)>) {
        let (enforced, shadows): (Vec<_>, Vec<_>) =
            self.streams(context, session).into_iter().partition(|(policy, _)| policy.mode == Mode::Enforce);
        let enforced: Vec<_> = enforced.into_iter().map(|(_, stream)| stream.with_keys(self.keys)).collect();
        let filter = StreamFilter::new(&enforced);
        let beside = |(policy, stream): (&Policy, &Stream)| {
            (shadow(policy, Verdict::Rewrite, None), StreamShadow::new(stream))
        };
        (filter, shadows.into_iter().map(beside).collect())
    }

    fn streams(&self, context: &Value, session: &SessionState) -> Vec<(&Policy, &Stream)> {
        // Conditions of these policies read only the context and the session.
        let none = ToolCall::new("", "", Value::Null).with_context(context.clone());
        let now = self.moment();
        let view = CallView { now: Some(&now), task: Some(self.task), ..CallView::new(&none, session) };
        let mut streams = Vec::new();
        for (layer, policies) in (0u32..).zip(self.layers) {
            for (index, policy) in (0u32..).zip(policies.policies()) {
                let PolicyKind::Stream(stream) = &policy.kind else { continue };
                let truth = catch_unwind(AssertUnwindSafe(|| policy.matcher.eval(&view)));
                let by = PolicyHandle { reference: PolicyRef { layer, index }, policy };
                self.report_run_policy(by, view, truth.as_ref().ok());
                if truth.map_or(true, |truth| truth != Truth::No) {
                    streams.push((policy.as_ref(), &**stream));
                }
            }
        }
        streams
    }
}
