//! An expression over one call: call → value.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ScriptCompileError;
use super::call_host::CallHost;
use super::caught_panic::catch_panic;
use super::code_branch::CodeBranch;
use super::compiler::compile;
use super::control_flow::ControlFlow;
use super::data_set::DataSet;
use super::definition_name::DefinitionName;
use super::dependencies::ProgramDependencies;
use super::error_object::error_message;
use super::expression_value::{ExpressionError, ExpressionValue};
use super::fuel::{EvalError, Fuel, ScriptLimits};
use super::interpreter::Interpreter;
use super::language::Language;
use super::named_value::{NamedBody, NamedDefinition, NamedPath, NamedValue};
use super::names::Names;
use super::program::{Code, CodeNode, Program, ReadOnlyVariable, SourcePosition};
use super::type_checker::{self, TypeEnvironment, TypeReport};
use super::value::ScriptValue;
use crate::call::{CallView, ContextReads, LetMemo, NamedResult, NodeRef, Root};
use crate::json::Value;
use crate::path::ArgumentNames;

static EXPRESSION_LIMITS: ScriptLimits = ScriptLimits {
    subject: "the expression",
    steps: 1_000_000,
    string_bytes: 64 << 10,
    total_string_bytes: 16 << 20,
    values: 100_000,
    output_bytes: 64 << 10,
    nesting: 160,
    call_depth: 24,
};

static POLICY_SCRIPT_LIMITS: ScriptLimits = ScriptLimits {
    subject: "the script",
    steps: 1_000_000,
    string_bytes: 64 << 10,
    total_string_bytes: 16 << 20,
    values: 100_000,
    output_bytes: 64 << 10,
    nesting: 160,
    call_depth: 24,
};

/// A compiled expression, which several threads can evaluate at once.
#[derive(Debug)]
pub struct Expression {
    program: Program,
    dependencies: ProgramDependencies,
    limits: &'static ScriptLimits,
    pub(super) branches: Vec<CodeBranch>,
}

impl Expression {
    /// Compiles a Rhai expression over the members of the call document: `to_lower(input.query)`.
    ///
    /// Beside Rhai's operators `&& || ?? ! == != < <= > >= + - * / % ** in !in` it can call the [`functions`](super::functions),
    /// except those of scripts only. Nothing is converted: each operator and function takes values of its own types, and
    /// any other type is an error; `x in y` looks for an element of an array, or for a key of `input`, `context` or `session`.
    /// Numbers are exact decimals of up to 34 significant digits ([`NUMBERS`](super::NUMBERS)): `7 / 2` is 3.5, and 1 and 1.0 are
    /// the same.
    ///
    /// # Errors
    /// Invalid syntax, an unknown variable or function, a wrong number of arguments, an invalid regex, and
    /// Rhai features that expressions do not support.
    pub fn compile(text: &str) -> Result<Self, ScriptCompileError> {
        Self::compile_with(text, &Names::default())
    }

