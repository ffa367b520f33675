//! The compiler of a build without the feature `scripts`: no code compiles.

use super::ScriptCompileError;
use super::language::{CompileResult, CompiledProgram, Language};
use super::names::Names;

/// Always returns the error that names the feature.
pub(super) fn compile(_: &str, language: Language, _: &Names) -> CompileResult<CompiledProgram> {
    Err(unsupported(language))
}

/// Always returns the error that names the feature.
pub(super) fn function_names(_: &str) -> CompileResult<Vec<(String, usize)>> {
    Err(unsupported(Language::Functions))
}

fn unsupported(language: Language) -> ScriptCompileError {
    let code = match language {
        Language::Expression => "expressions",
        Language::Script | Language::Policy => "scripts",
        Language::Functions => "functions",
    };
    ScriptCompileError {
        message: format!(
            "this build of Callgate has no {code}: they need `features = [\"scripts\"]` of the dependency `callgate`"
        ),
        offset: None,
        help: Some(
            "add the feature to the program that loads these rules: `cargo add callgate --features scripts`"
                .to_owned(),
        ),
        is_unknown_name: false,
    }
}
