//! Statements that change nothing and drop their value, such as `s.trim();`. In Rhai, some of these change the variable.

use rhai::{Expr, Position, Stmt};

use super::{CompileResult, Compiler};
use crate::script::function_table::find_function;
use crate::script::parser::{ChainLink, split_chain};
use crate::script::program::{Code, CodeNode};

/// Functions that change their argument in Rhai, and return a new value here.
const IN_PLACE_IN_RHAI: [&str; 4] = ["replace", "reverse", "sort", "trim"];

impl Compiler<'_> {
    /// Checks a statement whose value nothing uses.
    ///
    /// # Errors
    /// The statement has no effect.
    pub(super) fn check_dropped_value(&self, statement: &Stmt, node: &CodeNode) -> CompileResult<()> {
        let (expression, position) = match statement {
            Stmt::Expr(expression) => (Some(&**expression), expression.start_position()),
            Stmt::FnCall(_, position) => (None, *position),
            _ => return Ok(()),
        };
        if has_effect(node) || matches!(node.code, Code::Null) {
            return Ok(());
        }
        let function = match (statement, expression.map(split_chain)) {
            (Stmt::FnCall(call, _), _) => Some((call.name.as_str(), call.args.first())),
            (_, Some((Expr::FnCall(call, _), links))) if links.is_empty() => {
                Some((call.name.as_str(), call.args.first()))
            }
            (_, Some((base, links))) => match links.last() {
                Some(ChainLink::Method(call, _)) => {
                    Some((call.name.as_str(), Some(base).filter(|_| links.len() == 1)))
                }
                _ => None,
            },
            _ => None,
        };
        Err(self.dropped_value_error(function.filter(|(name, _)| find_function(name).is_some()), position))
    }

    fn dropped_value_error(
        &self,
        function: Option<(&str, Option<&Expr>)>,
        position: Position,
    ) -> super::ScriptCompileError {
        let Some((name, receiver)) = function else {
            return self
                .error(position, "this statement changes nothing, and its value is not used")
                .with_help("assign the value, or remove the statement".to_owned());
        };
        let variable = match receiver {
            Some(Expr::Variable(variable, _, _)) => variable.1.as_str(),
            _ => "x",
        };
        let difference = if IN_PLACE_IN_RHAI.contains(&name) {
            format!(", which changes `{variable}` as Rhai's `{name}` does")
        } else {
            String::new()
        };
        self.error(
            position,
            format!("`{name}` returns a new value and changes nothing, and its value is not used"),
        )
        .with_help(format!("write `{variable} = {variable}.{name}(…)`{difference}"))
    }
}

/// Whether evaluating code may change a variable, request an effect, leave the block, or run a function that may do so.
fn has_effect(node: &CodeNode) -> bool {
    let mut found = matches!(
        node.code,
        Code::Mutation(..)
            | Code::Print(..)
            | Code::Effect(..)
            | Code::Call(..)
            | Code::CallShared(..)
            | Code::CallClosure(..)
            | Code::Let(..)
            | Code::Assign(..)
            | Code::Throw(_)
            | Code::Return(_)
            | Code::Break(_)
            | Code::Continue
    );
    node.code.for_each_part(&mut |part| found = found || has_effect(part));
    found
}
