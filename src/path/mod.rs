//! JSONPath (RFC 9535) over the call document, with exact numbers, bounded work and type checks.
//!
//! In RFC 9535, a query yields nothing both for an absent value and for a value of an unexpected type. The gate must distinguish the
//! two, so a [`Path`] yields nodes, no nodes, or a [`PathEvaluationError`], also if a filter compares values of different types. A [`Query`] over
//! one value follows the RFC: there such a comparison is false.

mod ast;
mod edit;
mod evaluator;
mod parser;
mod evaluation_error;
mod argument_names;
mod name_filter;
mod pattern;
mod argument_pointers;
mod dependencies;
mod element_name;
mod element_syntax;
mod scanner;
mod singular_path;

pub use argument_names::{ArgumentNames, MisreadName};
pub use argument_pointers::ArgumentPointers;
pub use ast::PathStep;
pub use edit::{EditError, NodeLocation, get_mut, remove, remove_all, rename, set};
pub use element_name::{ElementName, ElementNames, MAX_ELEMENT_NESTING};
pub use evaluation_error::{ExpectedType, PathEvaluationError};
pub use name_filter::NameFilter;
pub use singular_path::{follow_json, follow_steps};

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use self::ast::{ParsedQuery, QueryBase, Segment};
use self::dependencies::PathDependencies;
use self::evaluator::{ChildKey, Evaluator, QueryDocument, TypeMismatchMode};
use self::parser::{QueryTarget, parse_query};
use crate::call::{CallView, ContextReads, NodeRef, Root};
use crate::json::{JsonType, Value};
use crate::work_limit;

/// The nodes that a path yields, in the order of RFC 9535; empty if the named value is absent.
pub type Nodes<'a> = SmallVec<[NodeRef<'a>; 2]>;

/// The number of the first segment after the root, which is segment 1.
const FIRST_SEGMENT: usize = 2;

/// A syntax or type error in a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PathError {
    /// The problem.
    pub message: String,
    /// The byte range of the problem in the text.
    pub range: Range<usize>,
    /// The fix, if known.
    pub help: Option<String>,
}

impl PathError {
    fn new(message: impl Into<String>, range: Range<usize>) -> Self {
        Self { message: message.into(), range, help: None }
    }

    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A query over one JSON value, exactly as RFC 9535 defines it.
#[derive(Clone, Debug)]
pub struct Query {
    query: ParsedQuery,
}

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// The query is invalid or not well-typed by RFC 9535, or exceeds the limits of length and nesting.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Ok(Self { query: parse_query(text, QueryTarget::Value)? })
    }

    /// The nodes that the query selects from `value`, in order.
    ///
    /// # Errors
    /// [`PathEvaluationError::LimitExceeded`], and no other.
    pub fn select<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, PathEvaluationError> {
        let mut selected = Vec::new();
        Evaluator::new(QueryDocument::Value(value)).run(
            &self.query,
            TypeMismatchMode::Ignore,
            &mut |node, _| {
                selected.extend(node.as_json());
                Ok(())
            },
        )?;
        Ok(selected)
    }
}

/// A query over the call document: `$.input.amount`, `$.context.roles[*]`, `$.input.items[?@.price > 100]`.
///
/// ```
/// use callgate::call::{CallView, SessionState, ToolCall};
/// use callgate::path::{Path, PathEvaluationError};
///
/// let call = ToolCall::new("c1", "createRefund", callgate::json::json!({ "customer": "abc" }));
/// let session = SessionState::default();
/// let view = CallView::new(&call, &session);
/// assert!(Path::parse("$.input.amount").unwrap().nodes(&view).unwrap().is_empty());
/// assert!(matches!(Path::parse("$.input.customer.id").unwrap().nodes(&view), Err(PathEvaluationError::WrongType { .. })));
/// ```
///
/// Clones share the parsed path, so that equal paths of a bundle need memory once.
#[derive(Clone, Debug)]
pub struct Path(Arc<ParsedPath>);

