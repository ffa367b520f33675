//! Stream filter: applies `stream` policies to the chunks of a model's turn. Chunk → chunks that can be passed on.
//!
//! Each text of a stream is filtered separately. Held-back text is passed on before the model's turn ends. Other chunks wait for the
//! text before them, except the arguments of tool calls, which are not part of a text.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::stream::{DropUnit, Stream};
use crate::lifecycle::Chunk;
use crate::redaction::{MAX_HELD, MatchTooLongError, Redactor, StreamRedactor};

/// Replaces the rest of a text that can't be filtered.
pub const WITHHELD: &str = "[withheld]";

/// Maximum number of texts of a stream. Further texts are withheld.
pub const MAX_STREAM_TEXTS: usize = 256;

/// Maximum number of chunks that wait for a text. Beyond it, the first one is passed on ahead of the text.
pub const MAX_DELAYED_CHUNKS: usize = 256;

/// Filter for the stream of one turn of the model.
///
/// It fails closed: if it cannot filter a text (more than [`MAX_HELD`] bytes that may be one secret, or an internal error), it replaces
/// the rest of that text with [`WITHHELD`].
#[derive(Debug, Default)]
pub struct StreamFilter {
    policies: Vec<Stream>,
    texts: Vec<FilteredText>,
    delayed: VecDeque<DelayedChunk>,
    surplus_withheld: bool,
}

/// A chunk that waits until these texts have passed on what they held back.
#[derive(Debug)]
struct DelayedChunk {
    chunk: Chunk,
    waits_for: Vec<(TextId, u64)>,
}

/// The identity of a text: its type and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextId {
    reasoning: bool,
    id: String,
}

impl TextId {
    fn chunk(&self, delta: String) -> Chunk {
        let id = self.id.clone();
        if self.reasoning { Chunk::Reasoning { id, delta } } else { Chunk::Text { id, delta } }
    }
}

impl StreamFilter {
    /// Creates a filter that applies the policies in order. Without policies every chunk passes unchanged.
    pub fn new<'p>(policies: impl IntoIterator<Item = &'p Stream>) -> Self {
        Self { policies: policies.into_iter().cloned().collect(), ..Self::default() }
    }

    /// Adds a chunk and returns the chunks that can be passed on.
    pub fn push(&mut self, chunk: Chunk) -> Vec<Chunk> {
        match chunk {
            Chunk::Text { id, delta } => self.push_text(TextId { reasoning: false, id }, delta),
            Chunk::Reasoning { id, delta } => self.push_text(TextId { reasoning: true, id }, delta),
            Chunk::ToolInput { .. } => vec![chunk],
            Chunk::Finished { .. } => {
                let mut passed = self.finish();
                passed.push(chunk);
                passed
            }
            Chunk::Other { .. } => self.push_other(chunk),
        }
    }

    /// Ends the stream and returns everything that is held back.
    pub fn finish(&mut self) -> Vec<Chunk> {
        let mut passed = Vec::new();
        for mut text in std::mem::take(&mut self.texts) {
            let rest = text.finish();
            if !rest.is_empty() {
                passed.push(text.name.chunk(rest));
            }
        }
        passed.extend(self.delayed.drain(..).map(|waiting| waiting.chunk));
        self.surplus_withheld = false;
        passed
    }

    fn push_text(&mut self, name: TextId, delta: String) -> Vec<Chunk> {
        let applies = |policy: &&Stream| if name.reasoning { policy.reasoning } else { policy.text };
        if !self.policies.iter().any(|policy| applies(&policy)) {
            return vec![name.chunk(delta)];
        }
        let index = match self.texts.iter().position(|text| text.name == name) {
            Some(index) => index,
            None if self.texts.len() == MAX_STREAM_TEXTS => {
                let was_withheld = std::mem::replace(&mut self.surplus_withheld, true);
                return if was_withheld { Vec::new() } else { vec![name.chunk(WITHHELD.to_owned())] };
            }
            None => {
                let policies = self.policies.iter().filter(applies);
                self.texts.push(FilteredText::new(name.clone(), policies.flat_map(filter_steps).collect()));
                self.texts.len() - 1
            }
        };
        let filtered = self.texts.get_mut(index).map(|text| text.push(&delta)).unwrap_or_default();
        let mut passed = Vec::new();
        if !filtered.is_empty() {
            passed.push(name.chunk(filtered));
        }
        self.release_delayed(&mut passed);
        passed
    }

    fn push_other(&mut self, chunk: Chunk) -> Vec<Chunk> {
        let behind =
            self.texts.iter_mut().filter_map(|text| Some((text.name.clone(), text.mark()?))).collect();
        self.delayed.push_back(DelayedChunk { chunk, waits_for: behind });
        let mut passed = Vec::new();
        if self.delayed.len() > MAX_DELAYED_CHUNKS {
            passed.extend(self.delayed.pop_front().map(|first| first.chunk));
        }
        self.release_delayed(&mut passed);
        passed
    }

    /// Passes on the waiting chunks whose texts hold nothing back.
    fn release_delayed(&mut self, passed: &mut Vec<Chunk>) {
        let texts = &self.texts;
        let free = |waiting: &DelayedChunk| {
            waiting.waits_for.iter().all(|(name, mark)| {
                texts.iter().find(|text| text.name == *name).is_none_or(|text| text.marks_passed >= *mark)
            })
        };
        while self.delayed.front().is_some_and(free) {
            passed.extend(self.delayed.pop_front().map(|first| first.chunk));
        }
    }
}

