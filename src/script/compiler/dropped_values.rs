//! Statements that change nothing and drop their value, such as `s.trim();`. In Rhai, some of these change the variable.

use rhai::{Expr, Position, Stmt};

use super::{CompileResult, Compiler};
use crate::script::function_table::find_function;
use crate::script::parser::{ChainLink, split_chain};
use crate::script::program::{Code, CodeNode, Iterable, SwitchCase};

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
    let any = |nodes: &[CodeNode]| nodes.iter().any(has_effect);
    match &node.code {
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
        | Code::Continue => true,
        Code::Null
        | Code::Boolean(_)
        | Code::Number(_)
        | Code::Literal(_)
        | Code::String(_)
        | Code::Member(_)
        | Code::Slot(_)
        | Code::Named(_)
        | Code::Data(..)
        | Code::IsTool(_) => false,
        Code::Array(nodes)
        | Code::And(nodes)
        | Code::Or(nodes)
        | Code::Coalesce(nodes)
        | Code::Function(_, nodes)
        | Code::Block(nodes) => any(nodes),
        Code::Object(members) => members.iter().any(|(_, node)| has_effect(node)),
        Code::Not(node)
        | Code::Negate(node)
        | Code::Exists(node, _)
        | Code::InData(node, _)
        | Code::Property(node, _)
        | Code::Matches(node, _)
        | Code::Detects(node, _) => has_effect(node),
        Code::Binary(_, nodes)
        | Code::Index(nodes)
        | Code::FactEntry(nodes)
        | Code::OptionalMember(nodes)
        | Code::Mentioned(nodes, _) => any(&**nodes),
        Code::OptionalChain(value, _, rest) => has_effect(value) || has_effect(rest),
        Code::InRange(node, range) | Code::Slice(node, range) => {
            has_effect(node) || has_effect(&range.from) || has_effect(&range.to)
        }
        Code::Closure(call) => {
            has_effect(&call.list)
                || has_effect(&call.closure.body)
                || call.initial.as_ref().is_some_and(has_effect)
        }
        Code::If(condition, then, otherwise) => {
            has_effect(condition) || has_effect(then) || has_effect(otherwise)
        }
        Code::Switch(switch) => {
            let in_arm = |arm: &crate::script::program::SwitchArm| {
                let in_case = |case: &SwitchCase| match case {
                    SwitchCase::Value(node) => has_effect(node),
                    SwitchCase::Range(range) => has_effect(&range.from) || has_effect(&range.to),
                };
                arm.cases.iter().any(in_case)
                    || arm.guard.as_ref().is_some_and(has_effect)
                    || has_effect(&arm.body)
            };
            has_effect(&switch.value) || switch.arms.iter().any(in_arm)
        }
        Code::While(condition, body) => condition.as_deref().is_some_and(has_effect) || has_effect(body),
        Code::For(parts) => {
            let in_iterable = match &parts.iterable {
                Iterable::Value(node) => has_effect(node),
                Iterable::Range(range) => has_effect(&range.from) || has_effect(&range.to),
            };
            in_iterable || has_effect(&parts.body)
        }
        Code::Try(attempt, _, handler) => has_effect(attempt) || has_effect(handler),
    }
}
