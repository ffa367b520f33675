//! Compiler for closures: as arguments of functions, and in variables that are called.

use std::sync::Arc;

use rhai::{Expr, FnCallExpr, Position};

use super::{CompileResult, Compiler, LocalVariable};
use crate::script::parser::closure_name;
use crate::script::program::{Closure, ClosureCall, Code, CodeNode};
use crate::script::script_function::{ClosureFunction, ScriptFunction};

impl Compiler<'_> {
    /// Compiles a call such as `list.map(|x| …)`, whose list is compiled already.
    pub(super) fn compile_closure_call(
        &mut self,
        function: (&ScriptFunction, ClosureFunction),
        list: CodeNode,
        arguments: &[Expr],
        position: Position,
    ) -> CompileResult<Code> {
        let (function, how) = function;
        let Some((closure, rest)) = arguments.split_first() else {
            return Err(self.argument_count_error(function, 1, position));
        };
        let wanted = how.closure_parameters();
        let closure = self.compile_closure_argument(closure, function)?;
        let given = closure.parameters.len();
        let most = if how == ClosureFunction::Sort { wanted } else { wanted + 1 };
        if given < wanted || given > most {
            let message = match how {
                ClosureFunction::Sort => "the closure of `sort` takes two parameters: `|a, b| …`".to_owned(),
                ClosureFunction::Reduce => {
                    "the closure of `reduce` takes two parameters, and perhaps the index: `|result, x| …`"
                        .to_owned()
                }
                _ => "a closure takes one parameter, and perhaps the index: `|x| …`".to_owned(),
            };
            return Err(self.error(closure_position(arguments), message));
        }
        let initial = rest.first().map(|initial| self.compile_expression(initial)).transpose()?;
        Ok(Code::Closure(Box::new(ClosureCall { function: how, list, closure, initial })))
    }

    fn compile_closure_argument(
        &mut self,
        argument: &Expr,
        function: &ScriptFunction,
    ) -> CompileResult<Arc<Closure>> {
        if let Expr::Variable(variable, _, _) = argument
            && let Some(closure) = self.closure_variable(&variable.1)
        {
            return Ok(closure);
        }
        match self.compile_closure(argument)? {
            Some(closure) => Ok(Arc::new(closure)),
            None => Err(self
                .error(argument.start_position(), format!("`{}` takes a closure", function.name))
                .with_help(format!("write `{}`", function.signature()))),
        }
    }

    /// Compiles a closure. Returns `None` for any other expression.
    fn compile_closure(&mut self, expression: &Expr) -> CompileResult<Option<Closure>> {
        let position = expression.start_position();
        let routines = self.definitions;
        let found = closure_name(expression).and_then(|(name, captured)| {
            // The name is a hash of the closure's text, without the number of captured variables.
            let all = routines.range((name.clone(), 0)..).take_while(|((known, _), _)| *known == name);
            all.map(|(_, routine)| routine).next().map(|routine| (routine, captured))
        });
        let Some((routine, captured)) = found else { return Ok(None) };
        let scope = self.scope.len();
        let own = routine.parameters.iter().skip(captured);
        let parameters = own.map(|name| self.declare(name, position, false)).collect::<CompileResult<_>>()?;
        let body = self.compile_block(&routine.body, position)?;
        self.scope.truncate(scope);
        Ok(Some(Closure { parameters, body }))
    }

    /// Compiles `let f = |x| …`. Returns `None` if the value is not a closure.
    ///
    /// The variable is known here and is not a value of the program, so that a closure runs only while the variables that it reads exist.
    pub(super) fn compile_closure_variable(
        &mut self,
        name: &str,
        value: &Expr,
        position: Position,
    ) -> CompileResult<Option<Code>> {
        let (scope, slot_count) = (self.scope.len(), self.slot_count);
        self.slot_count = scope;
        let closure = self.compile_closure(value);
        let used = self.slot_count;
        self.slot_count = used.max(slot_count);
        let Some(closure) = closure? else { return Ok(None) };
        // Nothing else may use the slots of the closure's variables: it runs later, among variables that are declared after it.
        while self.scope.len() < used {
            self.declare_unnamed();
        }
        let slot = self.declare(name, position, true)?;
        if let Some(variable) = self.scope.get_mut(slot) {
            variable.closure = Some(Arc::new(closure));
        }
        Ok(Some(Code::Null))
    }

    /// Compiles `f.call(x)`.
    pub(super) fn compile_variable_call(
        &mut self,
        name: &str,
        closure: Arc<Closure>,
        call: &FnCallExpr,
        position: Position,
    ) -> CompileResult<CodeNode> {
        let (wanted, given) = (closure.parameters.len(), call.args.len());
        if given != wanted {
            let message = format!("the closure `{name}` takes {wanted} arguments, this call has {given}");
            return Err(self.error(position, message));
        }
        let arguments = self.compile_expressions(&call.args)?;
        Ok(Self::new_node(position, Code::CallClosure(closure, arguments)))
    }

    /// The closure in a variable. Returns `None` for any other name.
    pub(super) fn closure_variable(&self, name: &str) -> Option<Arc<Closure>> {
        self.find_slot(name).and_then(|slot| self.scope.get(slot)?.closure.clone())
    }

    /// Adds a variable that no text can name.
    pub(super) fn declare_unnamed(&mut self) -> usize {
        self.push_variable(LocalVariable { name: String::new(), is_constant: true, closure: None })
    }
}

fn closure_position(arguments: &[Expr]) -> Position {
    arguments.first().map_or(Position::NONE, Expr::start_position)
}
