//! The script of a `deny`, `halt` or `approval`: call → [`ScriptFinding`].

use std::collections::BTreeSet;
use std::ops::Range;

use super::ScriptCompileError;
use super::caught_panic::catch_panic;
use super::code_branch::{self, CodeBranch};
use super::definition_name::DefinitionName;
use super::expression::Expression;
use super::fuel::{EvalError, Fuel};
use super::names::Names;
use super::program::SourcePosition;
use super::type_checker::{TypeEnvironment, TypeReport};
use super::value::{ObjectView, ScriptValue, ValueKind};
use crate::call::{CallView, ContextReads, LetMemo, Root};
use crate::diagnostic::Span;
use crate::json::Value;
use crate::path::ArgumentNames;

/// A compiled script of a policy: statements over the members of the call and the names of the bundle, without effects.
#[derive(Debug)]
pub struct PolicyScript(Expression);

/// What a script finds in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFinding {
    /// The policy does not apply: the script returns `false` or nothing.
    NoMatch,
    /// The policy applies.
    Match(ScriptRefusal),
    /// It is unknown whether the policy applies, for this reason.
    Undecided(String),
}

/// What a script says in place of its policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptRefusal {
    /// The reason code.
    pub code: Option<String>,
    /// The message.
    pub message: Option<String>,
}

const RESULTS: &str = "a script of a policy returns a boolean, `()` or an object with a `code`, a `message` or both, which are strings";

impl PolicyScript {
    /// Compiles a script that uses the names of a bundle.
    ///
    /// # Errors
    /// Invalid syntax, an unknown name, an effect, and everything else that expressions and functions of a bundle do not support.
    ///
    /// # Examples
    /// ```
    /// use callgate::call::{CallView, SessionState, ToolCall};
    /// use callgate::json::json;
    /// use callgate::script::{Names, PolicyScript, ScriptFinding};
    ///
    /// let script = PolicyScript::compile("if input.amount > 100 { #{ code: `large` } }", &Names::default()).unwrap();
    /// let (call, session) = (ToolCall::new("c1", "refund", json!({"amount": 50})), SessionState::default());
    /// assert_eq!(script.evaluate(&CallView::new(&call, &session)), ScriptFinding::NoMatch);
    /// ```
    pub fn compile(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        Expression::compile_script(text, names).map(Self)
    }

    /// The definitions of the bundle that the script names.
    pub fn definitions(&self) -> &BTreeSet<DefinitionName> {
        self.0.definitions()
    }

    /// The arms of `switch` in it.
    pub fn branches(&self) -> &[CodeBranch] {
        &self.0.branches
    }

    /// Sets where the branches are in the rules.
    pub fn locate_branches(&mut self, mut span_of: impl FnMut(Range<usize>) -> Span) {
        code_branch::locate(&mut self.0.branches, &mut span_of);
    }

    /// Checks the types of the operations, as [`Expression::check_types`] does.
    pub fn check_types(&self, text: &str, environment: &dyn TypeEnvironment) -> TypeReport {
        self.0.check_types(text, environment)
    }

    /// The members of the call that the script reads.
    pub fn roots_read(&self) -> BTreeSet<Root> {
        self.0.roots_read()
    }

    /// The members of the context that the script reads.
    pub fn context_reads(&self) -> &ContextReads {
        self.0.context_reads()
    }

    /// The arguments that it reads, as far as their names are literals.
    pub fn argument_names(&self) -> ArgumentNames {
        self.0.argument_names()
    }

    /// Whether the script may print.
    pub fn prints(&self) -> bool {
        self.0.prints()
    }

    /// The lines that the script prints for a call.
    pub fn printed(&self, view: &CallView<'_>) -> Vec<String> {
        let memo = LetMemo::default();
        let view = CallView { lets: view.lets.or(Some(&memo)), ..*view };
        catch_panic(|| self.0.printed(&view)).unwrap_or_default()
    }

    /// Runs the script for a call. What cannot be evaluated is undecided: a thrown error, an absent value, an exceeded limit, and any result
    /// but those of [`ScriptFinding`].
    pub fn evaluate(&self, view: &CallView<'_>) -> ScriptFinding {
        let memo = LetMemo::default();
        let view = CallView { lets: view.lets.or(Some(&memo)), ..*view };
        let run = || match self.0.run_located(&view) {
            Ok((value, fuel)) => finding(&value, &fuel).map_err(|error| (error, None)),
            Err(error) => Err(error),
        };
        match catch_panic(run) {
            Ok(Ok(finding)) => finding,
            Ok(Err((error, position))) => ScriptFinding::Undecided(describe(error, position)),
            Err(message) => ScriptFinding::Undecided(message),
        }
    }
}

fn finding(value: &ScriptValue<'_>, fuel: &Fuel) -> Result<ScriptFinding, EvalError> {
    // A null of the call is not the script's own `()`.
    if matches!(value, ScriptValue::Json(Value::Null)) {
        return Err(format!("{RESULTS}, this is null").into());
    }
    match value.kind() {
        ValueKind::Null | ValueKind::Boolean(false) => Ok(ScriptFinding::NoMatch),
        ValueKind::Boolean(true) => Ok(ScriptFinding::Match(ScriptRefusal::default())),
        ValueKind::Object(members) => refusal(members, fuel).map(ScriptFinding::Match),
        other => Err(format!("{RESULTS}, this is of type {}", other.json_type()).into()),
    }
}

fn refusal(members: ObjectView<'_, '_>, fuel: &Fuel) -> Result<ScriptRefusal, EvalError> {
    let mut refusal = ScriptRefusal::default();
    for key in members.sorted_keys() {
        if !matches!(&*key, "code" | "message") {
            return Err(format!("{RESULTS}: the object has a key `{key}`").into());
        }
        let value = members.get(&key).unwrap_or(ScriptValue::Null);
        let text = match value.kind() {
            ValueKind::String(text) if !text.is_empty() => text,
            _ => return Err(format!("{RESULTS}: `{key}` is not a string with a character").into()),
        };
        fuel.spend_output(text.len())?;
        match &*key {
            "code" => refusal.code = Some(text.to_owned()),
            _ => refusal.message = Some(text.to_owned()),
        }
    }
    if members.len() == 0 {
        return Err(format!("{RESULTS}: the object is empty").into());
    }
    Ok(refusal)
}

fn describe(error: EvalError, position: Option<SourcePosition>) -> String {
    let (EvalError::Error(message) | EvalError::Absent(message) | EvalError::LimitExceeded(message)) = error;
    match position {
        Some(SourcePosition { line, column }) => {
            format!("its script fails: {message} (line {line}, column {column} of the script)")
        }
        None => format!("its script fails: {message}"),
    }
}
