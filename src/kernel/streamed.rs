//! Which `stream` policies concern what a model is about to stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::Kernel;
use super::stage::shadow;
use crate::call::{CallView, RunShadow, SessionState, ToolCall, Verdict};
use crate::matcher::Truth;
use crate::middleware::{Kind, Stream, StreamFilter, StreamShadow};
use crate::policy::{Mode, Policy};

impl Kernel<'_> {
    /// The filter of one turn of the model, which begins now: of all `stream` policies whose conditions hold, the bundle's first.
    /// A condition that can't be decided counts as holding. `context` is what the host vouches for.
    pub fn stream_filter(&self, context: &Value, session: &SessionState) -> StreamFilter {
        let enforced =
            self.streams(context, session).into_iter().filter(|(policy, _)| policy.mode == Mode::Enforce);
        StreamFilter::new(enforced.map(|(_, stream)| stream))
    }

    /// The shadows of one turn of the model, each with what is told of it once it would have changed something.
    pub(crate) fn stream_shadows(
        &self,
        context: &Value,
        session: &SessionState,
    ) -> Vec<(RunShadow, StreamShadow)> {
        let shadows =
            self.streams(context, session).into_iter().filter(|(policy, _)| policy.mode == Mode::Shadow);
        shadows
            .map(|(policy, stream)| (shadow(policy, Verdict::Rewrite, None), StreamShadow::new(stream)))
            .collect()
    }

    fn streams(&self, context: &Value, session: &SessionState) -> Vec<(&Policy, &Stream)> {
        // Conditions of these policies read only the context and the session.
        let none = ToolCall::new("", "", Value::Null).with_context(context.clone());
        let view = CallView::new(&none, session);
        let concerns = |policy: &Policy| {
            catch_unwind(AssertUnwindSafe(|| policy.matcher.eval(&view)))
                .map_or(true, |truth| truth != Truth::No)
        };
        let policies = self.layers.iter().flat_map(|chains| chains.policies());
        let streams = policies.filter_map(|policy| match &policy.kind {
            Kind::Stream(stream) if concerns(policy) => Some((policy, stream)),
            _ => None,
        });
        streams.collect()
    }
}
