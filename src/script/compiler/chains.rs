//! Compiler for chains such as `a.b[c].d()`, and for the targets of assignments.

use rhai::Expr;

use super::{CompileResult, Compiler};
use crate::call::Root;
use crate::script::function_table::find_function;
use crate::script::parser::{ChainLink, split_chain};
use crate::script::program::{AssignTarget, Code, CodeNode, ReadOnlyVariable, TargetStep};
use crate::script::script_function::Implementation;

/// The maximum number of links in a chain such as `a.b[c].d()`.
const MAX_LINKS: usize = 48;

impl Compiler<'_> {
    pub(super) fn compile_chain(&mut self, expression: &Expr) -> CompileResult<CodeNode> {
        let (base, links) = split_chain(expression);
        if links.len() > MAX_LINKS {
            return Err(
                self.error(base.start_position(), format!("more than {MAX_LINKS} `.` or `[…]` in a row"))
            );
        }
        if let Some(node) = self.compile_data(base, &links)? {
            return Ok(node);
        }
        if let Expr::Variable(variable, _, _) = base
            && let Some(closure) = self.closure_variable(&variable.1)
            && let Some(ChainLink::Method(call, position)) = links.first()
            && call.name == "call"
        {
            let node = self.compile_variable_call(&variable.1, closure, call, *position)?;
            return self.compile_links(node, base, &links, 1);
        }
        if self.is_round(base, &links) {
            self.dependencies.add(Root::Round, Vec::new());
            let member = Code::Member(ReadOnlyVariable::Root(Root::Round));
            let node = Self::new_node(base.start_position(), member);
            return self.compile_links(node, base, &links, 1);
        }
        let mut direct = 0;
        let node = match base {
            Expr::Variable(variable, _, _) if variable.2.is_empty() => {
                let keys = links.iter().map_while(ChainLink::key).map(str::to_owned);
                let position = base.start_position();
                let keys: Vec<String> = keys.collect();
                direct = keys.len();
                let code = self.compile_variable(&variable.1, position, keys)?;
                Self::new_node(position, code)
            }
            _ => self.compile_expression(base)?,
        };
        let is_indirect = match base {
            Expr::Variable(variable, _, _) => match self.find_slot(&variable.1) {
                Some(slot) => !self.is_input(slot),
                None => matches!(node.code, Code::Named(_)),
            },
            _ => false,
        };
        if is_indirect {
            direct = 0;
        }
        for key in links.iter().skip(direct).filter_map(ChainLink::key) {
            self.dependencies.add_member(key);
        }
        self.compile_links(node, base, &links, 0)
    }

    /// Compiles the links of a chain from the one with this number on, for the value that the links before it read.
    pub(super) fn compile_links(
        &mut self,
        mut node: CodeNode,
        base: &Expr,
        links: &[ChainLink<'_>],
        from: usize,
    ) -> CompileResult<CodeNode> {
        for (number, link) in links.iter().enumerate().skip(from) {
            node = match link {
                ChainLink::Property(key, position) => {
                    Self::new_node(*position, Code::Property(Box::new(node), (*key).to_owned()))
                }
                ChainLink::Index(index, position) => {
                    if let Some(range) = self.compile_range(index)? {
                        Self::new_node(*position, Code::Slice(Box::new(node), Box::new(range)))
                    } else {
                        let is_fact = self.is_fact(base, links.get(..number).unwrap_or_default());
                        let operands = Box::new([node, self.compile_expression(index)?]);
                        let code = if is_fact { Code::FactEntry(operands) } else { Code::Index(operands) };
                        Self::new_node(*position, code)
                    }
                }
                ChainLink::Method(call, position) => {
                    match find_function(&call.name).map(|function| (function, function.implementation)) {
                        Some((function, Implementation::Mutation(how))) if self.has_statements() => {
                            if call.args.len() + 1 != function.parameters.len() {
                                return Err(self.argument_count_error(
                                    function,
                                    call.args.len() + 1,
                                    *position,
                                ));
                            }
                            let target =
                                self.compile_target_chain(base, links.get(..number).unwrap_or_default())?;
                            Self::new_node(
                                *position,
                                Code::Mutation(how, target, self.compile_expressions(&call.args)?),
                            )
                        }
                        _ => self.compile_call(call, *position, Some(node))?,
                    }
                }
                ChainLink::Optional(position) => {
                    return self.compile_optional_link(node, *position, base, links, number + 1);
                }
                ChainLink::Other(other) => {
                    return Err(self.unsupported(other.start_position(), "this expression"));
                }
            };
        }
        Ok(node)
    }

    /// Whether a chain with these links is a fact, or an entry of one.
    fn is_fact(&self, base: &Expr, links: &[ChainLink<'_>]) -> bool {
        let is_session = matches!(base, Expr::Variable(variable, _, _) if variable.1 == Root::Session.name())
            && self.find_slot(Root::Session.name()).is_none();
        let mut links = links.iter().filter(|link| !matches!(link, ChainLink::Optional(_)));
        is_session && links.next().and_then(ChainLink::key) == Some("facts") && links.next().is_some()
    }

    /// Compiles the assignment target that an expression names.
    pub(super) fn compile_target(&mut self, expression: &Expr) -> CompileResult<AssignTarget> {
        match expression {
            Expr::Dot(..) | Expr::Index(..) => {
                let (base, links) = split_chain(expression);
                self.compile_target_chain(base, &links)
            }
            _ => self.compile_target_chain(expression, &[]),
        }
    }

    fn compile_target_chain(&mut self, base: &Expr, links: &[ChainLink<'_>]) -> CompileResult<AssignTarget> {
        let position = base.start_position();
        if links.len() > MAX_LINKS {
            return Err(self.error(position, format!("more than {MAX_LINKS} `.` or `[…]` in a row")));
        }
        let Expr::Variable(variable, _, _) = base else {
            return Err(
                self.error(position, "only variables, and members or elements of them, can be changed")
            );
        };
        let name = variable.1.as_str();
        let Some(slot) = self.find_slot(name) else {
            if self.call_member(name).is_some() || self.is_options(name) {
                return Err(self
                    .error(position, format!("`{name}` is read-only"))
                    .with_help(format!("copy it into a variable: `let copy = {name};`")));
            }
            return Err(self.unknown_variable_error(name, position));
        };
        if self.scope.get(slot).is_some_and(|name| name.is_constant) {
            return Err(self.error(position, format!("`{name}` is a constant, it cannot be changed")));
        }
        let named = links.iter().map_while(ChainLink::key).map(str::to_owned);
        if self.is_input(slot) {
            self.dependencies.add(Root::Input, named.collect());
        }
        let mut steps = Vec::with_capacity(links.len());
        for link in links {
            steps.push(match link {
                ChainLink::Property(key, _) => TargetStep::Key((*key).to_owned()),
                ChainLink::Index(Expr::StringConstant(key, _), _) => TargetStep::Key(key.to_string()),
                ChainLink::Index(index, _) => TargetStep::Index(self.compile_expression(index)?),
                _ => {
                    return Err(self
                        .error(position, "only variables, and members or elements of them, can be changed"));
                }
            });
        }
        Ok(AssignTarget { slot, steps })
    }
}
