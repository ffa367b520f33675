//! The scripting language: expressions over one call (`expr:`) and scripts around an execution (`around:`), sandboxed.
//!
//! Text + call → value. Scripts reach the host only through effects; comparing values of different types is an error. Rhai parses the
//! syntax, and no other module uses it. Without the feature `scripts` no code compiles, so rules that have some are rejected.

#![cfg_attr(
    not(feature = "scripts"),
    allow(dead_code, reason = "without the compiler, nothing makes the programs that the interpreter runs")
)]

mod exact_number;
mod fuel;
mod time_functions;
mod value;
mod json_equality;
mod equality;
mod operators;
mod function_library;
mod printed_lines;
mod script_function;
mod function_table;
mod exported_value;
mod effect;
mod reference_text;
mod value_type;
mod data_set;
mod definition_name;
mod named_value;
mod program;
mod names;
mod dependencies;
mod language;
mod caught_panic;
#[cfg(feature = "scripts")]
mod parser;
#[cfg(feature = "scripts")]
mod switch_source;
#[cfg(feature = "scripts")]
mod compiler;
#[cfg(not(feature = "scripts"))]
#[path = "unsupported_compiler.rs"]
mod compiler;
mod shared_functions;
mod assignment;
mod error_object;
mod control_flow;
mod function_types;
mod type_problem;
mod type_checker;
mod operator_types;
mod statement_types;
mod call_types;
mod interpreter;
mod statement_interpreter;
mod operand_interpreter;
mod loop_interpreter;
mod closure_interpreter;
mod code_branch;
mod switch_interpreter;
mod expression_value;
mod call_host;
mod expression;
mod expression_part;
mod predicate;
mod policy_script;
mod script_call;
mod journal;
mod replay_result;
mod replay_host;
mod around_script;
#[cfg(all(test, feature = "scripts"))]
mod rhai_comparison;

pub use around_script::{AroundScript, SCRIPT_LIMITS};
pub use code_branch::{BranchId, CodeBranch, CodeBranchKind, record_branches, take_branches};
pub use data_set::DataSet;
pub use definition_name::DefinitionName;
pub use effect::{Answer, ScriptEffect};
pub use exported_value::ExportedValue;
pub use expression::Expression;
pub use expression_part::ExpressionPart;
pub use expression_value::{ExpressionError, ExpressionValue};
pub use fuel::{MAX_SCRIPT, ScriptLimits};
pub use function_table::{functions, is_function_name};
pub use journal::{Journal, JournalError, MAX_EFFECTS, MAX_JOURNAL};
pub use named_value::{ConditionReads, NamedBody, NamedValue};
pub use names::Names;
pub use policy_script::{PolicyScript, ScriptFinding, ScriptRefusal};
pub use predicate::Predicate;
pub use printed_lines::MAX_PRINTED_LINES;
pub use program::SharedFunctions;
pub use reference_text::{DIFFERENCES, NUMBERS, RhaiDifference, STATEMENTS, VARIABLES};
pub use replay_result::{ReplayResult, ScriptException, ScriptRunError};
pub use script_call::ScriptCall;
pub use script_function::ScriptFunction;
pub use type_checker::{TypeEnvironment, TypeReport};
pub use type_problem::{TypeProblem, UnknownMember, UnlistedValue};
pub use value_type::{ObjectType, TypeKind, ValueType};

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
    /// Whether the problem is a name that is not defined.
    pub is_unknown_name: bool,
}

impl ScriptCompileError {
    fn with_help(mut self, help: String) -> Self {
        self.help = Some(help);
        self
    }

    fn for_unknown_name(mut self) -> Self {
        self.is_unknown_name = true;
        self
    }
}
