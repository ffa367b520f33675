//! Compiler: text → [`Program`]. Unsupported constructs are rejected here, with their position, and not only when a
//! call reaches them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::Position;

use super::ScriptCompileError;
use super::code_branch::{BranchId, CodeBranch, CodeBranchKind};
use super::dependencies::ProgramDependencies;
use super::function_table::find_function;
use super::language::{CompileResult, CompiledProgram, Language};
use super::names::Names;
use super::operators::find_operator;
use super::parser::{FunctionDefinition, byte_offset, function_definitions, parse, source_position};
use super::program::{Closure, Code, CodeNode, FunctionBody, Program};
use super::switch_source::{self, SwitchSources};

mod calls;
mod chains;
mod closures;
mod dropped_values;
mod expressions;
mod literal_arguments;
mod names;
mod number_literal;
mod statements;
mod switches;
mod variables;

use self::number_literal::reject_ambiguous_floats;

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
    /// The cases of each `switch`.
    switches: SwitchSources,
    /// The name of the function that is compiled. Empty outside of functions.
    function: String,
    /// The functions and the arms of `switch`.
    branches: Vec<CodeBranch>,
}

/// A variable in scope; its slot is its index in the list.
#[derive(Debug)]
pub(super) struct LocalVariable {
    pub(super) name: String,
    pub(super) is_constant: bool,
    /// The closure that it holds.
    pub(super) closure: Option<Arc<Closure>>,
}

/// The names of the functions that a text defines, each with its offset.
///
/// # Errors
/// Invalid syntax.
pub(super) fn function_names(text: &str) -> CompileResult<Vec<(String, usize)>> {
    let ast = parse(text, Language::Functions)?;
    let definitions = function_definitions(&ast).into_iter();
    let found =
        definitions.filter(|((name, _), _)| !name.starts_with("anon$")).map(|((name, _), function)| {
            let body = byte_offset(text, function.position).unwrap_or(text.len());
            let before = text.get(..body).unwrap_or_default();
            let start = before.rfind(&format!("fn {name}")).map_or(0, |start| start + "fn ".len());
            (name, start)
        });
    Ok(found.collect())
}

/// Compiles a text, which may use the names of a bundle.
///
/// # Errors
/// Invalid syntax, or else the first unsupported construct or unknown name.
pub(super) fn compile(text: &str, language: Language, names: &Names) -> CompileResult<CompiledProgram> {
    let ast = parse(text, language)?;
    reject_ambiguous_floats(text)?;
    let routines = function_definitions(&ast);
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
        switches: switch_source::read(text),
        function: String::new(),
        branches: Vec::new(),
    };
    let mut functions = Vec::new();
    for key in lowering.functions.clone() {
        functions.push(lowering.compile_function(key)?);
    }
    if language == Language::Script {
        lowering.scope.push(LocalVariable { name: "input".to_owned(), is_constant: false, closure: None });
    }
    lowering.slot_count = lowering.scope.len();
    if let (Language::Functions, Some(statement)) = (language, ast.statements().first()) {
        return Err(lowering
            .error(statement.position(), "only functions can stand here")
            .with_help("write `fn name(parameter) { … }`".to_owned()));
    }
    let code = lowering.compile_block(ast.statements(), Position::START)?;
    let main = FunctionBody { branch: None, slot_count: lowering.slot_count, code };
    let signatures = std::mem::take(&mut lowering.functions).into_iter().cloned().collect();
    let program = Program { main, functions, is_pure: language != Language::Script };
    let Compiler { dependencies, branches, .. } = lowering;
    Ok(CompiledProgram { program, dependencies, signatures, branches })
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

    /// Whether it is a script around an execution, which can change its `input` and request effects.
    pub(super) fn is_script(&self) -> bool {
        self.language == Language::Script
    }

    /// Whether it can read named values.
    pub(super) fn reads_named_values(&self) -> bool {
        self.language != Language::Functions
    }

    /// Whether it consists of statements.
    pub(super) fn has_statements(&self) -> bool {
        self.language != Language::Expression
    }

    pub(super) fn language_name(&self) -> &'static str {
        match self.language {
            Language::Script | Language::Policy => "a script",
            Language::Functions => "a function",
            Language::Expression => "an expression",
        }
    }

    pub(super) fn unsupported(&self, position: Position, construct: &str) -> ScriptCompileError {
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
        let branch = self.function_branch(name, position);
        name.clone_into(&mut self.function);
        let code = self.compile_block(&routine.body, position)?;
        self.function.clear();
        self.scope.clear();
        Ok(FunctionBody { branch: Some(branch), slot_count: self.slot_count, code })
    }

    /// Adds a function to the branches. `position` is that of its body.
    fn function_branch(&mut self, name: &str, position: Position) -> BranchId {
        let body = byte_offset(self.text, position).unwrap_or(self.text.len());
        let before = self.text.get(..body).unwrap_or_default();
        let start = before.rfind(&format!("fn {name}")).map_or(body, |start| start + "fn ".len());
        let branch = CodeBranch::new(CodeBranchKind::Function, name, start..start + name.len());
        let id = branch.id();
        self.branches.push(branch);
        id
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
        Ok(self.push_variable(LocalVariable { name: name.to_owned(), is_constant, closure: None }))
    }

    pub(super) fn push_variable(&mut self, variable: LocalVariable) -> usize {
        self.scope.push(variable);
        self.slot_count = self.slot_count.max(self.scope.len());
        self.scope.len() - 1
    }

    pub(super) fn new_node(position: Position, code: Code) -> CodeNode {
        CodeNode { position: source_position(position), code }
    }
}

pub(super) fn quote_all(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
