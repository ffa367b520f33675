//! Functions on values of several types.

use crate::script::function_library::{collections, strings};
use crate::script::script_function::{Existence, Implementation, ScriptFunction};

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new(
        "at",
        &["array or object", "index or key"],
        "the element at an index, or the member of an object",
        Implementation::Two(collections::at),
    ),
    ScriptFunction::new(
        "exists",
        &["value"],
        "whether the value exists; null does. False if something that it reads is absent",
        Implementation::Existence(Existence::OrNull),
    ),
    ScriptFunction::new(
        "has",
        &["object", "key"],
        "whether an object has a key",
        Implementation::Two(collections::has),
    ),
    ScriptFunction::new(
        "is_null",
        &["value"],
        "whether a value is null",
        Implementation::One(collections::is_null),
    ),
    ScriptFunction::new(
        "keys",
        &["object"],
        "the keys of an object, sorted",
        Implementation::One(collections::keys),
    ),
    ScriptFunction::new(
        "len",
        &["string, array or object"],
        "the number of characters, elements or keys",
        Implementation::One(collections::len),
    ),
    ScriptFunction::new(
        "is_empty",
        &["string, array or object"],
        "whether it has no characters, elements or keys",
        Implementation::One(collections::is_empty),
    ),
    ScriptFunction::new(
        "merge",
        &["object", "other"],
        "an object with the members of both; for a key in both, `other` wins",
        Implementation::Two(collections::merge),
    ),
    ScriptFunction::new(
        "present",
        &["value"],
        "whether the value exists and is not null",
        Implementation::Existence(Existence::NotNull),
    ),
    ScriptFunction::new(
        "to_text",
        &["value"],
        "a string unchanged, a number or a boolean as JSON text. In `around` scripts also any other value as JSON text, which is undecided elsewhere: `[5]` is not `\"5\"`",
        Implementation::One(strings::to_text),
    ),
    ScriptFunction::new(
        "type_of",
        &["value"],
        "`null`, `boolean`, `number`, `string`, `array` or `object`",
        Implementation::One(collections::type_of),
    ),
    ScriptFunction::new(
        "values",
        &["object"],
        "the values of an object, in the order of its keys",
        Implementation::One(collections::values),
    ),
    ScriptFunction::new(
        "is_tool",
        &["\"pattern\""],
        "whether the called tool matches a pattern, or one of a group: `is_tool(\"@sends\")`",
        Implementation::IsTool,
    ),
];
