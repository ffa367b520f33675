//! Message templates with placeholders for values of a call: `Refund {{ input.amount }} to {{ input.customer }}?`
//!
//! A placeholder is a member of the call document with keys and indices: `{{ context.tenant }}`,
//! `{{ $.input.items[0].name }}`, `{{ input["odd key"] }}`, or an expression: `{{ order.amount * 2 }}`. `{{{{` is an escape for two braces; a
//! single brace and a closing `}}` are literal.

mod parser;
mod render;

pub use parser::TemplateError;
pub use render::{RenderError, RenderedMessage};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::call::{ContextReads, Root};
use crate::path::ArgumentNames;
use crate::script::{DefinitionName, Expression, Names};

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<TemplatePiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Literal(String),
    Placeholder(Placeholder),
    Expression(ExpressionPlaceholder),
}

/// A placeholder with an expression, such as `{{ order.amount * 2 }}`.
#[derive(Clone, Debug)]
struct ExpressionPlaceholder {
    /// The source text without the braces.
    source: String,
    expression: Arc<Expression>,
}

impl PartialEq for ExpressionPlaceholder {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.expression.definitions() == other.expression.definitions()
    }
}

impl Eq for ExpressionPlaceholder {}

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
        Self::parse_with(text, extra, &Names::default())
    }

    /// Like [`parse_with_names`](Self::parse_with_names), for a template that uses the names of a bundle.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(text: &str, extra: &[&str], names: &Names) -> Result<Self, TemplateError> {
        Ok(Self { pieces: parser::parse_pieces(text, extra, names)? })
    }

    /// Whether it has no placeholders.
    pub fn is_literal(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, TemplatePiece::Literal(_)))
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Expression(placeholder) => Some(&*placeholder.expression),
            TemplatePiece::Placeholder(_) | TemplatePiece::Literal(_) => None,
        })
    }

    /// The definitions of the bundle that the template names.
    pub fn definitions(&self) -> BTreeSet<DefinitionName> {
        self.expressions().flat_map(|expression| expression.definitions().iter().cloned()).collect()
    }

    /// The members of the call that the template reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        let root = |piece: &TemplatePiece| match piece {
            TemplatePiece::Placeholder(Placeholder { root: PlaceholderRoot::Root(root), .. }) => Some(*root),
            TemplatePiece::Placeholder(_) | TemplatePiece::Literal(_) | TemplatePiece::Expression(_) => None,
        };
        let of_expressions = self.expressions().flat_map(Expression::roots_read);
        self.pieces.iter().filter_map(root).chain(of_expressions).collect()
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
        self.expressions().for_each(|expression| reads.extend(expression.context_reads()));
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
        self.expressions().for_each(|expression| names.merge(&expression.argument_names()));
        names
    }
}
