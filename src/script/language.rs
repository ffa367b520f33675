//! The kinds of code in rules, and what the compiler makes of each.

use super::ScriptCompileError;
use super::code_branch::CodeBranch;
use super::dependencies::ProgramDependencies;
use super::fuel::MAX_SCRIPT;
use super::program::Program;

/// The maximum length of an expression, in bytes.
const MAX_EXPRESSION: usize = 16 << 10;
/// The maximum length of all functions of a bundle, in bytes.
const MAX_FUNCTIONS_TEXT: usize = 64 << 10;

/// The language of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// A single value, without statements and effects.
    Expression,
    /// Statements around an execution.
    Script,
    /// Functions without effects.
    Functions,
    /// Statements that decide for a policy, without effects.
    Policy,
}

impl Language {
    /// The maximum length of a text, in bytes.
    pub(super) fn max_length(self) -> usize {
        match self {
            Self::Expression => MAX_EXPRESSION,
            Self::Script | Self::Policy => MAX_SCRIPT,
            Self::Functions => MAX_FUNCTIONS_TEXT,
        }
    }
}

pub(super) type CompileResult<T> = Result<T, ScriptCompileError>;

/// A program and its dependencies.
#[derive(Debug)]
pub(super) struct CompiledProgram {
    pub(super) program: Program,
    pub(super) dependencies: ProgramDependencies,
    /// The name and the number of parameters of each of its functions.
    pub(super) signatures: Vec<(String, usize)>,
    /// Its functions and the arms of `switch`.
    pub(super) branches: Vec<CodeBranch>,
}