/// The state of one text in all steps.
#[derive(Debug)]
struct FilteredText {
    name: TextId,
    steps: Vec<FilterStep>,
    withheld: bool,
    marks: u64,
    marks_passed: u64,
}

impl FilteredText {
    fn new(name: TextId, steps: Vec<FilterStep>) -> Self {
        Self { name, steps, withheld: false, marks: 0, marks_passed: 0 }
    }

    fn push(&mut self, delta: &str) -> String {
        self.push_guarded(delta, |_, _| {})
    }

    fn finish(&mut self) -> String {
        self.push_guarded("", |step, flowing| flowing.push_str(&step.filter.finish()))
    }

    /// Passes text through all steps; `after` can add text after each step. After a panic or an overflow nothing unfiltered is passed
    /// on: only the text that has passed all steps, followed by [`WITHHELD`].
    fn push_guarded(&mut self, delta: &str, after: impl Fn(&mut FilterStep, &mut String)) -> String {
        if self.withheld {
            return String::new();
        }
        let flow = AssertUnwindSafe(|| {
            let mut flowing = delta.to_owned();
            let mut overlong = false;
            for step in &mut self.steps {
                let mut filtered = String::new();
                overlong |= step.push(&flowing, &mut filtered).is_err();
                if !overlong {
                    after(step, &mut filtered);
                }
                flowing = filtered;
            }
            (flowing, overlong)
        });
        let (mut filtered, failed) = catch_unwind(flow).unwrap_or((String::new(), true));
        if failed {
            self.withheld = true;
            self.steps = Vec::new();
            self.marks_passed = self.marks;
            filtered.push_str(WITHHELD);
        } else {
            self.advance_marks();
        }
        filtered
    }

    /// Marks the current position in the text. Returns `None` if nothing is held back before it.
    fn mark(&mut self) -> Option<u64> {
        if self.steps.iter().all(|step| step.filter.held() == 0) {
            return None;
        }
        let first = self.steps.first_mut()?;
        first.marks.push_back(first.received);
        self.marks += 1;
        self.advance_marks();
        Some(self.marks)
    }

    /// Moves each mark to the next step once all text before it has gone there.
    fn advance_marks(&mut self) {
        let mut arriving = 0;
        for step in &mut self.steps {
            step.marks.extend(std::iter::repeat_n(step.received, arriving));
            let decided = step.received - step.filter.held() as u64;
            arriving = step.marks.iter().take_while(|mark| **mark <= decided).count();
            step.marks.drain(..arriving);
        }
        self.marks_passed += arriving as u64;
    }
}

