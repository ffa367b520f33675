//! An expression that is true or false for a call.

use std::collections::BTreeSet;

use super::ScriptCompileError;
use super::expression::Expression;
use super::expression_value::ExpressionError;
use super::names::Names;
use crate::call::{CallView, ContextReads, Root};
use crate::path::ArgumentNames;

/// A compiled expression that is true or false for a call.
#[derive(Debug)]
pub struct Predicate(Expression);

impl Predicate {
    /// Compiles an expression such as `input.amount > 100 && tool != "ping"`, as [`Expression::compile`] does.
    ///
    /// ```
    /// use callgate::call::{CallView, SessionState, ToolCall};
    /// use callgate::script::Predicate;
    ///
    /// let predicate = Predicate::compile(r#"input.amount > 100 && !("cc" in input)"#).unwrap();
    /// let (call, session) = (ToolCall::new("c1", "refund", callgate::json::json!({"amount": 250})), SessionState::default());
    /// assert_eq!(predicate.eval(&CallView::new(&call, &session)), Ok(true));
    ///
    /// let call = ToolCall::new("c2", "refund", callgate::json::json!({"amount": "250"}));
    /// assert!(predicate.eval(&CallView::new(&call, &session)).is_err());
    /// ```
    pub fn compile(text: &str) -> Result<Self, ScriptCompileError> {
        Expression::compile(text).map(Self)
    }

    /// Like [`compile`](Self::compile), for an expression that uses the names of a bundle.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_with(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        Expression::compile_with(text, names).map(Self)
    }

    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.0
    }

    /// The members of the call that the expression reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        self.0.roots_read()
    }

    /// The members of the context that the expression reads.
    pub fn context_reads(&self) -> &ContextReads {
        self.0.context_reads()
    }

    /// The arguments that it reads, as far as their names are literals.
    pub fn argument_names(&self) -> ArgumentNames {
        self.0.argument_names()
    }

    /// Whether the expression is true for a call.
    ///
    /// # Errors
    /// As [`Expression::boolean`].
    pub fn eval(&self, view: &CallView<'_>) -> Result<bool, ExpressionError> {
        self.0.boolean(view)
    }
}
