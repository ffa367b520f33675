//! An expression that is true or false of a call.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rhai::{AST, Dynamic, EvalAltResult, Position, Scope};

use super::check::check;
use super::engine::{ENGINE, Regexes, run};
use super::reads::Reads;
use super::syntax::offset;
use crate::call::{CallView, Root};
use crate::json::JsonType;

/// An expression longer than this, in bytes, is refused.
const MAX_LENGTH: usize = 16 << 10;

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes from the start of the text.
    pub offset: Option<usize>,
    /// What to do.
    pub help: Option<String>,
}

impl ScriptError {
    pub(super) fn help(mut self, help: String) -> Self {
        self.help = Some(help);
        self
    }
}

/// Why an expression is neither true nor false of a call: the test that it stands for is undecided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PredicateError {
    /// What went wrong.
    pub message: String,
}

/// A compiled expression. It can be evaluated on several threads at once.
#[derive(Debug)]
pub struct Predicate {
    ast: AST,
    reads: Reads,
    regexes: Regexes,
}

impl Predicate {
    /// Compiles a Rhai expression over the members of the call document: `input.amount > 100 && tool != "ping"`.
    ///
    /// Beside Rhai's operators `&& || ?? ! == != < <= > >= + - * / % in !in` it may call [`FUNCTIONS`](super::FUNCTIONS).
    /// Nothing is converted: each operator and function takes values of its own types and raises at others; `x in y` looks
    /// for an element of an array, or for a key of `input`, `context` or `session`. Whole numbers are exact, decimals are
    /// the nearest float, `7 / 2` is 3.5, and 1 and 1.0 are the same. An index that is reckoned needs `at(array, index)`.
    ///
    /// Errors: bad syntax, an unknown variable or function, a wrong number of arguments, an invalid regex, and
    /// whatever else of Rhai an expression has no use for.
    ///
    /// ```
    /// use callgate::call::{CallView, SessionState, ToolCall};
    /// use callgate::script::Predicate;
    ///
    /// let predicate = Predicate::compile(r#"input.amount > 100 && !("cc" in input)"#).unwrap();
    /// let (call, session) = (ToolCall::new("c1", "refund", serde_json::json!({"amount": 250})), SessionState::default());
    /// assert_eq!(predicate.eval(&CallView::new(&call, &session)), Ok(true));
    ///
    /// let call = ToolCall::new("c2", "refund", serde_json::json!({"amount": "250"}));
    /// assert!(predicate.eval(&CallView::new(&call, &session)).is_err());
    /// ```
    pub fn compile(text: &str) -> Result<Self, ScriptError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the expression is longer than {MAX_LENGTH} bytes");
            return Err(ScriptError { message, offset: None, help: None });
        }
        let ast = guarded(|| ENGINE.compile_expression(text))
            .map_err(|message| ScriptError { message, offset: None, help: None })?
            .map_err(|error| ScriptError {
                message: first_letter_lowered(error.err_type().to_string()),
                offset: offset(text, error.position()),
                help: None,
            })?;
        let checked = check(text, &ast)?;
        Ok(Self { ast, reads: checked.reads, regexes: Arc::new(checked.regexes) })
    }

    /// The members of the call that the expression reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        self.reads.roots().collect()
    }

    /// Whether the expression is true of a call. Errors: anything but a boolean, a comparison of values of different
    /// types, a missing property or member, a part of the session that could not be decided, a number that would lose
    /// digits, and every limit of the sandbox.
    pub fn eval(&self, view: &CallView<'_>) -> Result<bool, PredicateError> {
        guarded(|| self.evaluate(view))
            .and_then(|result| result)
            .map_err(|message| PredicateError { message })
    }

    fn evaluate(&self, view: &CallView<'_>) -> Result<bool, String> {
        let copied = self.reads.copy(view)?;
        let value: Dynamic = run(copied.roots, Arc::clone(&self.regexes), || {
            ENGINE.eval_ast_with_scope(&mut Scope::new(), &self.ast)
        })
        .map_err(|error| explained(*error))?;
        value.as_bool().map_err(|_| {
            format!("the expression gives a value of type {}, not a boolean", type_name(value.type_name()))
        })
    }
}

/// A panic, wherever it comes from, is an error like any other.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| "the expression made its evaluation fail".to_owned())
}

fn explained(error: EvalAltResult) -> String {
    match error {
        EvalAltResult::ErrorPropertyNotFound(name, _) => format!("there is no `{name}`"),
        EvalAltResult::ErrorIndexNotFound(index, _) => format!("there is no element {index}"),
        EvalAltResult::ErrorArrayBounds(_, index, _) => format!("the array has no element {index}"),
        EvalAltResult::ErrorTooManyOperations(_) | EvalAltResult::ErrorTerminated(..) => {
            "the expression takes too many steps or too long".to_owned()
        }
        EvalAltResult::ErrorMismatchDataType(wanted, found, _) => {
            format!("a value of type {} stands where a {} is needed", type_name(&found), type_name(&wanted))
        }
        EvalAltResult::ErrorDotExpr(message, _) => match message.split('\'').nth(1) {
            Some(property) => format!("`{property}` is read from a value that is no object"),
            None => first_letter_lowered(message),
        },
        EvalAltResult::ErrorRuntime(message, _) => message.to_string(),
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => explained(*inner),
        mut other => {
            other.set_position(Position::NONE);
            first_letter_lowered(other.to_string())
        }
    }
}

/// Rhai's name of a type, in terms of JSON.
fn type_name(name: &str) -> &str {
    match name {
        "i64" | "f64" => JsonType::Number.name(),
        "bool" => JsonType::Boolean.name(),
        "()" => JsonType::Null.name(),
        "map" => JsonType::Object.name(),
        other => other,
    }
}

fn first_letter_lowered(text: String) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
