//! The functions that an expression or a script may call: one table, from which the compiler and the docs are made.
//!
//! What a function takes is what the test of the same name takes in YAML: `len` and `contains` look at texts and arrays,
//! all others at one type. Everything else raises.

use super::library as lib;
use super::value::Val;
use super::work::{Fault, Work};

/// One function of the language.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its parameters as in the docs. The first can stand in front: `to_lower(x)` is `x.to_lower()`.
    pub parameters: &'static [&'static str],
    /// What it gives.
    pub about: &'static str,
    pub(super) run: Run,
    place: Place,
}

/// Where a function can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Everywhere,
    Scripts,
}

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    One(for<'r> fn(&Work, &Val<'r>) -> Result<Val<'r>, Fault>),
    Two(for<'r> fn(&Work, &Val<'r>, &Val<'r>) -> Result<Val<'r>, Fault>),
    /// The second value can be left out.
    OneOrTwo(for<'r> fn(&Work, &Val<'r>, Option<&Val<'r>>) -> Result<Val<'r>, Fault>),
    Three(for<'r> fn(&Work, &Val<'r>, &Val<'r>, &Val<'r>) -> Result<Val<'r>, Fault>),
    /// A text, and a regex that is written out.
    Matches,
    /// An array, and a closure of one parameter for its elements.
    Each(Each),
    /// Changes the variable, or the place in it, that its first argument names.
    Change(Change),
    /// Asks something of the world around the script.
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

/// What a script can ask of the world around it.
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
    /// The function as a caller writes it: `contains(text, part)`.
    pub fn signature(&self) -> String {
        format!("{}({})", self.name, self.parameters.join(", "))
    }

    /// Whether only scripts have it, not `expr`.
    pub fn scripts_only(&self) -> bool {
        self.place == Place::Scripts
    }

    /// Whether it is an effect: it asks something of the world around the script, and its answer is kept in the journal.
    pub fn is_effect(&self) -> bool {
        matches!(self.run, Run::Effect(_))
    }

    /// How many arguments it takes at least.
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
        Self { name, parameters, about, run, place: Place::Scripts }
    }
}

