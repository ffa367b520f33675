//! The scripting language: expressions over one call (`expr:`) and scripts around an execution (`around:`), sandboxed.
//!
//! Text + call → value. Scripts reach the host only through effects; comparing values of different types is an error. Rhai parses the
//! syntax, and no other module uses it.

mod number;
mod work;
mod value;
mod written;
mod equality;
mod operators;
mod library;
mod functions;
mod passed;
mod effect;
mod guide;
mod program;
mod parse;
mod reads;
mod literal;
mod lower;
mod calls;
mod statements;
mod place;
mod thrown;
mod evaluate;
mod loops;
mod predicate;
mod journal;
mod outside;
mod around;

pub use around::{Around, MAX_SCRIPT, Replay, SCRIPT_LIMITS, ScriptCall, ScriptException, ScriptRunError};
pub use effect::{Answer, Effect};
pub use functions::{FUNCTIONS, Function};
pub use guide::{NUMBERS, STATEMENTS, VARIABLES};
pub use journal::{Journal, JournalError, MAX_EFFECTS, MAX_JOURNAL};
pub use passed::ExportedValue;
pub use predicate::{Expression, ExpressionError, Predicate};
pub use work::Limits;

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
    fn help(mut self, help: String) -> Self {
        self.help = Some(help);
        self
    }
}
