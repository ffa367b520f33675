//! Compiler for calls of operators, functions and effects: Rhai's syntax tree → code.

use regex::Regex;
use rhai::{Expr, FnCallExpr, Position};

use super::switches::is_range;
use super::{CompileResult, Compiler, quote_all};
use crate::diagnostic::closest_match;
use crate::regex_compiler;
use crate::script::ScriptCompileError;
use crate::script::definition_name::DefinitionName;
use crate::script::effect::parse_duration;
use crate::script::function_library::{collections, strings};
use crate::script::function_table::{find_function, functions};
use crate::script::operators::{BINARY_OPERATORS, OperatorFn, find_operator, is_in, is_in_argument};
use crate::script::parser::byte_offset;
use crate::script::program::{Code, CodeNode};
use crate::script::script_function::{ClosureFunction, EffectKind, Implementation, ScriptFunction};

/// Names that other languages, and plain Rhai, use for these functions.
const FUNCTION_ALIASES: &[(&str, &str)] = &[
    ("lower", "to_lower"),
    ("upper", "to_upper"),
    ("lowercase", "to_lower"),
    ("uppercase", "to_upper"),
    ("text_len", "len"),
    ("size", "len"),
    ("any", "some"),
    ("every", "all"),
    ("length", "len"),
    ("includes", "contains"),
    ("regex", "matches"),
    ("to_string", "to_text"),
    ("parse_int", "to_number"),
    ("parse_float", "to_number"),
    ("sub_string", "slice"),
    ("append", "push"),
    ("delete", "remove"),
    ("timestamp", "now"),
    ("rand", "random"),
    ("log", "audit"),
];

