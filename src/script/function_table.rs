//! The table of functions that an expression or a script can call; the compiler and the reference are built from it.
//!
//! A function takes the same types as the YAML test of the same name: `len` and `contains` take strings and arrays, all others one
//! type. Any other type is an error.

use super::fuel::{Fault, Work};
use super::function_library as lib;
use super::value::ScriptValue;

/// One function of the language.
#[derive(Debug)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The parameters as in the docs. The first can be a receiver: `to_lower(x)` is `x.to_lower()`.
    pub parameters: &'static [&'static str],
    /// What it returns.
    pub about: &'static str,
    pub(super) run: Run,
    place: Place,
}

/// The languages that have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Everywhere,
    ScriptsOnly,
}

/// The implementation of a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    One(for<'r> fn(&Work, &ScriptValue<'r>) -> Result<ScriptValue<'r>, Fault>),
    Two(for<'r> fn(&Work, &ScriptValue<'r>, &ScriptValue<'r>) -> Result<ScriptValue<'r>, Fault>),
    /// The second argument is optional.
    OneOrTwo(for<'r> fn(&Work, &ScriptValue<'r>, Option<&ScriptValue<'r>>) -> Result<ScriptValue<'r>, Fault>),
    Three(
        for<'r> fn(
            &Work,
            &ScriptValue<'r>,
            &ScriptValue<'r>,
            &ScriptValue<'r>,
        ) -> Result<ScriptValue<'r>, Fault>,
    ),
    /// A string and a regex literal.
    Matches,
    /// An array and a closure of one parameter for its elements.
    Each(Each),
    /// Changes the variable, or the member or element of it, that the first argument names.
    Change(Change),
    /// Requests an effect from the host.
    Effect(EffectKind),
}

/// A function that runs a closure on the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    All,
    Some,
    Filter,
    Map,
}

impl Each {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Some => "some",
            Self::Filter => "filter",
            Self::Map => "map",
        }
    }
}

/// A function that changes its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Push,
    Pop,
    Remove,
}

/// An effect that a script can request from its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectKind {
    Next,
    Approve,
    Now,
    Random,
    CacheGet,
    CacheSet,
    Audit,
}

impl Function {
    /// The function as a caller writes it: `contains(string or array, part)`.
    pub fn signature(&self) -> String {
        format!("{}({})", self.name, self.parameters.join(", "))
    }

    /// Whether only scripts have it, not expressions.
    pub fn is_scripts_only(&self) -> bool {
        self.place == Place::ScriptsOnly
    }

    /// Whether it is an effect: a request to the host whose result is recorded in the journal.
    pub fn is_effect(&self) -> bool {
        matches!(self.run, Run::Effect(_))
    }

    /// The minimum number of arguments.
    pub(super) fn least(&self) -> usize {
        self.parameters.iter().filter(|parameter| !parameter.ends_with('?')).count()
    }

    const fn new(
        name: &'static str,
        parameters: &'static [&'static str],
        about: &'static str,
        run: Run,
    ) -> Self {
        Self { name, parameters, about, run, place: Place::Everywhere }
    }

    const fn scripts(
        name: &'static str,
        parameters: &'static [&'static str],
        about: &'static str,
        run: Run,
    ) -> Self {
        Self { name, parameters, about, run, place: Place::ScriptsOnly }
    }
}