    /// Like [`compile`](Self::compile), for an expression that uses the names of a bundle.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_with(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        let compiled = compile(text, Language::Expression, names)?;
        Ok(Self {
            program: compiled.program,
            dependencies: compiled.dependencies,
            limits: &EXPRESSION_LIMITS,
            branches: compiled.branches,
        })
    }

    /// Compiles the script of a policy, which is an expression of several statements.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub(super) fn compile_script(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        let compiled = compile(text, Language::Policy, names)?;
        Ok(Self {
            program: compiled.program,
            dependencies: compiled.dependencies,
            limits: &POLICY_SCRIPT_LIMITS,
            branches: compiled.branches,
        })
    }

    /// The definitions of a bundle that a text names, as far as it is valid: they may be unknown.
    pub fn names_in(text: &str) -> BTreeSet<DefinitionName> {
        let names = Names::collecting();
        Self::compile_with(text, &names)
            .map(|expression| expression.dependencies.definitions)
            .unwrap_or_default()
    }

    /// The definitions of the bundle that the expression names.
    pub fn definitions(&self) -> &BTreeSet<DefinitionName> {
        &self.dependencies.definitions
    }

    /// Makes the expression a named value.
    pub fn into_named(self, name: &str) -> NamedValue {
        let dependencies = self.dependencies.clone();
        let definition = match path_length(&self.program.main.code).filter(|length| *length <= MAX_PATH) {
            Some(length) => NamedDefinition::Path(Box::new(self), length),
            None => NamedDefinition::Computed(Box::new(self)),
        };
        NamedValue::new(name, definition, dependencies)
    }

    /// The named value that the expression consists of. Returns `None` for any other expression.
    pub fn as_named(&self) -> Option<&Arc<NamedValue>> {
        match &self.program.main.code.code {
            Code::Named(value) => Some(value),
            _ => None,
        }
    }

    /// The constant of the bundle, or the part of one, that the expression consists of, also by a name. Returns `None` for any other
    /// expression.
    pub fn constant(&self) -> Option<&Value> {
        let (data, keys) = self.program.main.code.constant_keys()?;
        data.value(&keys)
    }

    /// The members of the call that the expression reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        self.dependencies.roots.clone()
    }

    /// Whether the expression reads a member of the call.
    pub fn reads(&self, root: Root) -> bool {
        self.dependencies.roots.contains(&root)
    }

    /// Whether the expression reads the arguments, or elements that come from them.
    pub fn reads_arguments(&self) -> bool {
        self.dependencies.reads_arguments()
    }

    /// The members of the context that the expression reads.
    pub fn context_reads(&self) -> &ContextReads {
        &self.dependencies.context
    }

    /// The arguments that it reads, as far as their names are literals.
    pub fn argument_names(&self) -> ArgumentNames {
        self.dependencies.argument_names()
    }

    /// The names of members that it reads from elements of quantifiers, and from other values.
    pub fn member_names(&self) -> &BTreeSet<String> {
        self.dependencies.member_names()
    }

    /// Checks the types of the operations, with these types of what the expression reads. Messages show parts of its text.
    pub fn check_types(&self, text: &str, environment: &dyn TypeEnvironment) -> TypeReport {
        type_checker::check(&self.program, text, environment)
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
        self.evaluate(view, |value, work| value.to_json(work))
    }

    /// Evaluates the expression for a call, without a copy of a value that is a part of the call or of the rules.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn resolve<'a>(&'a self, view: &CallView<'a>) -> Result<ExpressionValue<'a>, ExpressionError> {
        if view.lets.is_none() && self.dependencies.needs_memo {
            let memo = LetMemo::default();
            return match self.resolve(&CallView { lets: Some(&memo), ..*view })? {
                ExpressionValue::Time(time) => Ok(ExpressionValue::Time(time)),
                value => Ok(ExpressionValue::Owned(value.node().to_value())),
            };
        }
        let result = catch_panic(|| {
            let (value, fuel) = self.run(view)?;
            Ok(match value {
                ScriptValue::Json(value) => ExpressionValue::Borrowed(NodeRef::Json(value)),
                ScriptValue::Borrowed(text) => ExpressionValue::Borrowed(NodeRef::Text(text)),
                ScriptValue::Time(value) => ExpressionValue::Time(value.with_text()),
                value => ExpressionValue::Owned(value.to_json(&fuel)?),
            })
        });
        flatten(result)
    }

    /// The value of an expression that is true or false for a call.
    ///
    /// # Errors
    /// A value that is not a boolean, and the errors of [`value`](Self::value).
    pub fn boolean(&self, view: &CallView<'_>) -> Result<bool, ExpressionError> {
        self.evaluate(view, |value, _| match value {
            ScriptValue::Boolean(value) => Ok(*value),
            ScriptValue::Json(Value::Bool(value)) => Ok(*value),
            other => {
                let found = other.json_type();
                Err(format!("the expression returns a value of type {found}, not a boolean").into())
            }
        })
    }

    fn evaluate<T>(
        &self,
        view: &CallView<'_>,
        make: impl FnOnce(&ScriptValue<'_>, &Fuel) -> Result<T, EvalError>,
    ) -> Result<T, ExpressionError> {
        let memo = LetMemo::default();
        let view = CallView { lets: view.lets.or(Some(&memo)), ..*view };
        flatten(catch_panic(|| {
            let (value, fuel) = self.run(&view)?;
            make(&value, &fuel)
        }))
    }

    fn run<'r>(&'r self, view: &CallView<'r>) -> Result<(ScriptValue<'r>, Fuel), EvalError> {
        self.run_located(view).map_err(|(error, _)| error)
    }

    /// Whether the program may print.
    pub(super) fn prints(&self) -> bool {
        self.dependencies.prints
    }

    /// The lines that the program prints for a call.
    pub(super) fn printed(&self, view: &CallView<'_>) -> Vec<String> {
        if self.dependencies.check_decided(view.session).is_err() {
            return Vec::new();
        }
        let mut evaluation = Interpreter::new(&self.program, CallHost::new(*view), Fuel::new(self.limits));
        // What it returns does not matter: the lines before an error are printed.
        let _ = evaluation.run(Vec::new());
        evaluation.host.printed.into_vec()
    }

    /// The code of the expression.
    pub(super) fn body(&self) -> &CodeNode {
        &self.program.main.code
    }

    /// The value of a part of the expression for a call.
    pub(super) fn part_value(&self, part: &CodeNode, view: &CallView<'_>) -> Result<Value, ExpressionError> {
        let memo = LetMemo::default();
        let view = CallView { lets: view.lets.or(Some(&memo)), ..*view };
        flatten(catch_panic(|| {
            let (value, fuel) = self.run_part(part, &view).map_err(|(error, _)| error)?;
            value.to_json(&fuel)
        }))
    }

    /// Evaluates the program for a call. An error has its position in the text.
    pub(super) fn run_located<'r>(
        &'r self,
        view: &CallView<'r>,
    ) -> Result<(ScriptValue<'r>, Fuel), (EvalError, Option<SourcePosition>)> {
        self.run_part(&self.program.main.code, view)
    }

    fn run_part<'r>(
        &'r self,
        part: &'r CodeNode,
        view: &CallView<'r>,
    ) -> Result<(ScriptValue<'r>, Fuel), (EvalError, Option<SourcePosition>)> {
        if self.dependencies.roots.contains(&Root::Input) && !view.input.is_object() {
            return Err(("the input is not a JSON object".into(), None));
        }
        self.dependencies.check_decided(view.session).map_err(|why| (why.into(), None))?;
        view.check_known(self.dependencies.roots.iter().copied())
            .map_err(|unknown| (unknown.to_string().into(), None))?;
        let mut evaluation = Interpreter::new(&self.program, CallHost::new(*view), Fuel::new(self.limits));
        match evaluation.run_part(part) {
            Ok(value) => Ok((value, evaluation.fuel)),
            Err(ControlFlow::Absent(message, spot)) => Err((EvalError::Absent(message), Some(spot))),
            Err(ControlFlow::Error(message, spot)) => Err((EvalError::Error(message), Some(spot))),
            Err(ControlFlow::LimitExceeded(message, spot)) => {
                Err((EvalError::LimitExceeded(message), Some(spot)))
            }
            Err(ControlFlow::Exception(error, spot)) => {
                let message = error_message(&error).unwrap_or_default();
                Err((format!("an error is thrown: {message}").into(), Some(spot)))
            }
            Err(_) => Err(("the expression returns no value".into(), None)),
        }
    }
}

