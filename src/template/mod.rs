//! Message templates with placeholders for values of a call: `Refund {{ input.amount }} to {{ input.customer }}?`
//!
//! A placeholder is a member of the call document with keys and indices: `{{ context.tenant }}`,
//! `{{ $.input.items[0].name }}`, `{{ input["odd key"] }}`. `{{{{` is an escape for two braces; a single brace and a
//! closing `}}` are literal.

mod parser;
mod render;

pub use parser::TemplateError;
pub use render::{RenderError, RenderedMessage};

use std::collections::BTreeSet;

use crate::call::{ContextReads, Root};
use crate::path::ArgumentNames;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<TemplatePiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Literal(String),
    Placeholder(Placeholder),
}

/// A placeholder: `{{ … }}`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placeholder {
    /// The source text without the braces.
    source: String,
    root: PlaceholderRoot,
    steps: Vec<PlaceholderStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PlaceholderRoot {
    Root(Root),
    /// A name whose value the caller supplies.
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PlaceholderStep {
    Key(String),
    Index(usize),
}

impl Template {
    /// Parses a template whose placeholders name members of the call.
    ///
    /// # Errors
    /// An unclosed or empty `{{ }}`, an unknown member, or an invalid path, with its position in the text.
    ///
    /// # Examples
    /// ```
    /// use callgate::call::{CallView, SessionState, ToolCall};
    /// use callgate::template::Template;
    ///
    /// let template = Template::parse("Refund {{ input.amount }}?").unwrap();
    /// let (call, session) = (ToolCall::new("c1", "refund", callgate::json::json!({"amount": 250})), SessionState::default());
    /// assert_eq!(template.render(&CallView::new(&call, &session), &[]).text, "Refund 250?");
    /// ```
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_with_names(text, &[])
    }

    /// Like [`parse`](Self::parse), and also allows names whose values are supplied at rendering. They take precedence over
    /// members of the call with the same name.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with_names(text: &str, extra: &[&str]) -> Result<Self, TemplateError> {
        Ok(Self { pieces: parser::parse_pieces(text, extra)? })
    }

    /// The members of the call that the template reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        let root = |piece: &TemplatePiece| match piece {
            TemplatePiece::Placeholder(Placeholder { root: PlaceholderRoot::Root(root), .. }) => Some(*root),
            TemplatePiece::Placeholder(_) | TemplatePiece::Literal(_) => None,
        };
        self.pieces.iter().filter_map(root).collect()
    }

    /// The members of the context that the template reads.
    pub fn context_reads(&self) -> ContextReads {
        let mut reads = ContextReads::default();
        for piece in &self.pieces {
            if let TemplatePiece::Placeholder(Placeholder {
                root: PlaceholderRoot::Root(Root::Context),
                steps,
                ..
            }) = piece
            {
                match steps.first() {
                    Some(PlaceholderStep::Key(name)) => reads.add(name),
                    Some(PlaceholderStep::Index(_)) | None => reads.add_everything(),
                }
            }
        }
        reads
    }

    /// The arguments that the template reads.
    pub fn argument_names(&self) -> ArgumentNames {
        let mut names = ArgumentNames::default();
        for piece in &self.pieces {
            if let TemplatePiece::Placeholder(Placeholder {
                root: PlaceholderRoot::Root(Root::Input),
                steps,
                ..
            }) = piece
            {
                // An index has no name, so a read of one element counts as a read of all.
                steps.iter().fold(&mut names, |at, step| match step {
                    PlaceholderStep::Key(name) => at.add_member(std::slice::from_ref(name)),
                    PlaceholderStep::Index(_) => at.add_any_member(),
                });
            }
        }
        names
    }
}
