//! The table of functions that an expression or a script can call; the compiler and the reference are built from it.
//!
//! A function takes the same types as the YAML test of the same name: `len` and `contains` take strings and arrays, all others one
//! type. Any other type is undecided, and so is whatever exceeds a limit. An absent or undecided argument makes the result so. What else
//! makes a result absent or undecided is in the description of the function.

mod addresses;
mod arrays;
mod numbers;
mod scripts;
mod strings;
mod times;
mod values;

use super::script_function::ScriptFunction;

/// Every function by what it is about, those of scripts only and the effects last.
const GROUPS: [&[ScriptFunction]; 7] = [
    values::FUNCTIONS,
    numbers::FUNCTIONS,
    strings::FUNCTIONS,
    arrays::FUNCTIONS,
    addresses::FUNCTIONS,
    times::FUNCTIONS,
    scripts::FUNCTIONS,
];

/// Every function: those of expressions, those of scripts only, and the effects.
pub fn functions() -> impl Iterator<Item = &'static ScriptFunction> {
    GROUPS.into_iter().flatten()
}

/// Whether a function has this name.
pub fn is_function_name(name: &str) -> bool {
    find_function(name).is_some()
}

/// The function with this name.
pub(super) fn find_function(name: &str) -> Option<&'static ScriptFunction> {
    functions().find(|function| function.name == name)
}
