//! Shadow mode of `stream` policies: detects whether a policy would have changed a model's stream.

use std::collections::HashMap;

use super::stream::Stream;
use super::stream_filter::StreamFilter;
use crate::lifecycle::Chunk;

/// Runs a filter over one turn of the model without affecting the stream.
#[derive(Debug)]
pub struct StreamShadow {
    filter: StreamFilter,
    /// For each text (whether people read it, and its id) the part that was received and that the filter has not passed on yet.
    held: HashMap<(bool, String), String>,
}

impl StreamShadow {
    /// Creates the shadow of a policy.
    pub fn new(stream: &Stream) -> Self {
        Self { filter: StreamFilter::new([stream]), held: HashMap::new() }
    }

    /// Adds a chunk and returns whether the policy would have changed the stream so far. Don't call it again after `true`.
    pub fn would_change(&mut self, chunk: &Chunk) -> bool {
        if let Some((text, delta)) = text_delta(chunk) {
            self.held.entry(text).or_default().push_str(delta);
        }
        let passed = self.filter.push(chunk.clone());
        let ends = matches!(chunk, Chunk::Finished { .. });
        self.has_changed(&passed) || ends && self.withholds()
    }

    /// Returns whether the policy would have changed the rest of a turn that ended without [`Chunk::Finished`].
    pub fn would_change_rest(&mut self) -> bool {
        let rest = self.filter.finish();
        self.has_changed(&rest) || self.withholds()
    }

    fn has_changed(&mut self, passed: &[Chunk]) -> bool {
        passed.iter().filter_map(text_delta).any(|(text, delta)| {
            let held = self.held.entry(text).or_default();
            match held.strip_prefix(delta) {
                Some(rest) => {
                    *held = rest.to_owned();
                    false
                }
                None => true,
            }
        })
    }

    fn withholds(&self) -> bool {
        self.held.values().any(|held| !held.is_empty())
    }
}

fn text_delta(chunk: &Chunk) -> Option<((bool, String), &str)> {
    match chunk {
        Chunk::Text { id, delta } => Some(((true, id.clone()), delta)),
        Chunk::Reasoning { id, delta } => Some(((false, id.clone()), delta)),
        _ => None,
    }
}
