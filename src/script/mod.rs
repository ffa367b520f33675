//! The scripting language: expressions over one call (`expr:`) and scripts around an execution (`around:`), sandboxed.
//!
//! Text + call → value. Scripts reach the host only through effects; comparing values of different types is an error. Rhai parses the
//! syntax, and no other module uses it.

mod exact_number;
mod fuel;
mod value;
mod json_equality;
mod equality;
mod operators;
mod function_library;
mod function_table;
mod exported_value;
mod effect;
mod reference_text;
mod program;
mod parser;
mod dependencies;
mod compiler;
mod assignment;
mod error_object;
mod interpreter;
mod loop_interpreter;
mod predicate;
mod script_call;
mod journal;
mod replay_result;
mod replay_host;
mod around_script;

pub use around_script::{AroundScript, MAX_SCRIPT, SCRIPT_LIMITS};
pub use effect::{Answer, ScriptEffect};
pub use exported_value::ExportedValue;
pub use fuel::ScriptLimits;
pub use function_table::{FUNCTIONS, ScriptFunction};
pub use journal::{Journal, JournalError, MAX_EFFECTS, MAX_JOURNAL};
pub use predicate::{Expression, ExpressionError, Predicate};
pub use reference_text::{NUMBERS, STATEMENTS, VARIABLES};
pub use replay_result::{ReplayResult, ScriptException, ScriptRunError};
pub use script_call::ScriptCall;

/// A compile error of an expression or script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptCompileError {
    /// The problem.
    pub message: String,
    /// The position, in bytes from the start of the text.
    pub offset: Option<usize>,
    /// The fix, if known.
    pub help: Option<String>,
}

impl ScriptCompileError {
    fn with_help(mut self, help: String) -> Self {
        self.help = Some(help);
        self
    }
}
