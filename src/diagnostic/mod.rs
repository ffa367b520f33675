//! Diagnostics: problems of rules files with code, position and fix, reported by all modules.

mod codes;
mod fix;
pub mod render;
mod source_map;

pub use codes::*;
pub use codes::{ALL, Code, find_code};
pub use fix::{Edit, Fix};
pub use source_map::{Location, SourceFile, SourceId, SourceMap, Span};

use serde::Serialize;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The bundle is not activated.
    Error,
    /// The bundle is valid, but probably not as intended.
    Warning,
}

/// A secondary position that explains a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The position.
    pub span: Span,
    /// A short explanation.
    pub message: String,
}

/// One problem of a rules file, for the person who fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code and name.
    pub code: &'static Code,
    /// The problem: lower case, no full stop, user input in backticks.
    pub message: String,
    /// The exact range of the problem.
    pub span: Option<Span>,
    /// The file, if there is no span (a file that can't be read).
    pub file: Option<String>,
    /// Secondary positions that explain the problem.
    pub labels: Vec<Label>,
    /// The fix, in words.
    pub help: Option<String>,
    /// The id of the affected policy.
    pub policy: Option<String>,
    /// The automatic fix.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// Creates a problem at a position.
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

    /// Creates a problem with a file as a whole, which may be unreadable.
    pub fn for_file(code: &'static Code, file: impl Into<String>, message: impl Into<String>) -> Self {
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

    /// Sets the help text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the automatic fix, if there is one.
    #[must_use]
    pub fn with_fix(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix;
        self
    }

    /// Adds a secondary position.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: text.into() });
        self
    }

    /// The severity, from the code.
    pub fn severity(&self) -> Severity {
        self.code.severity
    }
}

/// All diagnostics of one run, in the order of files and positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// How many more were counted.
    left_out: usize,
    /// Whether any of those was an error.
    left_out_error: bool,
}

/// The maximum number of stored diagnostics. The rest is only counted.
const MAX_STORED: usize = 1_000;

impl Diagnostics {
    /// Adds a diagnostic. After the first 1,000, it is only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.is_full() {
            self.left_out = self.left_out.saturating_add(1);
            self.left_out_error |= diagnostic.severity() == Severity::Error;
        } else {
            self.list.push(diagnostic);
        }
    }

    /// Adds all diagnostics of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        other.list.into_iter().for_each(|diagnostic| self.push(diagnostic));
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.left_out_error |= other.left_out_error;
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_STORED
    }

    /// How many were found but not stored.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.left_out_error || self.list.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    /// The number of diagnostics, including those not stored.
    pub fn len(&self) -> usize {
        self.list.len().saturating_add(self.left_out)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The stored diagnostics, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Removes the diagnostics that do not satisfy a predicate.
    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(keep);
    }

    /// The diagnostics added since there were `count`, mutable for completion.
    pub fn since(&mut self, count: usize) -> &mut [Diagnostic] {
        self.list.get_mut(count..).unwrap_or_default()
    }

    /// Sorts by file and position, and removes exact duplicates. If errors were left out, appends a diagnostic with their number.
    pub fn sort(&mut self) {
        self.list.retain(|diagnostic| diagnostic.code != &PROBLEMS_LEFT_OUT);
        self.list.sort_by_key(|diagnostic| (diagnostic.span.is_some(), diagnostic.span));
        self.list.dedup();
        if self.left_out > 0 && self.has_errors() {
            let message = format!("{} more problems are not shown", self.left_out);
            let note = Diagnostic { file: None, ..Diagnostic::for_file(&PROBLEMS_LEFT_OUT, "", message) };
            self.list.push(note.with_help("fix the problems shown, then check again"));
        }
    }
}

/// Returns the known word closest to `word`, if it is close enough to be the intended one.
pub fn closest_match<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison takes time and memory proportional to the product of both lengths.
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
