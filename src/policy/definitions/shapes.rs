//! The keys of a rules file that define names.

use crate::matcher::CONDITION_SHAPE;
use crate::rules_schema::{FieldShape, RecordShape, Shape};

const PATTERN: Shape = Shape::String("a tool pattern, or `@name` for another group");

const PATTERNS: Shape = Shape::Either(&[PATTERN, Shape::List(&PATTERN)]);

const NAMED_VALUE: Shape = Shape::Either(&[
    Shape::String("an expression, such as `input.amount * 100`"),
    Shape::NonEmptyList(&CONDITION_SHAPE),
    CONDITION_SHAPE,
]);

const FUNCTION_TEXT: Shape =
    Shape::Either(&[Shape::String("Rhai `fn` definitions"), Shape::Record(&FUNCTIONS_FILE)]);

static FUNCTIONS_FILE: RecordShape = RecordShape {
    name: "functions_file",
    doc: "A file with the functions of a bundle.",
    fields: &[FieldShape::required(
        "file",
        Shape::String("the name of a `.rhai` file"),
        "A path relative to the directory of the rules file.",
    )],
};

/// `groups`
pub(in crate::policy) const GROUPS: FieldShape = FieldShape::optional(
    "groups",
    Shape::Map(&PATTERNS),
    "Groups of tools by name: a pattern or a list of patterns, as in `sends: [send_email, \"post_*\"]`. `\"@sends\"` stands for them wherever a tool pattern does. A group may \
     be empty; policies for it concern no tool.",
);
/// `data`
pub(in crate::policy) const DATA: FieldShape = FieldShape::optional(
    "data",
    Shape::Map(&Shape::Any),
    "Constants by name: YAML values, or `{ file: … }` for a JSON, YAML or CSV file beside the rules. Expressions read them as `data.NAME`.",
);
/// `let`
pub(in crate::policy) const LETS: FieldShape = FieldShape::optional(
    "let",
    Shape::Map(&NAMED_VALUE),
    "Named values: a string is an expression, a mapping a condition, a list a condition whose items must all hold. Expressions read them \
     by name.",
);
/// `results`
pub(in crate::policy) const RESULTS: FieldShape = FieldShape::optional(
    "results",
    Shape::Map(&Shape::Word(&[
        ("auto", "JSON if the text begins with `{` or `[` and is valid; otherwise a string"),
        ("json", "JSON; conditions on a text that is not JSON are undecided"),
        ("yaml", "YAML; conditions on a text that is not YAML are undecided"),
        ("text", "a string, which is never parsed"),
    ])),
    "How `$.result` reads the texts that tools return, by tool pattern: `\"get_*\": json`. The name of a tool counts before patterns. \
     Default: `auto`.",
);
/// `tools`
pub(in crate::policy) const TOOLS: FieldShape = FieldShape::optional(
    "tools",
    Shape::String("a JSON file such as `tools.json`"),
    "The known tools: a JSON file beside the rules with an array of `{ name, input_schema }`, or the result of an MCP `tools/list`. Commands \
     use them where `--tools` names no others.",
);
/// `functions`
pub(in crate::policy) const FUNCTIONS: FieldShape = FieldShape::optional(
    "functions",
    FUNCTION_TEXT,
    "Functions for expressions, as one text of Rhai `fn` definitions, or `{ file: NAME.rhai }`. They see their parameters, `data` and each \
     other.",
);
