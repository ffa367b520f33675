//! Comments that accept surviving mutants: `# callgate: survives threshold because the shop knows whole amounts only`, on
//! the line of the change or above it, or above the policy or definition that contains the change.

use serde::Serialize;

use super::mutant::Mutant;
use super::{MUTATIONS, Mutation};
use callgate::diagnostic::{Span, closest_match};
use callgate::policy::LoadedBundle;
use callgate::source::{DirectiveComment, find_comments};

/// The `survives` comments of all files of a bundle.
pub(super) struct AcceptanceComments<'a> {
    built: &'a LoadedBundle,
    /// Each comment, with a flag for each of its words: whether it has accepted a survivor.
    comments: Vec<(DirectiveComment<'a>, Vec<bool>)>,
}

/// A comment that accepts nothing, or is invalid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommentProblem {
    /// The file's name, as given or found.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The problem.
    pub message: String,
}

impl<'a> AcceptanceComments<'a> {
    pub(super) fn of(built: &'a LoadedBundle) -> Self {
        let found = built.files.iter().flat_map(|file| {
            let source = built.sources.get(file.source);
            source
                .map(|source| find_comments("survives", file.source, source, &file.root))
                .unwrap_or_default()
        });
        let comments = found.map(|comment| {
            let used = vec![false; comment.words.len()];
            (comment, used)
        });
        Self { built, comments: comments.collect() }
    }

    /// The reason for which a comment accepts a surviving change. Returns `None` if none does.
    pub(super) fn reason(&mut self, change: &Mutant) -> Option<String> {
        let lines = [Some(change.span), change.owner_span].map(|span| span.and_then(|span| self.line(span)));
        let mut reason = None;
        for (comment, used) in &mut self.comments {
            if comment.span.source != change.span.source || !lines.contains(&Some(comment.line)) {
                continue;
            }
            for ((_, word), used) in comment.words.iter().zip(used) {
                if *word == change.mutation.name {
                    *used = true;
                    reason = reason.or(comment.reason);
                }
            }
        }
        reason.map(str::to_owned)
    }

    fn line(&self, span: Span) -> Option<usize> {
        Some(self.built.sources.get(span.source)?.position(span.start()).0)
    }

    /// The problems of the comments, after all survivors were looked up. `tried_all`: whether no change was left out.
    pub(super) fn unused(self, tried_all: bool) -> Vec<CommentProblem> {
        let mut found = Vec::new();
        for (comment, used) in &self.comments {
            for ((span, word), used) in comment.words.iter().zip(used) {
                let message = match find_mutation(word) {
                    None => format!("unknown mutation `{word}`{}", suggestion(word)),
                    Some(_) if !used && tried_all => {
                        format!(
                            "no `{word}` survives here; remove it from the comment, so that it can't hide one later"
                        )
                    }
                    Some(_) => continue,
                };
                found.extend(CommentProblem::new(self.built, *span, message));
            }
            if comment.words.is_empty() || comment.reason.is_none() {
                let message = match comment.words.is_empty() {
                    true => {
                        "this comment names no mutation; write `# callgate: survives threshold because …`"
                    }
                    false => "this comment gives no reason; write `# callgate: survives threshold because …`",
                };
                found.extend(CommentProblem::new(self.built, comment.span, message.to_owned()));
            }
        }
        found
    }
}

impl CommentProblem {
    pub(super) fn new(built: &LoadedBundle, span: Span, message: String) -> Option<Self> {
        let location = built.sources.locate(span)?;
        Some(Self { file: location.file, line: location.line, column: location.column, message })
    }
}

fn find_mutation(word: &str) -> Option<&'static Mutation> {
    MUTATIONS.iter().find(|mutation| mutation.name == word)
}

fn suggestion(word: &str) -> String {
    match closest_match(word, MUTATIONS.iter().map(|mutation| mutation.name)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => {
            let names: Vec<String> =
                MUTATIONS.iter().map(|mutation| format!("`{}`", mutation.name)).collect();
            format!("; the mutations are {}", names.join(", "))
        }
    }
}
