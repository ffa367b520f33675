//! What the model streams on its way through `stream` policies.
//!
//! Each text of a stream goes its own way. What is held back of one is passed on before the model's turn ends; other chunks
//! wait behind the text that came before them, except arguments of tool calls, which are no part of a text.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::stream::{DropUnit, Stream};
use crate::detect::{MAX_HELD, Overlong, Redactor, Sieve};
use crate::lifecycle::Chunk;

/// Stands for the rest of a text that can't be shown.
pub const WITHHELD: &str = "[withheld]";

/// The most texts of one stream; what comes of more is withheld.
pub const MAX_TEXTS: usize = 256;

/// The most chunks that wait behind a text; of more the first goes ahead of the text.
pub const MAX_WAITING: usize = 256;

/// What the model streams in one turn, filtered.
///
/// What it cannot filter (more than [`MAX_HELD`] bytes that may be one secret, an error of its own) it does not pass on: in the
/// place of the rest of that text stands [`WITHHELD`] once.
#[derive(Debug, Default)]
pub struct StreamFilter {
    policies: Vec<Stream>,
    texts: Vec<Text>,
    waiting: VecDeque<Waiting>,
    told_of_surplus: bool,
}

/// A chunk that waits until these texts have passed on what they held.
#[derive(Debug)]
struct Waiting {
    chunk: Chunk,
    behind: Vec<(Name, u64)>,
}

/// Which text: what it is, and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    reasoning: bool,
    id: String,
}

impl Name {
    fn chunk(&self, delta: String) -> Chunk {
        let id = self.id.clone();
        if self.reasoning { Chunk::Reasoning { id, delta } } else { Chunk::Text { id, delta } }
    }
}

impl StreamFilter {
    /// A filter of these policies, the first first. With none every chunk passes as it is.
    pub fn new<'p>(policies: impl IntoIterator<Item = &'p Stream>) -> Self {
        Self { policies: policies.into_iter().cloned().collect(), ..Self::default() }
    }

    /// What can be passed on now that this chunk has come.
    pub fn push(&mut self, chunk: Chunk) -> Vec<Chunk> {
        match chunk {
            Chunk::Text { id, delta } => self.push_text(Name { reasoning: false, id }, delta),
            Chunk::Reasoning { id, delta } => self.push_text(Name { reasoning: true, id }, delta),
            Chunk::ToolInput { .. } => vec![chunk],
            Chunk::Finished { .. } => {
                let mut passed = self.finish();
                passed.push(chunk);
                passed
            }
            Chunk::Other { .. } => self.push_other(chunk),
        }
    }

    /// The stream has ended: everything that is held.
    pub fn finish(&mut self) -> Vec<Chunk> {
        let mut passed = Vec::new();
        for mut text in std::mem::take(&mut self.texts) {
            let rest = text.finish();
            if !rest.is_empty() {
                passed.push(text.name.chunk(rest));
            }
        }
        passed.extend(self.waiting.drain(..).map(|waiting| waiting.chunk));
        self.told_of_surplus = false;
        passed
    }

    fn push_text(&mut self, name: Name, delta: String) -> Vec<Chunk> {
        let concerns = |policy: &&Stream| if name.reasoning { policy.reasoning } else { policy.text };
        if !self.policies.iter().any(|policy| concerns(&policy)) {
            return vec![name.chunk(delta)];
        }
        let place = match self.texts.iter().position(|text| text.name == name) {
            Some(place) => place,
            None if self.texts.len() == MAX_TEXTS => {
                let told = std::mem::replace(&mut self.told_of_surplus, true);
                return if told { Vec::new() } else { vec![name.chunk(WITHHELD.to_owned())] };
            }
            None => {
                let policies = self.policies.iter().filter(concerns);
                self.texts.push(Text::new(name.clone(), policies.flat_map(steps).collect()));
                self.texts.len() - 1
            }
        };
        let shown = self.texts.get_mut(place).map(|text| text.push(&delta)).unwrap_or_default();
        let mut passed = Vec::new();
        if !shown.is_empty() {
            passed.push(name.chunk(shown));
        }
        self.release(&mut passed);
        passed
    }

    fn push_other(&mut self, chunk: Chunk) -> Vec<Chunk> {
        let behind =
            self.texts.iter_mut().filter_map(|text| Some((text.name.clone(), text.mark()?))).collect();
        self.waiting.push_back(Waiting { chunk, behind });
        let mut passed = Vec::new();
        if self.waiting.len() > MAX_WAITING {
            passed.extend(self.waiting.pop_front().map(|first| first.chunk));
        }
        self.release(&mut passed);
        passed
    }

    /// Passes on the chunks behind which nothing is held any more.
    fn release(&mut self, passed: &mut Vec<Chunk>) {
        let texts = &self.texts;
        let free = |waiting: &Waiting| {
            waiting.behind.iter().all(|(name, mark)| {
                texts.iter().find(|text| text.name == *name).is_none_or(|text| text.marks_passed >= *mark)
            })
        };
        while self.waiting.front().is_some_and(free) {
            passed.extend(self.waiting.pop_front().map(|first| first.chunk));
        }
    }
}

/// One text on its way through all steps.
#[derive(Debug)]
struct Text {
    name: Name,
    steps: Vec<Step>,
    withheld: bool,
    marks: u64,
    marks_passed: u64,
}

impl Text {
    fn new(name: Name, steps: Vec<Step>) -> Self {
        Self { name, steps, withheld: false, marks: 0, marks_passed: 0 }
    }

    fn push(&mut self, delta: &str) -> String {
        self.guarded(delta, |_, _| {})
    }

