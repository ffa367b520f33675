//! A `stream` policy in shadow: whether it would have changed what the model streams.

use std::collections::HashMap;

use super::filter::StreamFilter;
use super::stream::Stream;
use crate::lifecycle::Chunk;

/// Watches one turn of the model beside what is passed on.
#[derive(Debug)]
pub struct StreamShadow {
    filter: StreamFilter,
    /// Of each text, whether people read it and its id: what has come, and was not yet passed on.
    held: HashMap<(bool, String), String>,
}

impl StreamShadow {
    /// Watches for this policy.
    pub fn new(stream: &Stream) -> Self {
        Self { filter: StreamFilter::new([stream]), held: HashMap::new() }
    }

    /// Whether it would have changed what has come by now. Not to be asked again once it would.
    pub fn would_change(&mut self, chunk: &Chunk) -> bool {
        if let Some((text, delta)) = text(chunk) {
            self.held.entry(text).or_default().push_str(delta);
        }
        let passed = self.filter.push(chunk.clone());
        let ends = matches!(chunk, Chunk::Finished { .. });
        self.differs(&passed) || ends && self.withholds()
    }

    /// Whether it would have changed the rest, where the model's turn ended without saying so.
    pub fn would_change_rest(&mut self) -> bool {
        let rest = self.filter.finish();
        self.differs(&rest) || self.withholds()
    }

    fn differs(&mut self, passed: &[Chunk]) -> bool {
        passed.iter().filter_map(text).any(|(text, shown)| {
            let held = self.held.entry(text).or_default();
            match held.strip_prefix(shown) {
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

fn text(chunk: &Chunk) -> Option<((bool, String), &str)> {
    match chunk {
        Chunk::Text { id, delta } => Some(((true, id.clone()), delta)),
        Chunk::Reasoning { id, delta } => Some(((false, id.clone()), delta)),
        _ => None,
    }
}
