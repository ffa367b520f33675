//! Compiler for single values: literals, operators with operands, closures in their place.

use rhai::{Expr, Position};

use super::{CompileResult, Compiler};
use crate::script::ScriptCompileError;
use crate::script::function_library::strings;
use crate::script::operators;
use crate::script::parser::closure_name;
use crate::script::program::{Code, CodeNode};
use crate::script::script_function::Implementation;

impl Compiler<'_> {
    /// Compiles `Pay ${input.amount}?` into a concatenation of strings.
    fn compile_interpolation(&mut self, parts: &[Expr], position: Position) -> CompileResult<CodeNode> {
        let mut joined = Self::new_node(position, Code::String(String::new()));
        for part in parts {
            if is_empty_block(part) {
                return Err(self
                    .error(part.start_position(), "`${}` is empty")
                    .with_help("write a value between the braces, or leave it out".to_owned()));
            }
            let text = vec![self.compile_expression(part)?];
            let text = Code::Function("to_text", Implementation::One(strings::to_text), text);
            let operands = Box::new([joined, Self::new_node(part.start_position(), text)]);
            joined = Self::new_node(position, Code::Binary("+", operators::add, operands));
        }
        Ok(joined)
    }

    pub(super) fn compile_expressions(&mut self, expressions: &[Expr]) -> CompileResult<Vec<CodeNode>> {
        expressions.iter().map(|expression| self.compile_expression(expression)).collect()
    }

    pub(super) fn compile_expression(&mut self, expression: &Expr) -> CompileResult<CodeNode> {
        let position = expression.start_position();
        let code = match expression {
            Expr::Unit(_) => Code::Null,
            Expr::BoolConstant(value, _) => Code::Boolean(*value),
            Expr::IntegerConstant(..) | Expr::FloatConstant(..) => {
                self.compile_number(expression, position)?
            }
            Expr::StringConstant(text, _) => Code::String(text.to_string()),
            Expr::CharConstant(..) => {
                return Err(self
                    .error(position, "single quotes make no string")
                    .with_help("write the string in double quotes".to_owned()));
            }
            Expr::InterpolatedString(parts, _) if self.has_statements() => {
                return self.compile_interpolation(parts, position);
            }
            Expr::InterpolatedString(..) => {
                return Err(self
                    .unsupported(position, "`${…}`")
                    .with_help("join strings with `+`".to_owned()));
            }
            Expr::Array(items, _) => Code::Array(self.compile_expressions(items)?),
            Expr::Map(members, _) => {
                let members = members.0.iter();
                let members =
                    members.map(|(key, value)| Ok((key.name.to_string(), self.compile_expression(value)?)));
                Code::Object(members.collect::<CompileResult<_>>()?)
            }
            Expr::And(operands, _) => Code::And(self.compile_expressions(operands)?),
            Expr::Or(operands, _) => Code::Or(self.compile_expressions(operands)?),
            Expr::Coalesce(operands, _) => Code::Coalesce(self.compile_expressions(operands)?),
            Expr::Variable(variable, _, _) => {
                if !variable.2.is_empty() {
                    return Err(self.unsupported(position, "`::`"));
                }
                self.compile_variable(&variable.1, position, Vec::new())?
            }
            Expr::FnCall(call, position) => return self.compile_call(call, *position, None),
            Expr::Dot(..) | Expr::Index(..) => return self.compile_chain(expression),
            _ if closure_name(expression).is_some() => {
                let message = "a closure is allowed only as an argument of a function such as `map`, or as the value of `let`";
                return Err(self.error(position, message));
            }
            Expr::Stmt(block) if self.has_statements() => {
                return self.compile_block(block.statements(), position);
            }
            Expr::Stmt(_) => return Err(self.statements_error(position)),
            Expr::ThisPtr(_) => return Err(self.unsupported(position, "`this`")),
            _ => return Err(self.unsupported(position, "this expression")),
        };
        Ok(Self::new_node(position, code))
    }

    pub(super) fn statements_error(&self, position: Position) -> ScriptCompileError {
        self.error(position, "an expression is a single value, without statements")
    }
}

/// Whether it is a block without statements.
fn is_empty_block(expression: &Expr) -> bool {
    matches!(expression, Expr::Stmt(block) if block.statements().is_empty())
}
