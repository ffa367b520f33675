//! Which `stream` policies concern what a model is about to stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::{Kernel, PolicyRef};
use crate::call::{CallView, SessionState, ToolCall};
use crate::matcher::Truth;
use crate::middleware::{Kind, StreamFilter};
use crate::policy::Mode;

impl Kernel<'_> {
    /// The filter of one turn of the model, which begins now: of all `stream` policies whose conditions hold, the bundle's first.
    /// A condition that can't be decided counts as holding. `context` is what the host vouches for.
    pub fn stream_filter(&self, context: &Value, session: &SessionState) -> StreamFilter {
        // Conditions of these policies read only the context and the session.
        let none = ToolCall::new("", "", Value::Null).with_context(context.clone());
        let view = CallView::new(&none, session);
        let mut streams = Vec::new();
        for (layer, chains) in (0u32..).zip(self.layers) {
            for (index, policy) in (0u32..).zip(chains.policies()) {
                let Kind::Stream(stream) = &policy.kind else { continue };
                if policy.mode != Mode::Enforce {
                    continue;
                }
                let says = catch_unwind(AssertUnwindSafe(|| policy.matcher.eval(&view)));
                self.tell_of_run((PolicyRef { layer, index }, policy), view, says.as_ref().ok());
                if says.map_or(true, |truth| truth != Truth::No) {
                    streams.push(stream);
                }
            }
        }
        StreamFilter::new(streams)
    }
}
