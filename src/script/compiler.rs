//! Compiler: Rhai's syntax tree → [`Program`]. Unsupported constructs are rejected here, with their position, and not only when a
//! call reaches them.

use std::collections::BTreeMap;

use rhai::{AST, Expr, Position};

use super::ScriptCompileError;
use super::dependencies::ProgramDependencies;
use super::function_library;
use super::function_table::{Implementation, find_function};
use super::names::Names;
use super::operators::{self, find_operator};
use super::parser::{
    ChainLink, FunctionDefinition, Language, byte_offset, closure_name, function_definitions,
    source_position, split_chain,
};
use super::program::{AssignTarget, Code, CodeNode, FunctionBody, Program, ReadOnlyVariable, TargetStep};
use crate::call::Root;
use crate::diagnostic::closest_match;

mod calls;
mod names;
mod number_literal;
mod statements;

use self::number_literal::reject_ambiguous_floats;

/// The maximum number of links in a chain such as `a.b[c].d()`.
const MAX_LINKS: usize = 48;

pub(super) type CompileResult<T> = Result<T, ScriptCompileError>;

/// The compiler's state for one text.
pub(super) struct Compiler<'a> {
    pub(super) text: &'a str,
    language: Language,
    /// The names that the bundle defines.
    pub(super) names: &'a Names,
    pub(super) definitions: &'a BTreeMap<(String, usize), FunctionDefinition>,
    /// The text's own functions; the index is the function's number.
    pub(super) functions: Vec<&'a (String, usize)>,
    pub(super) scope: Vec<LocalVariable>,
    /// The number of slots that the current function needs.
    slot_count: usize,
    pub(super) dependencies: ProgramDependencies,
}

/// A variable in scope; its slot is its index in the list.
#[derive(Debug)]
pub(super) struct LocalVariable {
    pub(super) name: String,
    pub(super) is_constant: bool,
}

/// A program and its dependencies.
#[derive(Debug)]
pub(super) struct CompiledProgram {
    pub(super) program: Program,
    pub(super) dependencies: ProgramDependencies,
    /// The name and the number of parameters of each of its functions.
    pub(super) signatures: Vec<(String, usize)>,
}

/// Compiles the syntax tree of `text`, which may use the names of a bundle.
///
/// # Errors
/// The first unsupported construct or unknown name.
pub(super) fn compile(
    text: &str,
    ast: &AST,
    language: Language,
    names: &Names,
) -> CompileResult<CompiledProgram> {
    reject_ambiguous_floats(text)?;
    let routines = function_definitions(ast);
    let own = routines.keys().filter(|(name, _)| !name.starts_with("anon$")).collect();
    let mut lowering = Compiler {
        text,
        language,
        names,
        definitions: &routines,
        functions: own,
        scope: Vec::new(),
        slot_count: 0,
        dependencies: ProgramDependencies::default(),
    };
    let mut functions = Vec::new();
    for key in lowering.functions.clone() {
        functions.push(lowering.compile_function(key)?);
    }
    if language == Language::Script {
        lowering.scope.push(LocalVariable { name: "input".to_owned(), is_constant: false });
    }
    lowering.slot_count = lowering.scope.len();
    if let (Language::Functions, Some(statement)) = (language, ast.statements().first()) {
        return Err(lowering
            .error(statement.position(), "only functions can stand here")
            .with_help("write `fn name(parameter) { … }`".to_owned()));
    }
    let code = lowering.compile_block(ast.statements(), Position::START)?;
    let main = FunctionBody { slot_count: lowering.slot_count, code };
    let signatures = lowering.functions.into_iter().cloned().collect();
    let program = Program { main, functions, is_pure: language != Language::Script };
    Ok(CompiledProgram { program, dependencies: lowering.dependencies, signatures })
}

impl<'a> Compiler<'a> {
    pub(super) fn error(&self, position: Position, message: impl Into<String>) -> ScriptCompileError {
        ScriptCompileError {
            message: message.into(),
            offset: byte_offset(self.text, position),
            help: None,
            is_unknown_name: false,
        }
    }

