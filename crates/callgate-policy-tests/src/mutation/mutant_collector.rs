//! Collects mutants: a mutation, its edits and a case that would notice them → [`Mutant`].

use super::mutant::Mutant;
use super::{Mutation, POLICY_REMOVED};
use callgate::diagnostic::{Edit, Fix, SourceMap, Span};

/// Collects the changes of a bundle, with the policy or definition to which each belongs.
pub(super) struct MutantCollector<'a> {
    pub(super) sources: &'a SourceMap,
    pub(super) policy: Option<String>,
    /// The definition, such as `let amount`.
    pub(super) definition: Option<String>,
    /// The span of the policy or definition.
    pub(super) owner_span: Option<Span>,
    pub(super) mutants: Vec<Mutant>,
}

impl<'a> MutantCollector<'a> {
    pub(super) fn new(sources: &'a SourceMap) -> Self {
        Self { sources, policy: None, definition: None, owner_span: None, mutants: Vec::new() }
    }

    /// The text of a span.
    pub(super) fn span_text(&self, span: Span) -> &str {
        self.sources
            .get(span.source)
            .and_then(|source| source.text().get(span.start()..span.end()))
            .unwrap_or_default()
    }

    /// The whole text of the file that contains a span.
    pub(super) fn file_text(&self, span: Span) -> &str {
        self.sources.get(span.source).map_or("", |source| source.text())
    }

    /// Adds a change that replaces the text of a span.
    pub(super) fn replace(
        &mut self,
        mutation: Mutation,
        span: Span,
        text: impl Into<String>,
        noticed_by: impl Into<String>,
    ) {
        let edits = vec![Edit { span, replacement: text.into() }];
        self.edit(mutation, span, edits, noticed_by);
    }

    /// Adds a change of several edits in one line.
    pub(super) fn edit(
        &mut self,
        mutation: Mutation,
        span: Span,
        edits: Vec<Edit>,
        noticed_by: impl Into<String>,
    ) {
        self.add(mutation, span, edits, false, noticed_by.into());
    }

    /// Adds a change that removes text, for which the edit itself need not be displayed.
    pub(super) fn remove(
        &mut self,
        mutation: Mutation,
        span: Span,
        edit: Edit,
        noticed_by: impl Into<String>,
    ) {
        let across_lines = edit.replacement.is_empty() && self.span_text(edit.span).contains('\n');
        let is_removal = across_lines || mutation == POLICY_REMOVED;
        self.add(mutation, span, vec![edit], is_removal, noticed_by.into());
    }

    fn add(
        &mut self,
        mutation: Mutation,
        span: Span,
        edits: Vec<Edit>,
        is_removal: bool,
        noticed_by: String,
    ) {
        self.mutants.push(Mutant {
            mutation,
            policy: self.policy.clone(),
            definition: self.definition.clone(),
            owner_span: self.owner_span,
            span,
            fix: Fix { title: mutation.doc.to_owned(), edits },
            is_removal,
            noticed_by,
        });
    }
}
