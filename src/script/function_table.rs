//! The table of functions that an expression or a script can call; the compiler and the reference are built from it.
//!
//! A function takes the same types as the YAML test of the same name: `len` and `contains` take strings and arrays, all others one
//! type. Any other type is an error.

use super::function_library as lib;
use super::script_function::{
    ClosureFunction, EffectKind, Existence, Implementation, MutatingFunction, ScriptFunction,
};

/// Whether a function has this name.
pub fn is_function_name(name: &str) -> bool {
    find_function(name).is_some()
}

/// The function with this name.
pub(super) fn find_function(name: &str) -> Option<&'static ScriptFunction> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Every function: those of expressions, those of scripts only, and the effects.
pub const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new("abs", &["number"], "the number without its sign", Implementation::One(lib::abs)),
    ScriptFunction::new(
        "all",
        &["array", "|x| …"],
        "whether the closure returns true for every element",
        Implementation::Closure(ClosureFunction::All),
    ),
    ScriptFunction::new(
        "at",
        &["array or object", "index or key"],
        "the element at an index, or the member of an object",
        Implementation::Two(lib::at),
    ),
    ScriptFunction::new(
        "ceil",
        &["number", "digits?"],
        "the number rounded up to `digits` digits after the point (0 if omitted)",
        Implementation::OneOrTwo(lib::ceil),
    ),
    ScriptFunction::new(
        "contains",
        &["string or array", "part"],
        "whether a string contains this part, or an array this element",
        Implementation::Two(lib::contains),
    ),
    ScriptFunction::new(
        "count",
        &["array", "value"],
        "the number of elements of an array that equal a value",
        Implementation::Two(lib::count),
    ),
    ScriptFunction::new(
        "ends_with",
        &["string", "end"],
        "whether a string ends with `end`",
        Implementation::Two(lib::ends_with),
    ),
    ScriptFunction::new(
        "exists",
        &["value"],
        "whether the value exists; null does. False if something that it reads is absent",
        Implementation::Existence(Existence::OrNull),
    ),
    ScriptFunction::new(
        "filter",
        &["array", "|x| …"],
        "the elements for which the closure returns true",
        Implementation::Closure(ClosureFunction::Filter),
    ),
    ScriptFunction::new(
        "floor",
        &["number", "digits?"],
        "the number rounded down to `digits` digits after the point (0 if omitted)",
        Implementation::OneOrTwo(lib::floor),
    ),
    ScriptFunction::new(
        "has",
        &["object", "key"],
        "whether an object has a key",
        Implementation::Two(lib::has),
    ),
    ScriptFunction::new(
        "index_of",
        &["array", "value"],
        "the first index of a value, or -1",
        Implementation::Two(lib::index_of),
    ),
    ScriptFunction::new(
        "indices",
        &["array"],
        "the indices of an array, from 0: `indices(a).all(|k| at(a, k) != at(b, k))` compares two arrays element by element",
        Implementation::One(lib::indices),
    ),
    ScriptFunction::new("is_null", &["value"], "whether a value is null", Implementation::One(lib::is_null)),
    ScriptFunction::new(
        "is_tool",
        &["\"pattern\""],
        "whether the called tool matches a pattern, or one of a group: `is_tool(\"@sends\")`",
        Implementation::IsTool,
    ),
    ScriptFunction::new("keys", &["object"], "the keys of an object, sorted", Implementation::One(lib::keys)),
    ScriptFunction::new(
        "is_empty",
        &["string, array or object"],
        "whether it has no characters, elements or keys",
        Implementation::One(lib::is_empty),
    ),
    ScriptFunction::new(
        "len",
        &["string, array or object"],
        "the number of characters, elements or keys",
        Implementation::One(lib::len),
    ),
    ScriptFunction::new(
        "map",
        &["array", "|x| …"],
        "an array of what the closure returns for each element",
        Implementation::Closure(ClosureFunction::Map),
    ),
    ScriptFunction::new(
        "matches",
        &["string", "\"regex\""],
        "whether a regex matches anywhere in a string",
        Implementation::Matches,
    ),
    ScriptFunction::new(
        "max",
        &["a", "b"],
        "the larger of two numbers or strings",
        Implementation::Two(lib::max),
    ),
    ScriptFunction::new(
        "min",
        &["a", "b"],
        "the smaller of two numbers or strings",
        Implementation::Two(lib::min),
    ),
    ScriptFunction::new(
        "present",
        &["value"],
        "whether the value exists and is not null",
        Implementation::Existence(Existence::NotNull),
    ),
    ScriptFunction::new(
        "round",
        &["number", "digits?"],
        "the number rounded to `digits` digits after the point (0 if omitted); a half is rounded away from zero",
        Implementation::OneOrTwo(lib::round),
    ),
    ScriptFunction::new(
        "some",
        &["array", "|x| …"],
        "whether the closure returns true for at least one element",
        Implementation::Closure(ClosureFunction::Some),
    ),
    ScriptFunction::new(
        "split",
        &["string", "separator"],
        "the parts of a string between separators, as an array",
        Implementation::Two(lib::split),
    ),
    ScriptFunction::new(
        "starts_with",
        &["string", "start"],
        "whether a string starts with `start`",
        Implementation::Two(lib::starts_with),
    ),
    ScriptFunction::new("sum", &["array"], "the sum of an array of numbers", Implementation::One(lib::sum)),
    ScriptFunction::new(
        "to_lower",
        &["string"],
        "the string in lower case",
        Implementation::One(lib::to_lower),
    ),
    ScriptFunction::new(
        "to_upper",
        &["string"],
        "the string in upper case",
        Implementation::One(lib::to_upper),
    ),
    ScriptFunction::new(
        "trim",
        &["string"],
        "the string without leading and trailing white space",
        Implementation::One(lib::trim),
    ),
    ScriptFunction::new(
        "type_of",
        &["value"],
        "`null`, `boolean`, `number`, `string`, `array` or `object`",
        Implementation::One(lib::type_of),
    ),
    ScriptFunction::new(
        "values",
        &["object"],
        "the values of an object, in the order of its keys",
        Implementation::One(lib::values),
    ),
    ScriptFunction::new(
        "join",
        &["array", "separator"],
        "the strings of an array as one string, with a separator between them",
        Implementation::Two(lib::join),
    ),
    ScriptFunction::new(
        "merge",
        &["object", "other"],
        "an object with the members of both; for a key in both, `other` wins",
        Implementation::Two(lib::merge),
    ),
    ScriptFunction::new_for_scripts(
        "pop",
        &["array"],
        "removes the last element of an array and returns it",
        Implementation::Mutation(MutatingFunction::Pop),
    ),
    ScriptFunction::new_for_scripts(
        "push",
        &["array", "value"],
        "appends an element to an array",
        Implementation::Mutation(MutatingFunction::Push),
    ),
    ScriptFunction::new(
        "range",
        &["from", "to"],
        "the whole numbers from `from` to before `to`, as an array",
        Implementation::Two(lib::range),
    ),
    ScriptFunction::new_for_scripts(
        "remove",
        &["object", "key"],
        "removes a key from an object and returns whether it existed",
        Implementation::Mutation(MutatingFunction::Remove),
    ),
    ScriptFunction::new(
        "replace",
        &["string", "part", "with"],
        "the string with every occurrence of `part` replaced",
        Implementation::Three(lib::replace),
    ),
    ScriptFunction::new(
        "slice",
        &["string or array", "from", "to"],
        "the characters or elements from index `from` to before `to`; negative indices count from the end",
        Implementation::Three(lib::slice),
    ),
    ScriptFunction::new(
        "sort",
        &["array"],
        "the numbers or strings of an array in ascending order",
        Implementation::One(lib::sort),
    ),
    ScriptFunction::new(
        "to_number",
        &["string"],
        "the number that a string holds in JSON notation; any other string is an error",
        Implementation::One(lib::to_number),
    ),
    ScriptFunction::new(
        "to_text",
        &["value"],
        "a string unchanged, any other value as JSON text",
        Implementation::One(lib::to_text),
    ),
    ScriptFunction::new_for_scripts(
        "next",
        &["input", "options?"],
        "runs the tool, or the next inner wrapper, with this input (and these options for the host's executor), and \
         returns its output; its error is thrown as `#{message, kind}`, with an empty string for a missing `kind`",
        Implementation::Effect(EffectKind::Next),
    ),
    ScriptFunction::new_for_scripts(
        "approve",
        &["message"],
        "requests human approval; returns `true` once approved, and throws otherwise",
        Implementation::Effect(EffectKind::Approve),
    ),
    ScriptFunction::new_for_scripts(
        "now",
        &[],
        "the current time, in milliseconds since 1970 (UTC)",
        Implementation::Effect(EffectKind::Now),
    ),
    ScriptFunction::new_for_scripts(
        "random",
        &[],
        "a random number from 0 to below 1",
        Implementation::Effect(EffectKind::Random),
    ),
    ScriptFunction::new_for_scripts(
        "cache_get",
        &["key"],
        "the cached value of a key (any JSON value), or null",
        Implementation::Effect(EffectKind::CacheGet),
    ),
    ScriptFunction::new_for_scripts(
        "cache_set",
        &["key", "value", "ttl"],
        "caches a value under a key for a duration such as `\"60s\"`",
        Implementation::Effect(EffectKind::CacheSet),
    ),
    ScriptFunction::new_for_scripts(
        "audit",
        &["object"],
        "adds fields to the audit record",
        Implementation::Effect(EffectKind::Audit),
    ),
];