    pub(super) fn is_script(&self) -> bool {
        self.language == Language::Script
    }

    /// Whether it consists of statements.
    pub(super) fn has_statements(&self) -> bool {
        self.language != Language::Expression
    }

    pub(super) fn language_name(&self) -> &'static str {
        match self.language {
            Language::Script => "a script",
            Language::Functions => "a function",
            Language::Expression => "an expression",
        }
    }

    fn unsupported(&self, position: Position, construct: &str) -> ScriptCompileError {
        self.error(position, format!("{construct} is not supported in {}", self.language_name()))
    }

    fn compile_function(&mut self, key: &(String, usize)) -> CompileResult<FunctionBody> {
        let routines = self.definitions;
        let Some(routine) = routines.get(key) else {
            return Err(self.error(Position::NONE, "a function is missing"));
        };
        let (name, position) = (key.0.as_str(), routine.position);
        if routine.is_typed_method {
            return Err(self.unsupported(position, "a function of a type"));
        }
        if find_function(name).is_some() || find_operator(name).is_some() {
            return Err(self
                .error(position, format!("a function `{name}` already exists"))
                .with_help("choose another name".to_owned()));
        }
        if self.functions.iter().filter(|(known, _)| known == name).count() > 1 {
            return Err(self.error(position, format!("two functions have the name `{name}`")));
        }
        self.scope.clear();
        self.slot_count = 0;
        for parameter in &routine.parameters {
            self.declare(parameter, position, false)?;
        }
        let code = self.compile_block(&routine.body, position)?;
        self.scope.clear();
        Ok(FunctionBody { slot_count: self.slot_count, code })
    }

    /// Adds a variable to the scope.
    ///
    /// # Errors
    /// A member of the call has the same name.
    pub(super) fn declare(
        &mut self,
        name: &str,
        position: Position,
        is_constant: bool,
    ) -> CompileResult<usize> {
        if self.call_member(name).is_some() || name == "input" {
            return Err(
                self.error(position, format!("`{name}` is a member of the call, choose another name"))
            );
        }
        Ok(self.push_variable(LocalVariable { name: name.to_owned(), is_constant }))
    }

    pub(super) fn push_variable(&mut self, variable: LocalVariable) -> usize {
        self.scope.push(variable);
        self.slot_count = self.slot_count.max(self.scope.len());
        self.scope.len() - 1
    }

    fn call_member(&self, name: &str) -> Option<ReadOnlyVariable> {
        if self.language == Language::Functions {
            return None;
        }
        if self.is_script() {
            return match Root::from_name(name)? {
                Root::Input | Root::Output | Root::Error | Root::Result => None,
                root => Some(ReadOnlyVariable::Root(root)),
            };
        }
        Root::from_name(name).map(ReadOnlyVariable::Root)
    }

    /// Whether a slot is the script's `input`.
    pub(super) fn is_input(&self, slot: usize) -> bool {
        self.is_script() && slot == 0 && self.scope.first().is_some_and(|name| name.name == "input")
    }

    /// Records that the program looks up a literal key in a value.
    pub(super) fn record_key_lookup(&mut self, container: &Expr, key: &Expr) {
        let Expr::StringConstant(key, _) = key else { return };
        let (base, links) = split_chain(container);
        let keys: Option<Vec<String>> = links.iter().map(|link| link.key().map(str::to_owned)).collect();
        let of_input = match base {
            Expr::Variable(variable, _, _) if variable.1 == "input" => {
                self.find_slot(&variable.1).is_none_or(|slot| self.is_input(slot))
            }
            _ => false,
        };
        match keys.filter(|_| of_input) {
            Some(mut keys) => {
                keys.push(key.to_string());
                self.dependencies.add(Root::Input, keys);
            }
            None => self.dependencies.add_member(key),
        }
    }

    fn is_options(&self, name: &str) -> bool {
        self.is_script() && name == "options"
    }

    pub(super) fn new_node(position: Position, code: Code) -> CodeNode {
        CodeNode { position: source_position(position), code }
    }

    /// Compiles `Pay ${input.amount}?` into a concatenation of strings.
    fn compile_interpolation(&mut self, parts: &[Expr], position: Position) -> CompileResult<CodeNode> {
        let mut joined = Self::new_node(position, Code::String(String::new()));
        for part in parts {
            let text = Code::Function(
                Implementation::One(function_library::to_text),
                vec![self.compile_expression(part)?],
            );
            let operands = Box::new([joined, Self::new_node(part.start_position(), text)]);
            joined = Self::new_node(position, Code::Binary(operators::add, operands));
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
                    .error(position, "`'…'` is not a string")
                    .with_help("write it in double quotes".to_owned()));
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
                let message = "a closure is allowed only as an argument of `all`, `some`, `filter` or `map`";
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

    pub(super) fn find_slot(&self, name: &str) -> Option<usize> {
        self.scope.iter().rposition(|known| known.name == name)
    }

    /// Compiles a read of a variable and records the path `keys` as a dependency.
    fn compile_variable(&mut self, name: &str, position: Position, keys: Vec<String>) -> CompileResult<Code> {
        if let Some(slot) = self.find_slot(name) {
            if self.is_input(slot) {
                self.dependencies.add(Root::Input, keys);
            }
            return Ok(Code::Slot(slot));
        }
        if let Some(member) = self.call_member(name) {
            if let ReadOnlyVariable::Root(root) = member {
                self.dependencies.add(root, keys);
            }
            return Ok(Code::Member(member));
        }
        if self.is_options(name) {
            return Ok(Code::Member(ReadOnlyVariable::Options));
        }
        if let Some(code) = self.compile_named(name, position)? {
            return Ok(code);
        }
        Err(self.unknown_variable_error(name, position))
    }

    fn unknown_variable_error(&self, name: &str, position: Position) -> ScriptCompileError {
        if self.is_script() && name == "input" {
            return self
                .error(position, "a function cannot read the script's `input`")
                .with_help("pass it as an argument".to_owned());
        }
        if self.language == Language::Functions && Root::from_name(name).is_some() {
            return self
                .error(
                    position,
                    format!("a function cannot read `{name}`: it sees its parameters and `data`"),
                )
                .with_help(format!("pass it as an argument: `fn large({name}) {{ … }}`"));
        }
        let members = Root::ALL.map(Root::name).into_iter().filter(|name| self.call_member(name).is_some());
        let members = members.chain(self.is_script().then_some("options"));
        let own = self.scope.iter().map(|known| known.name.as_str());
        let named = self.names.let_names().filter(|_| self.language == Language::Expression);
        let known: Vec<&str> = own.chain(members).chain(named).collect();
        let help = match closest_match(name, known.iter().copied()) {
            _ if name == "principal" => "write `context.principal`".to_owned(),
            Some(meant) => format!("did you mean `{meant}`?"),
            None if self.language == Language::Expression => {
                format!("write `input.{name}` for an argument of the tool, or define `{name}` under `let:`")
            }
            None => format!("available variables: {}", quote_all(&known)),
        };
        self.error(position, format!("unknown name `{name}`")).with_help(help).for_unknown_name()
    }

    fn compile_chain(&mut self, expression: &Expr) -> CompileResult<CodeNode> {
        let (base, links) = split_chain(expression);
        if links.len() > MAX_LINKS {
            return Err(
                self.error(base.start_position(), format!("more than {MAX_LINKS} `.` or `[…]` in a row"))
            );
        }
        if let Some(node) = self.compile_data(base, &links)? {
            return Ok(node);
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
                    Self::new_node(*position, Code::Index(Box::new([node, self.compile_expression(index)?])))
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

pub(super) fn quote_all(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
