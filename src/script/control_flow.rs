//! What a program asks of its host, and what ends an evaluation instead of a value.

use super::fuel::{EvalError, Fuel};
use super::named_value::NamedValue;
use super::program::{ReadOnlyVariable, SourcePosition};
use super::script_function::EffectKind;
use super::value::ScriptValue;

/// The host of a program: the values that it reads and the effects that it requests.
pub(super) trait World<'r> {
    /// Reads a member of the call.
    ///
    /// # Errors
    /// The call does not have it.
    fn read_member(&self, member: ReadOnlyVariable) -> Result<ScriptValue<'r>, EvalError>;

    /// Reads a named value of the bundle.
    ///
    /// # Errors
    /// It is absent or undecided.
    fn read_named(&self, value: &'r NamedValue) -> Result<ScriptValue<'r>, EvalError>;

    /// Writes a line to the trace.
    fn print(&mut self, line: &str);

    /// Returns the result of an effect, or ends this run if there is none yet.
    fn request_effect(
        &mut self,
        kind: EffectKind,
        given: Vec<ScriptValue<'r>>,
        work: &Fuel,
    ) -> Result<ScriptValue<'r>, EffectError<'r>>;
}

/// The error of an effect, or the end of the run.
pub(super) enum EffectError<'r> {
    /// An error of the effect itself, which a script can catch.
    Exception(ScriptValue<'r>),
    Error(EvalError),
    /// The host ends the run and holds the reason.
    End,
}

impl From<EvalError> for EffectError<'_> {
    fn from(fault: EvalError) -> Self {
        Self::Error(fault)
    }
}

/// A jump, an error or the end of the run, instead of a value.
pub(super) enum ControlFlow<'r> {
    Break(ScriptValue<'r>),
    Continue,
    Return(ScriptValue<'r>),
    Exception(ScriptValue<'r>, SourcePosition),
    Error(String, SourcePosition),
    Absent(String, SourcePosition),
    LimitExceeded(String, SourcePosition),
    End,
}

pub(super) type EvalResult<'r> = Result<ScriptValue<'r>, ControlFlow<'r>>;

pub(super) fn into_control_flow<'r>(spot: SourcePosition) -> impl Fn(EvalError) -> ControlFlow<'r> {
    move |fault| match fault {
        EvalError::Error(message) => ControlFlow::Error(message, spot),
        EvalError::Absent(message) => ControlFlow::Absent(message, spot),
        EvalError::LimitExceeded(message) => ControlFlow::LimitExceeded(message, spot),
    }
}