/// The function with this name.
pub(super) fn by_name(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Every function: those of expressions, those of scripts only, and the effects.
pub const FUNCTIONS: &[Function] = &[
    Function::new("abs", &["number"], "the number without its sign", Run::One(lib::abs)),
    Function::new(
        "all",
        &["array", "|x| …"],
        "whether the closure returns true for every element",
        Run::Each(Each::All),
    ),
    Function::new(
        "at",
        &["array or object", "index or key"],
        "the element at an index, or the member of an object",
        Run::Two(lib::at),
    ),
    Function::new(
        "ceil",
        &["number", "digits?"],
        "the number rounded up to `digits` digits after the point (0 if omitted)",
        Run::OneOrTwo(lib::ceil),
    ),
    Function::new(
        "contains",
        &["string or array", "part"],
        "whether a string contains this part, or an array this element",
        Run::Two(lib::contains),
    ),
    Function::new(
        "count",
        &["array", "value"],
        "the number of elements of an array that equal a value",
        Run::Two(lib::count),
    ),
    Function::new(
        "ends_with",
        &["string", "end"],
        "whether a string ends with `end`",
        Run::Two(lib::ends_with),
    ),
    Function::new(
        "filter",
        &["array", "|x| …"],
        "the elements for which the closure returns true",
        Run::Each(Each::Filter),
    ),
    Function::new(
        "floor",
        &["number", "digits?"],
        "the number rounded down to `digits` digits after the point (0 if omitted)",
        Run::OneOrTwo(lib::floor),
    ),
    Function::new("has", &["object", "key"], "whether an object has a key", Run::Two(lib::has)),
    Function::new(
        "index_of",
        &["array", "value"],
        "the first index of a value, or -1",
        Run::Two(lib::index_of),
    ),
    Function::new(
        "indices",
        &["array"],
        "the indices of an array, from 0: `indices(a).all(|k| at(a, k) != at(b, k))` compares two arrays element by element",
        Run::One(lib::indices),
    ),
    Function::new("is_null", &["value"], "whether a value is null", Run::One(lib::is_null)),
    Function::new("keys", &["object"], "the keys of an object, sorted", Run::One(lib::keys)),
    Function::new(
        "is_empty",
        &["string, array or object"],
        "whether it has no characters, elements or keys",
        Run::One(lib::is_empty),
    ),
    Function::new(
        "len",
        &["string, array or object"],
        "the number of characters, elements or keys",
        Run::One(lib::len),
    ),
    Function::new(
        "map",
        &["array", "|x| …"],
        "an array of what the closure returns for each element",
        Run::Each(Each::Map),
    ),
    Function::new(
        "matches",
        &["string", "\"regex\""],
        "whether a regex matches anywhere in a string",
        Run::Matches,
    ),
    Function::new("max", &["a", "b"], "the larger of two numbers or strings", Run::Two(lib::max)),
    Function::new("min", &["a", "b"], "the smaller of two numbers or strings", Run::Two(lib::min)),
    Function::new(
        "round",
        &["number", "digits?"],
        "the number rounded to `digits` digits after the point (0 if omitted); a half is rounded away from zero",
        Run::OneOrTwo(lib::round),
    ),
    Function::new(
        "some",
        &["array", "|x| …"],
        "whether the closure returns true for at least one element",
        Run::Each(Each::Some),
    ),
    Function::new(
        "split",
        &["string", "separator"],
        "the parts of a string between separators, as an array",
        Run::Two(lib::split),
    ),
    Function::new(
        "starts_with",
        &["string", "start"],
        "whether a string starts with `start`",
        Run::Two(lib::starts_with),
    ),
    Function::new("sum", &["array"], "the sum of an array of numbers", Run::One(lib::sum)),
    Function::new("to_lower", &["string"], "the string in lower case", Run::One(lib::to_lower)),
    Function::new("to_upper", &["string"], "the string in upper case", Run::One(lib::to_upper)),
    Function::new(
        "trim",
        &["string"],
        "the string without leading and trailing white space",
        Run::One(lib::trim),
    ),
    Function::new(
        "type_of",
        &["value"],
        "`null`, `boolean`, `number`, `string`, `array` or `object`",
        Run::One(lib::type_of),
    ),
    Function::new(
        "values",
        &["object"],
        "the values of an object, in the order of its keys",
        Run::One(lib::values),
    ),
    Function::scripts(
        "join",
        &["array", "separator"],
        "the strings of an array as one string, with a separator between them",
        Run::Two(lib::join),
    ),
    Function::scripts(
        "merge",
        &["object", "other"],
        "an object with the members of both; for a key in both, `other` wins",
        Run::Two(lib::merge),
    ),
    Function::scripts(
        "pop",
        &["array"],
        "removes the last element of an array and returns it",
        Run::Change(Change::Pop),
    ),
    Function::scripts(
        "push",
        &["array", "value"],
        "appends an element to an array",
        Run::Change(Change::Push),
    ),
    Function::scripts(
        "range",
        &["from", "to"],
        "the whole numbers from `from` to before `to`, as an array",
        Run::Two(lib::range),
    ),
    Function::scripts(
        "remove",
        &["object", "key"],
        "removes a key from an object and returns whether it existed",
        Run::Change(Change::Remove),
    ),
    Function::scripts(
        "replace",
        &["string", "part", "with"],
        "the string with every occurrence of `part` replaced",
        Run::Three(lib::replace),
    ),
    Function::scripts(
        "slice",
        &["string or array", "from", "to"],
        "the characters or elements from index `from` to before `to`; negative indices count from the end",
        Run::Three(lib::slice),
    ),
    Function::scripts(
        "sort",
        &["array"],
        "the numbers or strings of an array in ascending order",
        Run::One(lib::sort),
    ),
    Function::scripts(
        "to_number",
        &["string"],
        "the number that a string holds in JSON notation; any other string is an error",
        Run::One(lib::to_number),
    ),
    Function::scripts(
        "to_text",
        &["value"],
        "a string unchanged, any other value as JSON text",
        Run::One(lib::to_text),
    ),
    Function::scripts(
        "next",
        &["input", "options?"],
        "runs the tool, or the next inner wrapper, with this input (and these options for the host's executor), and \
         returns its output; its error is thrown as `#{message, kind}`, with an empty string for a missing `kind`",
        Run::Effect(EffectKind::Next),
    ),
    Function::scripts(
        "approve",
        &["message"],
        "requests human approval; returns `true` once approved, and throws otherwise",
        Run::Effect(EffectKind::Approve),
    ),
    Function::scripts(
        "now",
        &[],
        "the current time, in milliseconds since 1970 (UTC)",
        Run::Effect(EffectKind::Now),
    ),
    Function::scripts("random", &[], "a random number from 0 to below 1", Run::Effect(EffectKind::Random)),
    Function::scripts(
        "cache_get",
        &["key"],
        "the cached value of a key (any JSON value), or null",
        Run::Effect(EffectKind::CacheGet),
    ),
    Function::scripts(
        "cache_set",
        &["key", "value", "ttl"],
        "caches a value under a key for a duration such as `\"60s\"`",
        Run::Effect(EffectKind::CacheSet),
    ),
    Function::scripts(
        "audit",
        &["object"],
        "adds fields to the audit record",
        Run::Effect(EffectKind::Audit),
    ),
];
