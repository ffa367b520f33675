//! Functions on arrays.

use crate::script::function_library::{collections, numbers};
use crate::script::script_function::{ClosureFunction, Implementation, ScriptFunction};

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new(
        "all",
        &["array", "|x| …"],
        "whether the closure returns true for every element; a second parameter of the closure, here and in the other functions, is the index",
        Implementation::Closure(ClosureFunction::All),
    ),
    ScriptFunction::new(
        "count",
        &["array", "value"],
        "the number of elements of an array that equal a value",
        Implementation::Two(collections::count),
    ),
    ScriptFunction::new(
        "filter",
        &["array", "|x| …"],
        "the elements for which the closure returns true",
        Implementation::Closure(ClosureFunction::Filter),
    ),
    ScriptFunction::new(
        "find",
        &["array", "|x| …"],
        "the first element for which the closure returns true; absent if there is none",
        Implementation::Closure(ClosureFunction::Find),
    ),
    ScriptFunction::new(
        "first",
        &["array"],
        "the first element; absent if the array is empty",
        Implementation::One(collections::first),
    ),
    ScriptFunction::new(
        "index_of",
        &["array", "value"],
        "the first index of a value, or -1",
        Implementation::Two(collections::index_of),
    ),
    ScriptFunction::new(
        "indices",
        &["array"],
        "the indices of an array, from 0: `indices(a).all(|k| at(a, k) != at(b, k))` compares two arrays element by element",
        Implementation::One(collections::indices),
    ),
    ScriptFunction::new(
        "last",
        &["array"],
        "the last element; absent if the array is empty",
        Implementation::One(collections::last),
    ),
    ScriptFunction::new(
        "map",
        &["array", "|x| …"],
        "an array of what the closure returns for each element",
        Implementation::Closure(ClosureFunction::Map),
    ),
    ScriptFunction::new(
        "range",
        &["from", "to"],
        "the whole numbers from `from` to before `to`, as an array",
        Implementation::Two(numbers::range),
    ),
    ScriptFunction::new(
        "reduce",
        &["array", "|result, x| …", "initial"],
        "what the closure makes of all elements, one after the other, beginning with `initial`",
        Implementation::Closure(ClosureFunction::Reduce),
    ),
    ScriptFunction::new(
        "reverse",
        &["array"],
        "the elements in reverse order",
        Implementation::One(collections::reverse),
    ),
    ScriptFunction::new(
        "some",
        &["array", "|x| …"],
        "whether the closure returns true for at least one element",
        Implementation::Closure(ClosureFunction::Some),
    ),
    ScriptFunction::new(
        "sort",
        &["array", "|a, b| …?"],
        "the numbers or strings of an array in ascending order. With a closure, elements of any type: it returns a negative number if `a` \
         comes first, a positive one if `b` does, and 0 if their order stays",
        Implementation::Closure(ClosureFunction::Sort),
    ),
    ScriptFunction::new(
        "unique",
        &["array"],
        "the elements without repetitions; undecided if two have different types",
        Implementation::One(collections::unique),
    ),
    ScriptFunction::new(
        "zip",
        &["array", "other"],
        "the pairs `[a, b]` of the elements of two arrays; undecided if the arrays have different lengths",
        Implementation::Two(collections::zip),
    ),
];