/// One operation of a policy on a text.
#[derive(Debug)]
struct FilterStep {
    filter: TextFilter,
    /// The number of bytes received.
    received: u64,
    /// Positions that chunks wait for, in received bytes.
    marks: VecDeque<u64>,
}

#[derive(Debug)]
enum TextFilter {
    Redaction(StreamRedactor),
    LineDrop { unwanted: Arc<Redactor>, line: String },
    ChunkDrop { unwanted: Arc<Redactor> },
}

fn filter_steps(policy: &Stream) -> impl Iterator<Item = FilterStep> {
    let drop = policy.drop.iter().map(|(unit, unwanted)| {
        let unwanted = Arc::clone(unwanted);
        match unit {
            DropUnit::Match => TextFilter::Redaction(StreamRedactor::from_redactor(unwanted)),
            DropUnit::Line => TextFilter::LineDrop { unwanted, line: String::new() },
            DropUnit::Chunk => TextFilter::ChunkDrop { unwanted },
        }
    });
    let replace = policy
        .replace
        .iter()
        .map(|replacement| TextFilter::Redaction(StreamRedactor::from_replacement(Arc::clone(replacement))));
    let redact = policy
        .redact
        .iter()
        .map(|redactor| TextFilter::Redaction(StreamRedactor::from_redactor(Arc::clone(redactor))));
    drop.chain(replace).chain(redact).map(|filter| FilterStep { filter, received: 0, marks: VecDeque::new() })
}

impl FilterStep {
    fn push(&mut self, more: &str, filtered: &mut String) -> Result<(), MatchTooLongError> {
        self.received += more.len() as u64;
        self.filter.push(more, filtered)
    }
}

impl TextFilter {
    fn push(&mut self, more: &str, filtered: &mut String) -> Result<(), MatchTooLongError> {
        match self {
            Self::Redaction(redactor) => return redactor.push(more, filtered),
            Self::LineDrop { unwanted, line } => {
                for piece in more.split_inclusive('\n') {
                    line.push_str(piece);
                    if line.len() > MAX_HELD {
                        return Err(MatchTooLongError);
                    }
                    if piece.ends_with('\n') {
                        filtered.push_str(&take_kept_line(unwanted, line));
                    }
                }
            }
            Self::ChunkDrop { unwanted } if unwanted.has_match(more) => {}
            Self::ChunkDrop { .. } => filtered.push_str(more),
        }
        Ok(())
    }

    fn finish(&mut self) -> String {
        match self {
            Self::Redaction(redactor) => redactor.finish(),
            Self::LineDrop { unwanted, line } => take_kept_line(unwanted, line),
            Self::ChunkDrop { .. } => String::new(),
        }
    }

    fn held(&self) -> usize {
        match self {
            Self::Redaction(redactor) => redactor.held_bytes(),
            Self::LineDrop { line, .. } => line.len(),
            Self::ChunkDrop { .. } => 0,
        }
    }
}

/// Returns the line, or an empty string if it is dropped.
fn take_kept_line(unwanted: &Redactor, line: &mut String) -> String {
    let line = std::mem::take(line);
    if unwanted.has_match(&line) { String::new() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn withholds_a_text_once_if_its_filter_panics() {
        let mut text = FilteredText::new(
            TextId { reasoning: false, id: "a".into() },
            vec![FilterStep {
                filter: TextFilter::LineDrop {
                    unwanted: Arc::new(Redactor::new(vec![], vec![], crate::redaction::RedactionStyle::Mask)),
                    line: String::new(),
                },
                received: 0,
                marks: VecDeque::new(),
            }],
        );
        assert_eq!(text.push("held"), "");
        assert!(text.mark().is_some());
        assert_eq!(text.push_guarded("more", |_, _| panic!("a filter's own error")), WITHHELD);
        assert_eq!((text.push("rest\n"), text.finish()), (String::new(), String::new()));
        assert_eq!(text.marks_passed, text.marks, "waiting chunks are passed on");
    }
}
