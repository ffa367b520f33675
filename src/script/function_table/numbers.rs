//! Functions on numbers.

use crate::script::function_library::{collections, numbers};
use crate::script::script_function::{Implementation, ScriptFunction};

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new("abs", &["number"], "the number without its sign", Implementation::One(numbers::abs)),
    ScriptFunction::new(
        "ceil",
        &["number", "digits?"],
        "the number rounded up to `digits` digits after the point (0 if omitted)",
        Implementation::OneOrTwo(numbers::ceil),
    ),
    ScriptFunction::new(
        "floor",
        &["number", "digits?"],
        "the number rounded down to `digits` digits after the point (0 if omitted)",
        Implementation::OneOrTwo(numbers::floor),
    ),
    ScriptFunction::new(
        "fraction",
        &["number"],
        "what follows the point: `fraction(1.25)` is 0.25",
        Implementation::One(numbers::fraction),
    ),
    ScriptFunction::new(
        "int",
        &["number"],
        "the number without the digits after the point",
        Implementation::One(numbers::int),
    ),
    ScriptFunction::new(
        "is_even",
        &["whole number"],
        "whether a whole number is even",
        Implementation::One(numbers::is_even),
    ),
    ScriptFunction::new(
        "is_odd",
        &["whole number"],
        "whether a whole number is odd",
        Implementation::One(numbers::is_odd),
    ),
    ScriptFunction::new(
        "is_zero",
        &["number"],
        "whether a number is 0",
        Implementation::One(numbers::is_zero),
    ),
    ScriptFunction::new(
        "max",
        &["a", "b"],
        "the larger of two numbers or strings",
        Implementation::Two(numbers::max),
    ),
    ScriptFunction::new(
        "min",
        &["a", "b"],
        "the smaller of two numbers or strings",
        Implementation::Two(numbers::min),
    ),
    ScriptFunction::new(
        "pow",
        &["number", "exponent"],
        "the number to the power of a whole number from 0",
        Implementation::Two(numbers::pow),
    ),
    ScriptFunction::new(
        "round",
        &["number", "digits?"],
        "the number rounded to `digits` digits after the point (0 if omitted); a half is rounded away from zero",
        Implementation::OneOrTwo(numbers::round),
    ),
    ScriptFunction::new("sign", &["number"], "1, 0 or -1", Implementation::One(numbers::sign)),
    ScriptFunction::new(
        "sqrt",
        &["number"],
        "the square root, rounded half to even at 34 digits; undecided for a negative number",
        Implementation::One(numbers::sqrt),
    ),
    ScriptFunction::new(
        "sum",
        &["array"],
        "the sum of an array of numbers",
        Implementation::One(collections::sum),
    ),
    ScriptFunction::new(
        "to_number",
        &["string"],
        "the number that a string holds in JSON notation; any other string is an error",
        Implementation::One(numbers::to_number),
    ),
];
