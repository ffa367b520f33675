//! Compiler for statements: Rhai's syntax tree → code.

use rhai::{ASTFlags, Expr, Position, Stmt};

use super::{CompileResult, Compiler};
use crate::script::operators::find_operator;
use crate::script::program::{Code, CodeNode, ForLoop};

impl Compiler<'_> {
    /// Compiles statements in a scope of their own. An expression must be a single value.
    pub(super) fn compile_block(
        &mut self,
        statements: &[Stmt],
        position: Position,
    ) -> CompileResult<CodeNode> {
        let scope = self.scope.len();
        let mut nodes = Vec::with_capacity(statements.len());
        for statement in statements {
            if !self.has_statements()
                && (nodes.len() == 1 || !matches!(statement, Stmt::Expr(_) | Stmt::FnCall(..)))
            {
                return Err(self.statements_error(statement.position()));
            }
            nodes.push(self.compile_statement(statement)?);
        }
        self.scope.truncate(scope);
        match nodes.pop() {
            Some(only) if nodes.is_empty() => Ok(only),
            None if !self.has_statements() => Err(self.statements_error(position)),
            last => {
                nodes.extend(last);
                Ok(Self::new_node(position, Code::Block(nodes)))
            }
        }
    }

    fn compile_statement(&mut self, statement: &Stmt) -> CompileResult<CodeNode> {
        let position = statement.position();
        let code = match statement {
            Stmt::Expr(expression) => return self.compile_expression(expression),
            Stmt::FnCall(call, position) => {
                return self.compile_expression(&Expr::FnCall(call.clone(), *position));
            }
            Stmt::Noop(_) => Code::Null,
            Stmt::Block(block) => return self.compile_block(block.statements(), position),
            Stmt::Var(parts, flags, _) => {
                if let Some(code) = self.compile_closure_variable(&parts.0.name, &parts.1, parts.0.pos)? {
                    return Ok(Self::new_node(position, code));
                }
                // Before the declaration: on the right side, the name may refer to an older variable.
                let value = self.compile_expression(&parts.1)?;
                let constant = flags.contains(ASTFlags::CONSTANT);
                let slot = self.declare(&parts.0.name, parts.0.pos, constant)?;
                Code::Let(slot, Box::new(value))
            }
            Stmt::Assignment(parts) => return self.compile_assignment(parts.as_ref()),
            Stmt::If(flow, _) => {
                let condition = self.compile_expression(&flow.expr)?;
                let then = self.compile_block(flow.body.statements(), position)?;
                let otherwise = self.compile_block(flow.branch.statements(), position)?;
                Code::If(Box::new(condition), Box::new(then), Box::new(otherwise))
            }
            Stmt::While(flow, _) => {
                let condition = match &flow.expr {
                    Expr::Unit(_) => None,
                    condition => Some(Box::new(self.compile_expression(condition)?)),
                };
                Code::While(condition, Box::new(self.compile_block(flow.body.statements(), position)?))
            }
            Stmt::For(parts, _) => {
                let (item, counter, flow) = parts.as_ref();
                let iterable = self.compile_expression(&flow.expr)?;
                let scope = self.scope.len();
                let item = self.declare(&item.name, item.pos, false)?;
                let counter = match counter {
                    Some(counter) => Some(self.declare(&counter.name, counter.pos, false)?),
                    None => None,
                };
                let body = self.compile_block(flow.body.statements(), position)?;
                self.scope.truncate(scope);
                Code::For(Box::new(ForLoop { item, counter, iterable, body }))
            }
            Stmt::TryCatch(flow, _) => {
                let attempt = self.compile_block(flow.body.statements(), position)?;
                let scope = self.scope.len();
                let error = match &flow.expr {
                    Expr::Variable(variable, _, position) => {
                        Some(self.declare(&variable.1, *position, false)?)
                    }
                    _ => None,
                };
                let handler = self.compile_block(flow.branch.statements(), position)?;
                self.scope.truncate(scope);
                Code::Try(Box::new(attempt), error, Box::new(handler))
            }
            Stmt::Return(value, flags, _) => {
                let value = Box::new(self.compile_optional(value.as_deref(), position)?);
                if flags.contains(ASTFlags::BREAK) { Code::Throw(value) } else { Code::Return(value) }
            }
            Stmt::BreakLoop(value, flags, _) if flags.contains(ASTFlags::BREAK) => {
                Code::Break(Box::new(self.compile_optional(value.as_deref(), position)?))
            }
            Stmt::BreakLoop(..) => Code::Continue,
            Stmt::Switch(..) => {
                return Err(self.unsupported_statement(position, "`switch`", "write `if … else if …`"));
            }
            Stmt::Do(..) => {
                return Err(self.unsupported_statement(
                    position,
                    "`do`",
                    "write `loop { …; if … { break; } }`",
                ));
            }
            Stmt::Import(..) | Stmt::Export(..) => {
                return Err(self.unsupported_statement(
                    position,
                    "`import` or `export`",
                    "copy the code into the script",
                ));
            }
            _ => {
                return Err(self.unsupported_statement(
                    position,
                    "this statement",
                    "use a supported statement",
                ));
            }
        };
        Ok(Self::new_node(position, code))
    }

    fn unsupported_statement(
        &self,
        position: Position,
        construct: &str,
        help: &str,
    ) -> super::ScriptCompileError {
        self.error(position, format!("{construct} is not supported in a script")).with_help(help.to_owned())
    }

    fn compile_optional(&mut self, value: Option<&Expr>, position: Position) -> CompileResult<CodeNode> {
        match value {
            Some(value) => self.compile_expression(value),
            None => Ok(Self::new_node(position, Code::Null)),
        }
    }

    fn compile_assignment(
        &mut self,
        (assignment, sides): &(rhai::OpAssignment, rhai::BinaryExpr),
    ) -> CompileResult<CodeNode> {
        let position = assignment.position();
        let operator = match assignment.get_op_assignment_info() {
            None => None,
            Some((_, _, _, written, _, symbol)) => match find_operator(symbol) {
                Some(operator) => Some(operator),
                None => {
                    return Err(self.unsupported_statement(
                        position,
                        &format!("`{written}`"),
                        "the assignment operators are `=`, `+=`, `-=`, `*=`, `/=`, `%=` and `**=`",
                    ));
                }
            },
        };
        let value = self.compile_expression(&sides.rhs)?;
        let target = self.compile_target(&sides.lhs)?;
        Ok(Self::new_node(position, Code::Assign(target, operator, Box::new(value))))
    }
}
