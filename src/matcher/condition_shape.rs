//! The keys of a condition in rules files, with their documentation.

use super::detection::DETECTS;
use super::folded_comparison::{CONFUSABLES, IGNORE_CASE};
use super::length_bounds::{COUNT_SHAPE, LENGTH_RECORD};
use super::mention::{AS, DECIMAL, MENTIONED_IN};
use super::time_test::{DURING, OLDER_THAN, WITHIN};
use super::value_source::PATH_OPERAND;
use crate::rules_schema::{FieldShape, RecordShape, Shape};

/// The keys of a condition that contains conditions of this shape, with these meanings of `path`, `expr` and `as`. Each table is a literal: the tables contain each other.
macro_rules! condition_fields {
    ($condition:ident, $path:expr, $expression:expr, $name:expr $(, $more:expr)*) => {
        &[
            FieldShape::optional("all", Shape::NonEmptyList(&$condition), "All of these conditions hold."),
            FieldShape::optional(
                "any",
                Shape::NonEmptyList(&$condition),
                "At least one of these conditions holds.",
            ),
            FieldShape::optional("not", $condition, "This condition does not hold."),
            FieldShape::optional(
                "every",
                Shape::Record(&ELEMENTS_RECORD),
                "All elements pass a condition, or there are none.",
            ),
            FieldShape::optional(
                "any_of",
                Shape::Record(&ELEMENTS_RECORD),
                "At least one element passes a condition.",
            ),
            FieldShape::optional(
                "none",
                Shape::Record(&ELEMENTS_RECORD),
                "No element passes a condition, or there are none.",
            ),
            FieldShape::optional(
                SHELL_KEY,
                Shape::Record(&SHELL_RECORD),
                "A condition on the commands that a shell text runs, such as `{ path: $.input.command, any: [ { program: git, \
                 subcommand: push } ] }`.",
            ),
            $expression,
            $path,
            EQ,
            NE,
            GT,
            GTE,
            LT,
            LTE,
            IN,
            NOT_IN,
            CONTAINS,
            CONTAINS_ANY,
            STARTS_WITH,
            ENDS_WITH,
            MATCHES,
            EXISTS,
            TYPE,
            LENGTH,
            INSIDE,
            BASE,
            HOST,
            DOMAIN,
            MENTIONED_IN,
            $name,
            DECIMAL,
            DETECTS,
            WITHIN,
            OLDER_THAN,
            DURING,
            IGNORE_CASE,
            CONFUSABLES,
            EACH,
            ABSENT,
            $($more,)*
        ]
    };
}

mod elements;

pub(super) use elements::{COMMAND_RECORD, MIN, PATTERNS, QUANTIFIERS, UNKNOWN};
pub use elements::{ELEMENTS_RECORD, SHELL_RECORD};

/// The key of an expression, as a condition or in place of a path.
pub const EXPR_KEY: &str = "expr";

/// The key of a condition on shell commands.
pub const SHELL_KEY: &str = "shell";

/// A condition: a mapping, or an expression as a string.
pub static CONDITION_SHAPE: Shape =
    Shape::Either(&[Shape::Record(&CONDITION_RECORD), Shape::String("a Rhai expression")]);

/// The keys of a condition: a test of a path, or exactly one of `all`, `any`, `not`, `expr`, `every`, `any_of`, `none`, `shell`.
pub static CONDITION_RECORD: RecordShape = RecordShape {
    name: "condition",
    doc: "A test of the value at a `path` of the call document, or one of `all`, `any`, `not`, `expr`, `every`, `any_of`, `none`, `shell`.",
    fields: condition_fields!(CONDITION_SHAPE, PATH, EXPRESSION, AS),
};

const EXPRESSION: FieldShape = FieldShape::optional(
    EXPR_KEY,
    Shape::String("a Rhai expression"),
    "A Rhai expression over `tool`, `server`, `id`, `input`, `output`, `error`, `result`, `context`, `session`, `annotations`, `task` and \
     `now`, and the names of the bundle (`let`, `data`, `functions`), \
         that returns `true`. Comparing values of different types or reading a missing value is an error. On an error the condition \
         is undecided and fails closed: restricting policies apply, permitting ones do not. With operators beside it, its value is \
         tested as that of a `path`.",
);

/// The keys that are operators.
pub(super) const OPERATOR_FIELDS: [FieldShape; 24] = [
    EQ,
    NE,
    GT,
    GTE,
    LT,
    LTE,
    IN,
    NOT_IN,
    CONTAINS,
    CONTAINS_ANY,
    STARTS_WITH,
    ENDS_WITH,
    MATCHES,
    EXISTS,
    TYPE,
    LENGTH,
    INSIDE,
    HOST,
    DOMAIN,
    MENTIONED_IN,
    DETECTS,
    WITHIN,
    OLDER_THAN,
    DURING,
];

/// The keys of a test that change how its operators work.
pub const OPTION_KEYS: [&str; 7] =
    ["each", "absent", "base", AS.name, DECIMAL.name, IGNORE_CASE.name, CONFUSABLES.name];