/// The function of this name.
pub(super) fn by_name(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Every function: those of expressions, those that scripts have beside them, and the effects.
pub const FUNCTIONS: &[Function] = &[
    Function::new("abs", &["number"], "the number without its sign", Run::One(lib::abs)),
    Function::new(
        "all",
        &["array", "|x| …"],
        "whether the closure is true of every element",
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
        "the next larger number with so many digits after the point, or none",
        Run::OneOrTwo(lib::ceil),
    ),
    Function::new(
        "contains",
        &["text or array", "part"],
        "whether a string has this part, or an array this element",
        Run::Two(lib::contains),
    ),
    Function::new(
        "count",
        &["array", "value"],
        "how many elements of an array equal a value",
        Run::Two(lib::count),
    ),
    Function::new("ends_with", &["text", "end"], "whether a string ends so", Run::Two(lib::ends_with)),
    Function::new(
        "filter",
        &["array", "|x| …"],
        "the elements of which the closure is true",
        Run::Each(Each::Filter),
    ),
    Function::new(
        "floor",
        &["number", "digits?"],
        "the next smaller number with so many digits after the point, or none",
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
        "the indices of an array, from 0: `indices(a).all(|k| at(a, k) != at(b, k))` goes through two arrays side by side",
        Run::One(lib::indices),
    ),
    Function::new("is_null", &["value"], "whether a value is null", Run::One(lib::is_null)),
    Function::new("keys", &["object"], "the keys of an object, sorted", Run::One(lib::keys)),
    Function::new(
        "is_empty",
        &["text, array or object"],
        "whether it has no characters, elements or keys",
        Run::One(lib::is_empty),
    ),
    Function::new(
        "len",
        &["text, array or object"],
        "how many characters, elements or keys it has",
        Run::One(lib::len),
    ),
    Function::new(
        "map",
        &["array", "|x| …"],
        "what the closure gives for each element",
        Run::Each(Each::Map),
    ),
    Function::new(
        "matches",
        &["text", "\"regex\""],
        "whether a regex matches anywhere in a string",
        Run::Matches,
    ),
    Function::new("max", &["a", "b"], "the larger of two numbers or strings", Run::Two(lib::max)),
    Function::new("min", &["a", "b"], "the smaller of two numbers or strings", Run::Two(lib::min)),
    Function::new(
        "round",
        &["number", "digits?"],
        "the nearest number with so many digits after the point, or none; a half is rounded away from zero",
        Run::OneOrTwo(lib::round),
    ),
    Function::new(
        "some",
        &["array", "|x| …"],
        "whether the closure is true of an element",
        Run::Each(Each::Some),
    ),
    Function::new("split", &["text", "separator"], "the pieces of a string", Run::Two(lib::split)),
    Function::new(
        "starts_with",
        &["text", "start"],
        "whether a string starts so",
        Run::Two(lib::starts_with),
    ),
    Function::new("sum", &["array"], "the sum of an array of numbers", Run::One(lib::sum)),
    Function::new("to_lower", &["text"], "the string in lower case", Run::One(lib::to_lower)),
    Function::new("to_upper", &["text"], "the string in upper case", Run::One(lib::to_upper)),
    Function::new("trim", &["text"], "the string without white space around it", Run::One(lib::trim)),
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
        "an object with the members of both; where both have a key, with the other's",
        Run::Two(lib::merge),
    ),
    Function::scripts(
        "pop",
        &["array"],
        "takes the last element out of an array, and gives it",
        Run::Change(Change::Pop),
    ),
    Function::scripts(
        "push",
        &["array", "value"],
        "adds an element at the end of an array",
        Run::Change(Change::Push),
    ),
    Function::scripts(
        "range",
        &["from", "to"],
        "the whole numbers from one to before the other, as an array",
        Run::Two(lib::range),
    ),
    Function::scripts(
        "remove",
        &["object", "key"],
        "takes a key out of an object, and gives whether it was there",
        Run::Change(Change::Remove),
    ),
    Function::scripts(
        "replace",
        &["text", "part", "with"],
        "the string with something else in every place of a part",
        Run::Three(lib::replace),
    ),
    Function::scripts(
        "slice",
        &["text or array", "from", "to"],
        "the characters or elements from an index to before another; negative ones count from the end",
        Run::Three(lib::slice),
    ),
    Function::scripts("sort", &["array"], "the numbers or strings of an array in order", Run::One(lib::sort)),
    Function::scripts(
        "to_number",
        &["text"],
        "the number that a string holds, written as in JSON; anything else raises",
        Run::One(lib::to_number),
    ),
    Function::scripts(
        "to_text",
        &["value"],
        "a string as it is, anything else as its JSON text",
        Run::One(lib::to_text),
    ),
    Function::scripts(
        "next",
        &["input", "options?"],
        "runs the tool, or what is wrapped inside of this policy, with this input (and these options for the host's executor), and \
         gives its output; its error is thrown as `#{message, kind}`, `kind` an empty string where it has none",
        Run::Effect(EffectKind::Next),
    ),
    Function::scripts(
        "approve",
        &["message"],
        "asks a person; gives `true` once approved, and throws otherwise",
        Run::Effect(EffectKind::Approve),
    ),
    Function::scripts("now", &[], "the time, in milliseconds since 1970 (UTC)", Run::Effect(EffectKind::Now)),
    Function::scripts("random", &[], "a number from 0 to below 1", Run::Effect(EffectKind::Random)),
    Function::scripts(
        "cache_get",
        &["key"],
        "what is kept under a key (any value), or null",
        Run::Effect(EffectKind::CacheGet),
    ),
    Function::scripts(
        "cache_set",
        &["key", "value", "ttl"],
        "keeps a value under a key for a span of time such as `\"60s\"`",
        Run::Effect(EffectKind::CacheSet),
    ),
    Function::scripts(
        "audit",
        &["object"],
        "adds fields to the audit record",
        Run::Effect(EffectKind::Audit),
    ),
];