#[derive(Debug)]
struct ParsedPath {
    text: Box<str>,
    root: Root,
    query: ParsedQuery,
    steps: Option<Vec<PathStep>>,
    dependencies: PathDependencies,
    arguments: ArgumentNames,
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// The path is invalid by RFC 9535, does not start with a member of the call document (in filters too), or uses
    /// `match()` or `search()` with a pattern that is not a literal.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Self::parse_with(text, &ElementNames::NONE)
    }

    /// Like [`parse`](Self::parse), in a condition on elements with these names: `$item.price`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(text: &str, elements: &ElementNames) -> Result<Self, PathError> {
        let query = parse_query(text, QueryTarget::Call(elements))?;
        let QueryBase::CallMember(root) = query.base else {
            return Err(PathError::new("a path reads one member of the call", 0..text.len()));
        };
        Ok(Self(Arc::new(ParsedPath {
            text: text.into(),
            root,
            steps: query.segments.iter().map(Segment::as_step).collect(),
            dependencies: PathDependencies::from_query(&query),
            arguments: ArgumentNames::from_query(&query),
            query,
        })))
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The member of the call document that it selects from.
    pub fn root(&self) -> Root {
        self.0.root
    }

    /// Every member of the call document that it reads, its root first, then those in filters.
    pub fn roots_read(&self) -> &[Root] {
        &self.0.dependencies.roots
    }

    /// The members of the context that it reads, in filters too.
    pub fn context_reads(&self) -> &ContextReads {
        &self.0.dependencies.context
    }

    /// The names of arguments that it reads, in filters too.
    pub fn argument_names(&self) -> &ArgumentNames {
        &self.0.arguments
    }

    /// The names that it reads from elements of quantifiers.
    pub fn members_of_elements(&self) -> BTreeSet<String> {
        ArgumentNames::members_of_elements(&self.0.query)
    }

    /// Whether it consists of names and indices only, and so yields at most one node.
    pub fn is_singular(&self) -> bool {
        self.0.steps.is_some()
    }

    /// The steps below the root. Returns `None` if the path is not singular.
    pub fn steps(&self) -> Option<&[PathStep]> {
        self.0.steps.as_deref()
    }

    /// The nodes that the path yields.
    ///
    /// # Errors
    /// A value of an unexpected type, arguments that are not an object, an undecided part of the session, or too much work.
    /// Absence is not an error.
    pub fn nodes<'a>(&self, view: &CallView<'a>) -> Result<Nodes<'a>, PathEvaluationError> {
        self.check(view)?;
        let Some(steps) = &self.0.steps else { return self.general_nodes(view) };
        match view.member(self.0.root) {
            Some(root) => Ok(follow_steps(root, steps)?.into_iter().collect()),
            None => Ok(Nodes::new()),
        }
    }

    /// The nodes that the path yields, for conditions on elements: a part of the path that is null has no elements. Elements are items of
    /// arrays. If the path goes on to a value of each element, as in `[*].price`, each element has one.
    ///
    /// # Errors
    /// As [`Path::nodes`], except for null; and an object in place of an array, and an element without the value.
    pub fn element_nodes<'a>(&self, view: &CallView<'a>) -> Result<Nodes<'a>, PathEvaluationError> {
        self.check(view)?;
        let mut nodes = Nodes::new();
        let last_list = self.0.query.segments.iter().rposition(|segment| segment.as_step().is_none());
        let noticed = TypeMismatchMode::ReportElements {
            segment: FIRST_SEGMENT,
            required_from: last_list.map_or(usize::MAX, |last| FIRST_SEGMENT + last + 1),
        };
        Evaluator::new(QueryDocument::Call(*view)).run(&self.0.query, noticed, &mut |node, _| {
            nodes.push(node);
            Ok(())
        })?;
        Ok(nodes)
    }

    /// The locations of the nodes below the root, for edits of the root's value.
    ///
    /// # Errors
    /// As [`Path::nodes`].
    pub fn locations(&self, view: &CallView<'_>) -> Result<Vec<NodeLocation>, PathEvaluationError> {
        self.check(view)?;
        let mut locations = Vec::new();
        self.evaluate(view, &mut |_, keys| locations.push(keys.iter().copied().collect()))?;
        Ok(locations)
    }

    fn general_nodes<'a>(&self, view: &CallView<'a>) -> Result<Nodes<'a>, PathEvaluationError> {
        let mut nodes = Nodes::new();
        self.evaluate(view, &mut |node, _| nodes.push(node))?;
        Ok(nodes)
    }

    fn evaluate<'a>(
        &self,
        view: &CallView<'a>,
        receive: &mut dyn FnMut(NodeRef<'a>, &[ChildKey<'a>]),
    ) -> Result<(), PathEvaluationError> {
        let noticed = TypeMismatchMode::Report { segment: FIRST_SEGMENT };
        Evaluator::new(QueryDocument::Call(*view)).run(&self.0.query, noticed, &mut |node, keys| {
            receive(node, keys);
            Ok(())
        })
    }

    /// Checks the conditions under which the whole path has no result, whatever it selects.
    fn check(&self, view: &CallView<'_>) -> Result<(), PathEvaluationError> {
        work_limit::spend(1).map_err(|_| PathEvaluationError::LimitExceeded)?;
        if self.0.dependencies.roots.contains(&Root::Input) && !view.input.is_object() {
            let found = JsonType::from_value(view.input);
            return Err(PathEvaluationError::WrongType { segment: 1, expected: ExpectedType::Object, found });
        }
        view.check_known(self.0.dependencies.roots.iter().copied())?;
        let unsettled = view.session.unknown_parts();
        if !unsettled.is_empty() && self.0.dependencies.reads_any_of(unsettled) {
            return Err(PathEvaluationError::Undecided);
        }
        Ok(())
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.text)
    }
}

#[cfg(test)]
mod tests;
