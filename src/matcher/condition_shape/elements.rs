//! The keys of `every`, `any_of` and `none` in rules files: those of a condition, and those that name the elements.

mod shell;

pub use shell::SHELL_RECORD;
pub(in crate::matcher) use shell::{COMMAND_RECORD, PATTERNS, QUANTIFIERS, UNKNOWN};

use super::{
    ABSENT, BASE, CONFUSABLES, CONTAINS, CONTAINS_ANY, DECIMAL, DETECTS, DOMAIN, DURING, EACH, ENDS_WITH, EQ,
    EXISTS, EXPR_KEY, EXPRESSION, GT, GTE, HOST, IGNORE_CASE, IN, INSIDE, LENGTH, LT, LTE, MATCHES,
    MENTIONED_IN, NE, NOT_IN, OLDER_THAN, PATH, SHELL_KEY, STARTS_WITH, TYPE, WITHIN,
};
use crate::matcher::mention::AS;
use crate::rules_schema::{FieldShape, RecordShape, Shape};

/// The key of the smallest number of elements.
pub(in crate::matcher) const MIN: &str = "min";

/// A condition on the elements of a path or an expression.
pub static ELEMENTS_RECORD: RecordShape = RecordShape {
    name: "elements",
    doc: "The elements, by `path` or `expr`, and a condition on each of them. A test without `path` is about the element itself; \
          `$item.x` in paths and `item.x` in expressions are members of it.",
    fields: condition_fields!(ELEMENT_SHAPE, SOURCE_PATH, SOURCE_EXPRESSION, NAME, LEAST),
};

/// A condition on one element: a mapping, or an expression as a string.
static ELEMENT_SHAPE: Shape =
    Shape::Either(&[Shape::Record(&ELEMENT_CONDITION), Shape::String("a Rhai expression")]);

static ELEMENT_CONDITION: RecordShape = RecordShape {
    name: "element_condition",
    doc: "A condition on one element. A test without `path` and `expr` is about the element itself.",
    fields: condition_fields!(ELEMENT_SHAPE, PATH, EXPRESSION, AS),
};

const SOURCE_PATH: FieldShape = FieldShape::optional(
    "path",
    Shape::String("a JSONPath such as `$.input.to[*]`"),
    "The elements: the values of a path to several values, or the items of the array at the path. Absent and null have no elements; \
     any other value, and more than 10,000 elements are undecided.",
);
const SOURCE_EXPRESSION: FieldShape = FieldShape::optional(
    EXPR_KEY,
    Shape::String("an expression such as `input.to`"),
    "An expression in place of `path`: the elements are the items of an array.",
);
const NAME: FieldShape = FieldShape::optional(
    AS.name,
    Shape::String("a name such as `row`"),
    "The name of the element in place of `item`. Beside `mentioned_in`, the kind of token.",
);
const LEAST: FieldShape = FieldShape::optional(
    MIN,
    Shape::Integer(0, 10_000),
    "For `every`: the number of elements without which it does not hold. Required where `every` permits a call.",
);
