//! Spreads conversations over several [`ToolSpans`], so that threads with calls of different sessions share no lock.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use callgate::EngineEvent;
use callgate_log::Content;
use opentelemetry::trace::SpanContext;
use opentelemetry_sdk::trace::SpanData;

use super::tool_spans::ToolSpans;

/// The number of parts. Two conversations seldom share one.
const SHARDS: usize = 16;

/// The open spans of all conversations.
pub(super) struct SpanShards {
    shards: [Mutex<ToolSpans>; SHARDS],
    hasher: RandomState,
}

impl SpanShards {
    pub(super) fn new(content: Content) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(ToolSpans::new(content))),
            hasher: RandomState::new(),
        }
    }

    /// Records an event. Returns the span that it belongs to, and that span if the event ends it.
    pub(super) fn record(&self, event: &EngineEvent<'_>) -> (Option<SpanContext>, Option<SpanData>) {
        let Some(run) = event.run else { return (None, None) };
        // Everything that belongs together has the same conversation: a call, and the request that a resumed call links to.
        let hash =
            usize::try_from(self.hasher.hash_one(run.conversation) % SHARDS as u64).unwrap_or_default();
        match self.shards.get(hash) {
            Some(shard) => shard.lock().unwrap_or_else(PoisonError::into_inner).record(event),
            None => (None, None),
        }
    }
}
