//! What is wrong, where, and what to do: the words in which every room reports problems of rules files.

mod codes;
mod fix;
pub mod render;
mod span;

pub use codes::*;
pub use codes::{ALL, Code, by_name};
pub use fix::{Edit, Fix};
pub use span::{Location, Source, SourceId, SourceMap, Span};

use serde::Serialize;

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The bundle does not become active.
    Error,
    /// The bundle works, but probably not as meant.
    Warning,
}

/// A second place that explains a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there, in a few words.
    pub text: String,
}

/// One problem of a rules file, for the person who must mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code and name.
    pub code: &'static Code,
    /// What is wrong: lower case, no full stop, user input in backticks.
    pub message: String,
    /// The exact words that are wrong.
    pub span: Option<Span>,
    /// The file, where no span can say it (a file that can't be read).
    pub file: Option<String>,
    /// Other places that explain the problem.
    pub labels: Vec<Label>,
    /// What to do.
    pub help: Option<String>,
    /// The policy concerned, by id.
    pub policy: Option<String>,
    /// What a program can do about it.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// A problem at a place.
    pub fn new(code: &'static Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            span: Some(span),
            file: None,
            labels: Vec::new(),
            help: None,
            policy: None,
            fix: None,
        }
    }

    /// A problem with a file as a whole, which may not even be readable.
    pub fn of_file(code: &'static Code, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            span: None,
            file: Some(file.into()),
            labels: Vec::new(),
            help: None,
            policy: None,
            fix: None,
        }
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what a program can do about it, where it can.
    #[must_use]
    pub fn fix(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix;
        self
    }

    /// Points at a second place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        self.code.severity
    }
}

/// Everything that was found in one go, in the order of files and places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// How many more there were.
    left_out: usize,
    /// Whether there was an error among those.
    left_out_error: bool,
}

/// How many diagnostics are kept. Of the rest it is only counted how many there are.
const MAX_KEPT: usize = 1_000;

impl Diagnostics {
    /// Adds one. After the first 1,000 it is only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.is_full() {
            self.left_out = self.left_out.saturating_add(1);
            self.left_out_error |= diagnostic.severity() == Severity::Error;
        } else {
            self.list.push(diagnostic);
        }
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        other.list.into_iter().for_each(|diagnostic| self.push(diagnostic));
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.left_out_error |= other.left_out_error;
    }

    /// Whether no more are kept.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_KEPT
    }

    /// How many were found and are not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.left_out_error || self.list.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    /// How many there are, with those that are not kept.
    pub fn len(&self) -> usize {
        self.list.len().saturating_add(self.left_out)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The diagnostics that are kept, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Leaves out those of which this is not true.
    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(keep);
    }

    /// The diagnostics added since there were `count`, to be completed in place.
    pub fn since(&mut self, count: usize) -> &mut [Diagnostic] {
        self.list.get_mut(count..).unwrap_or_default()
    }

    /// Sorts by file and place, and drops exact repetitions. Where errors were left out, the last diagnostic says how many.
    pub fn sort(&mut self) {
        self.list.retain(|diagnostic| diagnostic.code != &PROBLEMS_LEFT_OUT);
        self.list.sort_by_key(|diagnostic| (diagnostic.span.is_some(), diagnostic.span));
        self.list.dedup();
        if self.left_out > 0 && self.has_errors() {
            let message = format!("{} more problems are not shown", self.left_out);
            let note = Diagnostic { file: None, ..Diagnostic::of_file(&PROBLEMS_LEFT_OUT, "", message) };
            self.list.push(note.help("mend what is shown, then check again"));
        }
    }
}

/// The known word nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes time and memory by the product of both lengths.
    const LONGEST: usize = 100;
    if word.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate)
        })
        .filter(|(distance, candidate)| {
            *distance <= 1.max(candidate.chars().count().max(word.chars().count()) / 3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
