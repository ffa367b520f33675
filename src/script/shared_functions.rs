//! Compiler for the functions of a bundle (`functions`): Rhai text → [`SharedFunctions`].

use std::ops::Range;

use super::ScriptCompileError;
use super::code_branch::{self, CodeBranch};
use super::compiler::compile;
use super::names::Names;
use super::parser::{Language, byte_offset, function_definitions, parse};
use super::program::SharedFunctions;
use crate::diagnostic::Span;

/// The maximum length of all functions, in bytes.
const MAX_FUNCTIONS_TEXT: usize = 64 << 10;

impl SharedFunctions {
    /// The names of the functions that a text defines, each with its offset.
    ///
    /// # Errors
    /// Invalid syntax.
    pub fn parse_names(text: &str) -> Result<Vec<(String, usize)>, ScriptCompileError> {
        let ast = parse(text, Language::Functions, MAX_FUNCTIONS_TEXT)?;
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

    /// Compiles `fn` definitions in Rhai's syntax. They see their parameters, the constants of `names` and each other.
    ///
    /// # Errors
    /// Invalid syntax, a statement outside a function, two functions of one name, the name of a built-in function, and everything that
    /// the functions of scripts may not do either.
    pub fn compile(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        let ast = parse(text, Language::Functions, MAX_FUNCTIONS_TEXT)?;
        let compiled = compile(text, &ast, Language::Functions, names)?;
        Ok(Self {
            program: compiled.program,
            signatures: compiled.signatures,
            prints: compiled.dependencies.prints,
            branches: compiled.branches,
            definitions: compiled.dependencies.definitions,
        })
    }

    /// The functions themselves and the arms of `switch` in them.
    pub fn branches(&self) -> &[CodeBranch] {
        &self.branches
    }

    /// Sets where the branches are in the rules.
    pub fn locate_branches(&mut self, mut span_of: impl FnMut(Range<usize>) -> Span) {
        code_branch::locate(&mut self.branches, &mut span_of);
    }
}
