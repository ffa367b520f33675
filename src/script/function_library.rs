//! Implementations of the functions in the table.

pub(super) mod addresses;
mod arguments;
pub(super) mod collections;
pub(super) mod numbers;
pub(super) mod strings;
pub(super) mod tokens;

use super::fuel::EvalError;
use super::value::ScriptValue;

type FunctionResult<'r> = Result<ScriptValue<'r>, EvalError>;
