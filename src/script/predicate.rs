//! Expressions over one call: [`Expression`] (call → value) and [`Predicate`] (call → boolean).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::ScriptCompileError;
use super::compiler::compile;
use super::dependencies::ProgramDependencies;
use super::fuel::{EvalError, Fuel, ScriptLimits};
use super::function_table::EffectKind;
use super::interpreter::{ControlFlow, EffectError, Interpreter, World};
use super::parser::{Language, catch_panic, parse};
use super::program::{Program, ReadOnlyVariable};
use super::value::ScriptValue;
use crate::call::{CallView, ContextReads, NodeRef, Root};
use crate::json::{Map, Value};
use crate::path::ArgumentNames;

/// The maximum length of an expression, in bytes.
const MAX_EXPRESSION: usize = 16 << 10;

static EXPRESSION_LIMITS: ScriptLimits = ScriptLimits {
    subject: "the expression",
    steps: 1_000_000,
    string_bytes: 64 << 10,
    total_string_bytes: 16 << 20,
    values: 100_000,
    output_bytes: 64 << 10,
    nesting: 160,
    call_depth: 1,
};

/// The context of a call without one.
pub(super) static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// An evaluation error of an expression; the condition that uses it is undecided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// The problem.
    pub message: String,
}

/// A compiled expression, which several threads can evaluate at once.
#[derive(Debug)]
pub struct Expression {
    program: Program,
    dependencies: ProgramDependencies,
}

impl Expression {
    /// Compiles a Rhai expression over the members of the call document: `to_lower(input.query)`.
    ///
    /// Beside Rhai's operators `&& || ?? ! == != < <= > >= + - * / % ** in !in` it can call [`FUNCTIONS`](super::FUNCTIONS),
    /// except those of scripts only. Nothing is converted: each operator and function takes values of its own types, and
    /// any other type is an error; `x in y` looks for an element of an array, or for a key of `input`, `context` or `session`.
    /// Numbers are exact decimals of up to 34 significant digits ([`NUMBERS`](super::NUMBERS)): `7 / 2` is 3.5, and 1 and 1.0 are
    /// the same.
    ///
    /// # Errors
    /// Invalid syntax, an unknown variable or function, a wrong number of arguments, an invalid regex, and
    /// Rhai features that expressions do not support.
    pub fn compile(text: &str) -> Result<Self, ScriptCompileError> {
        let ast = parse(text, Language::Expression, MAX_EXPRESSION)?;
        let compiled = compile(text, &ast, Language::Expression)?;
        Ok(Self { program: compiled.program, dependencies: compiled.dependencies })
    }

    /// The members of the call that the expression reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        self.dependencies.roots.clone()
    }

    /// The members of the context that the expression reads.
    pub fn context_reads(&self) -> &ContextReads {
        &self.dependencies.context
    }

    /// The arguments that it reads, as far as their names are literals.
    pub fn argument_names(&self) -> ArgumentNames {
        self.dependencies.argument_names()
    }

    /// Evaluates the expression for a call.
    ///
    /// # Errors
    /// A comparison of values of different types, a missing property or member, an undecided part of the session, a result of more
    /// than 34 digits, and any exceeded limit of the sandbox.
    ///
    /// # Examples
    /// ```
    /// use callgate::call::{CallView, SessionState, ToolCall};
    /// use callgate::script::Expression;
    /// use callgate::json::json;
    ///
    /// let expression = Expression::compile("[to_lower(input.q), input.page]").unwrap();
    /// let (call, session) = (ToolCall::new("c1", "search", json!({"q": "Rust", "page": 2})), SessionState::default());
    /// assert_eq!(expression.value(&CallView::new(&call, &session)), Ok(json!(["rust", 2])));
    /// ```
    pub fn value(&self, view: &CallView<'_>) -> Result<Value, ExpressionError> {
        self.evaluate(view, |value, work| {
            value.to_json(work).map_err(|fault| match fault {
                EvalError::Error(message) | EvalError::LimitExceeded(message) => message,
            })
        })
    }

    fn evaluate<T>(
        &self,
        view: &CallView<'_>,
        make: impl FnOnce(&ScriptValue<'_>, &Fuel) -> Result<T, String>,
    ) -> Result<T, ExpressionError> {
        catch_panic(|| self.evaluate_unguarded(view, make))
            .and_then(|result| result)
            .map_err(|message| ExpressionError { message })
    }

    fn evaluate_unguarded<T>(
        &self,
        view: &CallView<'_>,
        make: impl FnOnce(&ScriptValue<'_>, &Fuel) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.dependencies.roots.contains(&Root::Input) && !view.input.is_object() {
            return Err("the input is not a JSON object".to_owned());
        }
        self.dependencies.check_decided(view.session)?;
        let mut evaluation = Interpreter::new(&self.program, CallHost(*view), Fuel::new(&EXPRESSION_LIMITS));
        match evaluation.run(Vec::new()) {
            Ok(value) => make(&value, &evaluation.fuel),
            Err(ControlFlow::Error(message, _) | ControlFlow::LimitExceeded(message, _)) => Err(message),
            Err(_) => Err("the expression returns no value".to_owned()),
        }
    }
}

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
    /// A result that is not a boolean, and the errors of [`Expression::value`].
    pub fn eval(&self, view: &CallView<'_>) -> Result<bool, ExpressionError> {
        self.0.evaluate(view, |value, _| match value {
            ScriptValue::Boolean(value) => Ok(*value),
            ScriptValue::Json(Value::Bool(value)) => Ok(*value),
            other => {
                Err(format!("the expression returns a value of type {}, not a boolean", other.json_type()))
            }
        })
    }
}

/// The call that an expression reads.
struct CallHost<'a>(CallView<'a>);

impl<'a> World<'a> for CallHost<'a> {
    fn read_member(&self, member: ReadOnlyVariable) -> Result<ScriptValue<'a>, String> {
        let ReadOnlyVariable::Root(root) = member else {
            return Err("an expression has no options".to_owned());
        };
        match self.0.member(root) {
            Some(NodeRef::Json(value)) => Ok(ScriptValue::Json(value)),
            Some(NodeRef::Text(text)) => Ok(ScriptValue::Borrowed(text)),
            None if root == Root::Context => Ok(ScriptValue::Json(&EMPTY)),
            None if root.is_settle_only() => {
                Err(format!("`{}` is available only once the call has settled", root.name()))
            }
            None => Err(format!("the call has no `{}`", root.name())),
        }
    }

    fn request_effect(
        &mut self,
        _: EffectKind,
        _: Vec<ScriptValue<'a>>,
        _: &Fuel,
    ) -> Result<ScriptValue<'a>, EffectError<'a>> {
        Err(EffectError::Error(EvalError::LimitExceeded("an expression has no effects".to_owned())))
    }
}
