//! Functions on strings.

use crate::script::function_library::{collections, strings};
use crate::script::script_function::{Implementation, ScriptFunction};

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new(
        "chars",
        &["string"],
        "the characters of a string, as an array of strings",
        Implementation::One(strings::chars),
    ),
    ScriptFunction::new(
        "contains",
        &["string or array", "part"],
        "whether a string contains this part, or an array this element",
        Implementation::Two(collections::contains),
    ),
    ScriptFunction::new(
        "ends_with",
        &["string", "end"],
        "whether a string ends with `end`",
        Implementation::Two(strings::ends_with),
    ),
    ScriptFunction::new(
        "join",
        &["array", "separator"],
        "the strings of an array as one string, with a separator between them",
        Implementation::Two(strings::join),
    ),
    ScriptFunction::new(
        "matches",
        &["string", "\"regex\""],
        "whether a regex matches anywhere in a string",
        Implementation::Matches,
    ),
    ScriptFunction::new(
        "replace",
        &["string", "part", "with"],
        "the string with every occurrence of `part` replaced",
        Implementation::Three(strings::replace),
    ),
    ScriptFunction::new(
        "slice",
        &["string or array", "from", "to"],
        "the characters or elements from index `from` to before `to`; negative indices count from the end",
        Implementation::Three(collections::slice),
    ),
    ScriptFunction::new(
        "split",
        &["string", "separator"],
        "the parts of a string between separators, as an array",
        Implementation::Two(strings::split),
    ),
    ScriptFunction::new(
        "starts_with",
        &["string", "start"],
        "whether a string starts with `start`",
        Implementation::Two(strings::starts_with),
    ),
    ScriptFunction::new(
        "sub_string",
        &["string", "from", "length"],
        "at most `length` characters from an index on; a negative index counts from the end",
        Implementation::Three(strings::sub_string),
    ),
    ScriptFunction::new(
        "to_lower",
        &["string"],
        "the string in lower case",
        Implementation::One(strings::to_lower),
    ),
    ScriptFunction::new(
        "to_upper",
        &["string"],
        "the string in upper case",
        Implementation::One(strings::to_upper),
    ),
    ScriptFunction::new(
        "trim",
        &["string"],
        "the string without leading and trailing white space",
        Implementation::One(strings::trim),
    ),
];