    fn finish(&mut self) -> String {
        self.guarded("", |step, flowing| flowing.push_str(&step.sifter.finish()))
    }

    /// Lets a text flow through all steps, `after` each of which something may be added. One that went wrong is not shown as
    /// it came: what has passed all steps is, and that there was more.
    fn guarded(&mut self, delta: &str, after: impl Fn(&mut Step, &mut String)) -> String {
        if self.withheld {
            return String::new();
        }
        let flow = AssertUnwindSafe(|| {
            let mut flowing = delta.to_owned();
            let mut overlong = false;
            for step in &mut self.steps {
                let mut shown = String::new();
                overlong |= step.push(&flowing, &mut shown).is_err();
                if !overlong {
                    after(step, &mut shown);
                }
                flowing = shown;
            }
            (flowing, overlong)
        });
        let (mut shown, failed) = catch_unwind(flow).unwrap_or((String::new(), true));
        if failed {
            self.withheld = true;
            self.steps = Vec::new();
            self.marks_passed = self.marks;
            shown.push_str(WITHHELD);
        } else {
            self.follow_marks();
        }
        shown
    }

    /// Marks the place up to which the text has come, if something is held before it.
    fn mark(&mut self) -> Option<u64> {
        if self.steps.iter().all(|step| step.sifter.held() == 0) {
            return None;
        }
        let first = self.steps.first_mut()?;
        first.marks.push_back(first.taken);
        self.marks += 1;
        self.follow_marks();
        Some(self.marks)
    }

    /// Moves each mark on to the next step once all before it has gone there.
    fn follow_marks(&mut self) {
        let mut arriving = 0;
        for step in &mut self.steps {
            step.marks.extend(std::iter::repeat_n(step.taken, arriving));
            let decided = step.taken - step.sifter.held() as u64;
            arriving = step.marks.iter().take_while(|mark| **mark <= decided).count();
            step.marks.drain(..arriving);
        }
        self.marks_passed += arriving as u64;
    }
}

/// One thing that one policy does to one text.
#[derive(Debug)]
struct Step {
    sifter: Sifter,
    /// How many bytes have come.
    taken: u64,
    /// Places behind which chunks wait, in bytes that have come.
    marks: VecDeque<u64>,
}

#[derive(Debug)]
enum Sifter {
    Sieve(Sieve),
    Lines { unwanted: Arc<Redactor>, line: String },
    Chunks { unwanted: Arc<Redactor> },
}

fn steps(policy: &Stream) -> impl Iterator<Item = Step> {
    let drop = policy.drop.iter().map(|(unit, unwanted)| {
        let unwanted = Arc::clone(unwanted);
        match unit {
            DropUnit::Match => Sifter::Sieve(Sieve::redacting(unwanted)),
            DropUnit::Line => Sifter::Lines { unwanted, line: String::new() },
            DropUnit::Chunk => Sifter::Chunks { unwanted },
        }
    });
    let replace =
        policy.replace.iter().map(|replacement| Sifter::Sieve(Sieve::replacing(Arc::clone(replacement))));
    let redact = policy.redact.iter().map(|redactor| Sifter::Sieve(Sieve::redacting(Arc::clone(redactor))));
    drop.chain(replace).chain(redact).map(|sifter| Step { sifter, taken: 0, marks: VecDeque::new() })
}

impl Step {
    fn push(&mut self, more: &str, shown: &mut String) -> Result<(), Overlong> {
        self.taken += more.len() as u64;
        self.sifter.push(more, shown)
    }
}

impl Sifter {
    fn push(&mut self, more: &str, shown: &mut String) -> Result<(), Overlong> {
        match self {
            Self::Sieve(sieve) => return sieve.push(more, shown),
            Self::Lines { unwanted, line } => {
                for piece in more.split_inclusive('\n') {
                    line.push_str(piece);
                    if line.len() > MAX_HELD {
                        return Err(Overlong);
                    }
                    if piece.ends_with('\n') {
                        shown.push_str(&wanted(unwanted, line));
                    }
                }
            }
            Self::Chunks { unwanted } if unwanted.finds_in(more) => {}
            Self::Chunks { .. } => shown.push_str(more),
        }
        Ok(())
    }

    fn finish(&mut self) -> String {
        match self {
            Self::Sieve(sieve) => sieve.finish(),
            Self::Lines { unwanted, line } => wanted(unwanted, line),
            Self::Chunks { .. } => String::new(),
        }
    }

    fn held(&self) -> usize {
        match self {
            Self::Sieve(sieve) => sieve.held(),
            Self::Lines { line, .. } => line.len(),
            Self::Chunks { .. } => 0,
        }
    }
}

/// A whole line, unless it is to be dropped.
fn wanted(unwanted: &Redactor, line: &mut String) -> String {
    let line = std::mem::take(line);
    if unwanted.finds_in(&line) { String::new() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_whose_filter_panics_is_withheld_and_told_of_once() {
        let mut text = Text::new(
            Name { reasoning: false, id: "a".into() },
            vec![Step {
                sifter: Sifter::Lines {
                    unwanted: Arc::new(Redactor::new(vec![], vec![], crate::detect::Style::Mask)),
                    line: String::new(),
                },
                taken: 0,
                marks: VecDeque::new(),
            }],
        );
        assert_eq!(text.push("held"), "");
        assert!(text.mark().is_some());
        assert_eq!(text.guarded("more", |_, _| panic!("a filter's own error")), WITHHELD);
        assert_eq!((text.push("rest\n"), text.finish()), (String::new(), String::new()));
        assert_eq!(text.marks_passed, text.marks, "what waits behind it goes on");
    }
}