impl Compiler<'_> {
    pub(super) fn compile_call(
        &mut self,
        call: &FnCallExpr,
        position: Position,
        receiver: Option<CodeNode>,
    ) -> CompileResult<CodeNode> {
        let name = call.name.as_str();
        if !call.namespace.is_empty() || call.capture_parent_scope {
            return Err(self.error(
                position,
                format!("`{name}` is called with a namespace or with `!`, which is not supported"),
            ));
        }
        if is_range(call).is_some() {
            return Err(self.range_error(position));
        }
        if receiver.is_none() {
            match (name, call.args.as_slice()) {
                ("!", [operand]) => {
                    return Ok(Self::new_node(
                        position,
                        Code::Not(Box::new(self.compile_expression(operand)?)),
                    ));
                }
                ("-", [operand]) => {
                    return Ok(Self::new_node(
                        position,
                        Code::Negate(Box::new(self.compile_expression(operand)?)),
                    ));
                }
                // Rhai turns the operator into a call of `contains` with swapped operands.
                ("contains", [container, wanted]) if !self.source_starts_with(position, "contains") => {
                    return self.compile_in_operator(wanted, container, position);
                }
                (symbol, [a, b]) if let Some((symbol, operator)) = find_operator(symbol) => {
                    let operands = Box::new([self.compile_expression(a)?, self.compile_expression(b)?]);
                    return Ok(Self::new_node(position, Code::Binary(symbol, operator, operands)));
                }
                _ => {}
            }
        }
        if receiver.is_none() && name == "is_tool" {
            return self.compile_is_tool(call, position);
        }
        let given = call.args.len() + usize::from(receiver.is_some());
        if let Some((index, parameters)) = self.names.functions().find(name) {
            return self.compile_shared_call(name, (index, parameters), call, position, receiver);
        }
        if let Some(index) = self.functions.iter().position(|(known, _)| known == name) {
            return self.compile_own_call(index, call, position, receiver.is_some(), given);
        }
        if matches!(name, "has" | "at" | "remove") {
            match (receiver.is_some(), call.args.as_slice()) {
                (false, [container, key]) => self.record_key_lookup(container, key),
                (true, [Expr::StringConstant(key, _)]) => self.dependencies.add_member(key),
                _ => {}
            }
        }
        let Some(function) = find_function(name) else {
            if self.names.collects_unknown || self.names.has_invalid_functions {
                self.compile_expressions(&call.args)?;
                return Ok(Self::new_node(position, Code::Null));
            }
            return Err(self.unknown_function_error(name, call, position));
        };
        if !self.has_function(function) {
            let only = if function.is_effect() { "`around` scripts" } else { "scripts and functions" };
            let message = format!("`{name}` is available only in {only}, not in {}s", self.language_noun());
            return Err(self.error(position, message));
        }
        if given < function.min_arguments() || given > function.parameters.len() {
            return Err(self.argument_count_error(function, given, position));
        }
        let mut arguments = call.args.iter();
        let first = |lowering: &mut Self, arguments: &mut std::slice::Iter<'_, Expr>| match receiver {
            Some(receiver) => Ok(receiver),
            None => match arguments.next() {
                Some(argument) => lowering.compile_expression(argument),
                None => Err(lowering.argument_count_error(function, given, position)),
            },
        };
        let code = match function.implementation {
            Implementation::Mutation(how) => {
                let Some(argument) = arguments.next() else {
                    return Err(self.argument_count_error(function, given, position));
                };
                let target = self.compile_target(argument)?;
                Code::Mutation(how, target, self.compile_expressions(arguments.as_slice())?)
            }
            Implementation::Closure(ClosureFunction::Sort) if given == 1 => {
                let list = first(self, &mut arguments)?;
                Code::Function(function.name, Implementation::One(collections::sort), vec![list])
            }
            Implementation::Closure(how) => {
                let list = first(self, &mut arguments)?;
                self.compile_closure_call((function, how), list, arguments.as_slice(), position)?
            }
            Implementation::Detects => {
                let value = first(self, &mut arguments)?;
                Code::Detects(Box::new(value), self.read_detectors(arguments.next(), position)?)
            }
            Implementation::Mentioned => {
                let value = first(self, &mut arguments)?;
                let Some(source) = arguments.next() else {
                    return Err(self.argument_count_error(function, given, position));
                };
                let operands = Box::new([value, self.compile_expression(source)?]);
                Code::Mentioned(operands, self.read_token_format(arguments.as_slice(), position)?)
            }
            Implementation::Print(form) => {
                self.dependencies.prints = true;
                Code::Print(form, Box::new(first(self, &mut arguments)?))
            }
            Implementation::Existence(existence) => {
                Code::Exists(Box::new(first(self, &mut arguments)?), existence)
            }
            Implementation::Matches => {
                let text = first(self, &mut arguments)?;
                Code::Matches(Box::new(text), self.compile_regex(arguments.next())?)
            }
            run => {
                if let (
                    Implementation::Effect(EffectKind::CacheSet),
                    Some(Expr::StringConstant(span, position)),
                ) = (run, call.args.last())
                {
                    parse_duration(span).map_err(|message| self.error(*position, message))?;
                }
                let mut all = Vec::with_capacity(given);
                if given > 0 {
                    all.push(first(self, &mut arguments)?);
                }
                self.check_patterns(name, arguments.as_slice().first())?;
                all.extend(self.compile_expressions(arguments.as_slice())?);
                match run {
                    Implementation::One(_) if name == "to_text" && !self.is_script() => {
                        Code::Function(function.name, Implementation::One(strings::scalar_to_text), all)
                    }
                    Implementation::Two(_) if name == "contains" => match (all.pop(), all.pop()) {
                        (Some(wanted), Some(list)) if let Some(index) = list.constant_index() => {
                            Code::InData(Box::new(wanted), index)
                        }
                        (wanted, list) => {
                            Code::Function(function.name, run, list.into_iter().chain(wanted).collect())
                        }
                    },
                    Implementation::Effect(kind) => Code::Effect(kind, all),
                    run => Code::Function(function.name, run, all),
                }
            }
        };
        Ok(Self::new_node(position, code))
    }

    fn compile_own_call(
        &mut self,
        index: usize,
        call: &FnCallExpr,
        position: Position,
        as_method: bool,
        given: usize,
    ) -> CompileResult<CodeNode> {
        let name = call.name.as_str();
        if as_method {
            return Err(self
                .error(position, format!("`{name}` is a function of the script, not a method"))
                .with_help(format!("write `{name}(…)`")));
        }
        let wanted = self.functions.get(index).map_or(0, |(_, wanted)| *wanted);
        if given != wanted {
            let message = format!("`{name}` takes {wanted} arguments, this call has {given}");
            return Err(self.error(position, message));
        }
        let arguments = self.compile_expressions(&call.args)?;
        Ok(Self::new_node(position, Code::Call(index, arguments)))
    }

    /// Whether the text at a position starts with `start`.
    fn source_starts_with(&self, position: Position, start: &str) -> bool {
        byte_offset(self.text, position)
            .and_then(|at| self.text.get(at..))
            .is_some_and(|rest| rest.starts_with(start))
    }

    fn compile_in_operator(
        &mut self,
        wanted: &Expr,
        container: &Expr,
        position: Position,
    ) -> CompileResult<CodeNode> {
        if let Some(range) = self.compile_range(container)? {
            let wanted = self.compile_expression(wanted)?;
            return Ok(Self::new_node(position, Code::InRange(Box::new(wanted), Box::new(range))));
        }
        self.record_key_lookup(container, wanted);
        let operands = [self.compile_expression(wanted)?, self.compile_expression(container)?];
        if let Some(index) = operands[1].constant_index() {
            let [wanted, _] = operands;
            return Ok(Self::new_node(position, Code::InData(Box::new(wanted), index)));
        }
        let operands = Box::new(operands);
        let operator: OperatorFn = match self.may_be_argument(container) {
            true => is_in_argument,
            false => is_in,
        };
        Ok(Self::new_node(position, Code::Binary("in", operator, operands)))
    }

    /// Compiles a call of a function of the bundle.
    fn compile_shared_call(
        &mut self,
        name: &str,
        (index, parameters): (usize, usize),
        call: &FnCallExpr,
        position: Position,
        receiver: Option<CodeNode>,
    ) -> CompileResult<CodeNode> {
        let given = call.args.len() + usize::from(receiver.is_some());
        if given != parameters {
            let message = format!("`{name}` takes {parameters} arguments, this call has {given}");
            return Err(self.error(position, message));
        }
        self.record_definition(DefinitionName::Function(name.to_owned()));
        self.dependencies.prints |= self.names.functions().prints;
        let mut arguments = Vec::from_iter(receiver);
        arguments.extend(self.compile_expressions(&call.args)?);
        Ok(Self::new_node(position, Code::CallShared(self.names.functions().clone(), index, arguments)))
    }

    /// Whether a function is available in this language.
    fn has_function(&self, function: &ScriptFunction) -> bool {
        if function.is_effect() {
            return self.is_script();
        }
        self.has_statements() || !function.is_scripts_only()
    }

    fn language_noun(&self) -> &'static str {
        self.language_name().trim_start_matches("an ").trim_start_matches("a ")
    }

    pub(super) fn argument_count_error(
        &self,
        function: &ScriptFunction,
        given: usize,
        position: Position,
    ) -> ScriptCompileError {
        let (name, most) = (function.name, function.parameters.len());
        let wanted = match function.min_arguments() {
            least if least == most => most.to_string(),
            least => format!("{least} to {most}"),
        };
        self.error(position, format!("`{name}` takes {wanted} arguments, this call has {given}"))
            .with_help(format!("the signature is `{}`: {}", function.signature(), function.description))
    }

    fn unknown_function_error(
        &self,
        name: &str,
        call: &FnCallExpr,
        position: Position,
    ) -> ScriptCompileError {
        if call.op_token.is_some() {
            let symbols: Vec<_> = BINARY_OPERATORS.iter().map(|(symbol, _)| *symbol).collect();
            return self
                .error(position, format!("`{name}` is not an operator of {}s", self.language_noun()))
                .with_help(format!("the operators are `&&`, `||`, `??`, `!`, {}", quote_all(&symbols)));
        }
        let here = functions().filter(|function| self.has_function(function));
        let known: Vec<&str> = here.map(|function| function.name).collect();
        let alias = FUNCTION_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, function)| *function);
        let own = self.functions.iter().map(|(name, _)| name.as_str()).chain(self.names.functions().names());
        let meant = alias
            .filter(|meant| known.contains(meant))
            .or_else(|| closest_match(name, known.iter().copied().chain(own)));
        let help = match meant {
            Some(meant) => {
                let signature =
                    find_function(meant).map_or_else(|| format!("{meant}(…)"), ScriptFunction::signature);
                format!("did you mean `{signature}`?")
            }
            None => "the available functions are listed in docs/reference.md".to_owned(),
        };
        self.error(position, format!("unknown function `{name}`")).with_help(help)
    }

    fn compile_regex(&self, pattern: Option<&Expr>) -> CompileResult<Regex> {
        let Some(Expr::StringConstant(pattern, position)) = pattern else {
            let position = pattern.map_or(Position::START, Expr::start_position);
            return Err(self
                .error(position, "the regex of `matches` must be a string literal")
                .with_help("write it in double quotes or backticks".to_owned()));
        };
        regex_compiler::compile(pattern).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            self.error(*position, format!("invalid regex `{pattern}`: {why}"))
        })
    }
}