const OPERAND: Shape = Shape::Any;
const STRINGS: Shape = Shape::Either(&[
    Shape::String("a string"),
    Shape::NonEmptyList(&Shape::String("a string")),
    Shape::Record(&PATH_OPERAND),
]);

pub(super) const CONTAINS_ANY: FieldShape = FieldShape::optional(
    "contains_any",
    SET,
    "The value is a string that contains one of these, or an array with an item that equals one of these: a list, `{ path: … }` or `{ expr: … }`.",
);
pub(super) const PATH: FieldShape = FieldShape::optional(
    "path",
    Shape::String("a JSONPath such as `$.input.amount`"),
    "The path of the value to test: JSONPath (RFC 9535) over `$.tool`, `$.server`, `$.id`, `$.input`, `$.output`, `$.error`, \
     `$.result`, `$.context`, `$.session`, `$.annotations`, `$.task` and `$.now`.",
);
const EQ: FieldShape =
    FieldShape::optional("eq", OPERAND, "The value equals this: a literal, `{ path: … }` or `{ expr: … }`.");
const NE: FieldShape = FieldShape::optional("ne", OPERAND, "The value is present and does not equal this.");
const GT: FieldShape =
    FieldShape::optional("gt", OPERAND, "The value is greater than this number, or sorts after this string.");
const GTE: FieldShape = FieldShape::optional("gte", OPERAND, "The value equals this, or is greater.");
const LT: FieldShape =
    FieldShape::optional("lt", OPERAND, "The value is less than this number, or sorts before this string.");
const LTE: FieldShape = FieldShape::optional("lte", OPERAND, "The value equals this, or is less.");
const SET: Shape = Shape::Either(&[Shape::NonEmptyList(&Shape::Any), Shape::Record(&PATH_OPERAND)]);
const IN: FieldShape =
    FieldShape::optional("in", SET, "The value equals one of these: a list, `{ path: … }` or `{ expr: … }`.");
const NOT_IN: FieldShape =
    FieldShape::optional("not_in", SET, "The value is present and equals none of these.");
const CONTAINS: FieldShape = FieldShape::optional(
    "contains",
    OPERAND,
    "The value is a string that contains this, or an array with an item that equals this.",
);
const STARTS_WITH: FieldShape = FieldShape::optional(
    "starts_with",
    STRINGS,
    "The value is a string that starts with this, or with one of these.",
);
const ENDS_WITH: FieldShape = FieldShape::optional(
    "ends_with",
    STRINGS,
    "The value is a string that ends with this, or with one of these.",
);
const MATCHES: FieldShape = FieldShape::optional(
    "matches",
    Shape::OneOrMany(&Shape::String("a regular expression")),
    "The value is a string in which this regular expression, or one of these, matches anywhere; `^` and `$` anchor it.",
);
pub(super) const EXISTS: FieldShape = FieldShape::optional(
    "exists",
    Shape::Bool,
    "Whether the value must be present (`true`) or absent (`false`); `null` is present.",
);
const TYPE_WORDS: Shape = Shape::Word(&[
    ("null", "null"),
    ("boolean", "`true` or `false`"),
    ("number", "any number"),
    ("integer", "a number without a fraction"),
    ("string", "a string"),
    ("array", "an array"),
    ("object", "an object"),
]);
const TYPE: FieldShape =
    FieldShape::optional("type", Shape::OneOrMany(&TYPE_WORDS), "The value has this type, or one of these.");
const LENGTHS: Shape = Shape::Either(&[COUNT_SHAPE, Shape::Record(&LENGTH_RECORD)]);
const LENGTH: FieldShape = FieldShape::optional(
    "length",
    LENGTHS,
    "The number of characters (of a string), items (of an array) or members (of an object): a number, or `{ of: items, gt: 3, lte: 10 }`.",
);
const INSIDE: FieldShape = FieldShape::optional(
    "inside",
    STRINGS,
    "The value is a file path inside this directory, or one of these, after `.`, `..` and `//` are resolved (symlinks are not). The test \
     is undecided for a path that programs may interpret differently.",
);
const BASE: FieldShape = FieldShape::optional(
    "base",
    Shape::String("an absolute directory"),
    "For `inside`: the directory that relative paths start from.",
);
const HOST: FieldShape = FieldShape::optional(
    "host",
    STRINGS,
    "The value is a URL whose host is this or one of these; `*.example.com` matches subdomains.",
);
const DOMAIN: FieldShape = FieldShape::optional(
    "domain",
    STRINGS,
    "The value is a list of mail addresses in which the domain of every address is this or one of these; `*.example.com` matches \
     subdomains.",
);
pub(super) const EACH: FieldShape = FieldShape::optional(
    "each",
    Shape::Word(&[
        ("any", "at least one value passes the tests"),
        ("every", "there is a value, and all values pass the tests"),
        ("none", "no value passes the tests"),
    ]),
    "For a path that may return several values: how many of them must pass the tests.",
);
const ABSENT: FieldShape = FieldShape::optional(
    "absent",
    Shape::Word(&[("no_match", "the test is false"), ("match", "the test is true")]),
    "Result of the test if the value is absent. Default: `defaults.absent`.",
);
