//! Compiler for statements: Rhai's syntax tree → code.

use rhai::{ASTFlags, Expr, Position, Stmt};

use super::{CompileResult, Compiler};
use crate::script::error_object::THROWN_VALUES;
use crate::script::operators::find_operator;
use crate::script::program::{Code, CodeNode, ForLoop, Iterable};

/// Whether the value of a block's last statement is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockValue {
    Used,
    Dropped,
}

impl Compiler<'_> {
    /// Compiles statements in a scope of their own. An expression must be a single value.
    pub(super) fn compile_block(
        &mut self,
        statements: &[Stmt],
        position: Position,
    ) -> CompileResult<CodeNode> {
        self.compile_block_for(statements, position, BlockValue::Used)
    }

    /// Compiles statements whose last value is used or dropped.
    fn compile_block_for(
        &mut self,
        statements: &[Stmt],
        position: Position,
        value: BlockValue,
    ) -> CompileResult<CodeNode> {
        let scope = self.scope.len();
        let mut nodes = Vec::with_capacity(statements.len());
        for (number, statement) in statements.iter().enumerate() {
            if !self.has_statements()
                && (nodes.len() == 1 || !matches!(statement, Stmt::Expr(_) | Stmt::FnCall(..)))
            {
                return Err(self.statements_error(statement.position()));
            }
            let is_last = number + 1 == statements.len();
            let value = if is_last { value } else { BlockValue::Dropped };
            let node = self.compile_statement(statement, value)?;
            if value == BlockValue::Dropped {
                self.check_dropped_value(statement, &node)?;
            }
            nodes.push(node);
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

    fn compile_statement(&mut self, statement: &Stmt, value: BlockValue) -> CompileResult<CodeNode> {
        let position = statement.position();
        let code = match statement {
            Stmt::Expr(expression) => return self.compile_expression(expression),
            Stmt::FnCall(call, position) => {
                return self.compile_expression(&Expr::FnCall(call.clone(), *position));
            }
            Stmt::Noop(_) => Code::Null,
            Stmt::Block(block) => return self.compile_block_for(block.statements(), position, value),
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
                let then = self.compile_block_for(flow.body.statements(), position, value)?;
                let otherwise = self.compile_block_for(flow.branch.statements(), position, value)?;
                Code::If(Box::new(condition), Box::new(then), Box::new(otherwise))
            }
            Stmt::While(flow, _) => {
                let condition = match &flow.expr {
                    Expr::Unit(_) => None,
                    condition => Some(Box::new(self.compile_expression(condition)?)),
                };
                Code::While(
                    condition,
                    Box::new(self.compile_block_for(
                        flow.body.statements(),
                        position,
                        BlockValue::Dropped,
                    )?),
                )
            }
            Stmt::For(parts, _) => {
                let (item, counter, flow) = parts.as_ref();
                let iterable = match self.compile_range(&flow.expr)? {
                    Some(range) => Iterable::Range(range),
                    None => Iterable::Value(self.compile_expression(&flow.expr)?),
                };
                let scope = self.scope.len();
                let item = self.declare(&item.name, item.pos, false)?;
                let counter = match counter {
                    Some(counter) => Some(self.declare(&counter.name, counter.pos, false)?),
                    None => None,
                };
                let body = self.compile_block_for(flow.body.statements(), position, BlockValue::Dropped)?;
                self.scope.truncate(scope);
                Code::For(Box::new(ForLoop { item, counter, iterable, body }))
            }
            Stmt::TryCatch(flow, _) => {
                let attempt = self.compile_block_for(flow.body.statements(), position, value)?;
                let scope = self.scope.len();
                let error = match &flow.expr {
                    Expr::Variable(variable, _, position) => {
                        Some(self.declare(&variable.1, *position, false)?)
                    }
                    _ => None,
                };
                let handler = self.compile_block_for(flow.branch.statements(), position, value)?;
                self.scope.truncate(scope);
                Code::Try(Box::new(attempt), error, Box::new(handler))
            }
            Stmt::Return(value, flags, _) => {
                let throws = flags.contains(ASTFlags::BREAK);
                if throws {
                    self.check_thrown(value.as_deref(), position)?;
                }
                let value = Box::new(self.compile_optional(value.as_deref(), position)?);
                if throws { Code::Throw(value) } else { Code::Return(value) }
            }
            Stmt::BreakLoop(value, flags, _) if flags.contains(ASTFlags::BREAK) => {
                Code::Break(Box::new(self.compile_optional(value.as_deref(), position)?))
            }
            Stmt::BreakLoop(..) => Code::Continue,
            Stmt::Switch(parts, _) => self.compile_switch(parts, position)?,
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

    /// Refuses to throw a literal that is not an error: `catch` would not receive it, as it does in Rhai.
    fn check_thrown(&self, value: Option<&Expr>, position: Position) -> CompileResult<()> {
        let position = match value {
            None | Some(Expr::Unit(_)) => position,
            Some(
                literal @ (Expr::BoolConstant(..)
                | Expr::IntegerConstant(..)
                | Expr::FloatConstant(..)
                | Expr::Array(..)),
            ) => literal.start_position(),
            Some(_) => return Ok(()),
        };
        Err(self.error(position, THROWN_VALUES))
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
                Some((_, operator)) => Some(operator),
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