fn flatten<T>(result: Result<Result<T, EvalError>, String>) -> Result<T, ExpressionError> {
    match result {
        Ok(result) => result.map_err(ExpressionError::from),
        Err(message) => Err(ExpressionError { message, is_absent: false }),
    }
}

/// The longest path that is read again for each use of its name.
const MAX_PATH: usize = 32;

/// The number of links, if code only reads a member of the call, of a named value or of the constants.
fn path_length(node: &CodeNode) -> Option<usize> {
    let length = match &node.code {
        Code::Member(_) | Code::Data(..) | Code::String(_) | Code::Number(_) => 0,
        Code::Named(value) => match value.definition {
            NamedDefinition::Path(_, length) => length,
            NamedDefinition::Computed(_) => return None,
        },
        Code::Property(container, _) => path_length(container)?,
        Code::Index(operands) | Code::FactEntry(operands) => {
            let [container, index] = &**operands;
            path_length(container)? + path_length(index)?
        }
        _ => return None,
    };
    Some(length + 1)
}

impl NamedBody for Expression {
    fn evaluate(&self, view: &CallView<'_>) -> NamedResult {
        let evaluated = self.evaluate(view, |value, work| match value {
            ScriptValue::Time(value) => Ok(NamedResult::Time(*value)),
            value => value.to_json(work).map(NamedResult::Value),
        });
        match evaluated {
            Ok(result) => result,
            Err(ExpressionError { message, is_absent: true }) => NamedResult::Absent(message),
            Err(ExpressionError { message, .. }) => NamedResult::Undecided(message),
        }
    }
}

impl NamedPath for Expression {
    fn read<'r>(&'r self, view: &CallView<'r>) -> Result<ScriptValue<'r>, EvalError> {
        self.run(view).map(|(value, _)| value)
    }

    fn constant_keys(&self) -> Option<(&Arc<DataSet>, Vec<String>)> {
        self.program.main.code.constant_keys()
    }

    fn begins_at_arguments(&self) -> bool {
        let mut node = &self.program.main.code;
        loop {
            match &node.code {
                Code::Property(container, _) => node = container,
                Code::Index(operands) | Code::FactEntry(operands) => {
                    let [container, _] = &**operands;
                    node = container;
                }
                Code::Named(value) => return value.may_be_argument(),
                code => return matches!(code, Code::Member(ReadOnlyVariable::Root(Root::Input))),
            }
        }
    }
}
