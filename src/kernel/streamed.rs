//! Which `stream` policies concern what a model is about to stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::Kernel;
use crate::call::{CallView, SessionState, ToolCall};
use crate::matcher::Truth;
use crate::middleware::{Kind, StreamFilter};
use crate::policy::{Mode, Policy};

impl Kernel<'_> {
    /// The filter of one turn of the model, which begins now: of all `stream` policies whose conditions hold, the bundle's first.
    /// A condition that can't be decided counts as holding. `context` is what the host vouches for.
    pub fn stream_filter(&self, context: &Value, session: &SessionState) -> StreamFilter {
        // Conditions of these policies read only the context and the session.
        let none = ToolCall::new("", "", Value::Null).with_context(context.clone());
        let view = CallView::new(&none, session);
        let concerns = |policy: &&Policy| {
            policy.mode == Mode::Enforce
                && catch_unwind(AssertUnwindSafe(|| policy.matcher.eval(&view)))
                    .map_or(true, |truth| truth != Truth::No)
        };
        let policies = self.layers.iter().flat_map(|chains| chains.policies());
        let streams = policies.filter(|policy| matches!(policy.kind, Kind::Stream(_))).filter(concerns);
        StreamFilter::new(streams.filter_map(|policy| match &policy.kind {
            Kind::Stream(stream) => Some(stream),
            _ => None,
        }))
    }
}
