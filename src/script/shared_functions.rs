//! Compiler for the functions of a bundle (`functions`): Rhai text → [`SharedFunctions`].

use std::ops::Range;

use super::ScriptCompileError;
use super::code_branch::{self, CodeBranch};
use super::compiler::{compile, function_names};
use super::language::Language;
use super::names::Names;
use super::program::SharedFunctions;
use crate::diagnostic::Span;

impl SharedFunctions {
    /// The names of the functions that a text defines, each with its offset.
    ///
    /// # Errors
    /// Invalid syntax.
    pub fn parse_names(text: &str) -> Result<Vec<(String, usize)>, ScriptCompileError> {
        function_names(text)
    }

    /// Compiles `fn` definitions in Rhai's syntax. They see their parameters, the constants of `names` and each other.
    ///
    /// # Errors
    /// Invalid syntax, a statement outside a function, two functions of one name, the name of a built-in function, and everything that
    /// the functions of scripts may not do either.
    pub fn compile(text: &str, names: &Names) -> Result<Self, ScriptCompileError> {
        let compiled = compile(text, Language::Functions, names)?;
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
