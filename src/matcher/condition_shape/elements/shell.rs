//! The keys of `shell` in rules files.

use super::{ELEMENT_SHAPE, ELEMENTS_RECORD};
use crate::matcher::condition_shape::{
    ABSENT, BASE, CONFUSABLES, CONTAINS, CONTAINS_ANY, DECIMAL, DETECTS, DOMAIN, DURING, EACH, ENDS_WITH, EQ,
    EXISTS, EXPR_KEY, EXPRESSION, GT, GTE, HOST, IGNORE_CASE, IN, INSIDE, LENGTH, LT, LTE, MATCHES,
    MENTIONED_IN, NE, NOT_IN, OLDER_THAN, PATH, SHELL_KEY, STARTS_WITH, TYPE, WITHIN,
};
use crate::matcher::mention::AS;
use crate::matcher::value_source::PATH_OPERAND;
use crate::rules_schema::{FieldShape, RecordShape, Shape};

/// The keys that say how many commands must pass, exactly one of which a `shell` condition has.
pub(in crate::matcher) const QUANTIFIERS: [&str; 4] = ["any", "all", "every", "none"];
/// The kinds of code that a condition can trust.
const TRUSTED: Shape = Shape::Word(&[
    ("inline", "Code of other languages in the text: `python -c`."),
    ("scripts", "Scripts that a project defines: `npm test`, `make`."),
    ("files", "Shell code in files: `sh FILE`, `source FILE`."),
    (
        "dynamic",
        "Commands that are known only when the text runs: `$TOOL`, `eval $X`, a text that is not understood.",
    ),
]);

/// A condition on the commands of a shell text.
pub static SHELL_RECORD: RecordShape = RecordShape {
    name: "shell",
    doc: "A condition on the commands that a shell text runs: also those of substitutions, functions and branches, and those that wrappers \
          such as `sudo`, `xargs` or `sh -c` run. It is undecided if a part of the text that matters is known only when it runs.",
    fields: &[
        FieldShape::optional(
            "path",
            Shape::String("a JSONPath such as `$.input.command`"),
            "The text, or an array of a program and its arguments.",
        ),
        FieldShape::optional(
            EXPR_KEY,
            Shape::String("an expression such as `input.command`"),
            "An expression in place of `path`.",
        ),
        FieldShape::optional(
            "any",
            Shape::NonEmptyList(&COMMAND_SHAPE),
            "At least one command passes one of these tests.",
        ),
        FieldShape::optional(
            "all",
            Shape::NonEmptyList(&COMMAND_SHAPE),
            "Each of these tests is passed by a command.",
        ),
        FieldShape::optional(
            "every",
            Shape::NonEmptyList(&COMMAND_SHAPE),
            "There is a command, and every command passes one of these tests: a list of what is permitted.",
        ),
        FieldShape::optional(
            "none",
            Shape::NonEmptyList(&COMMAND_SHAPE),
            "No command passes any of these tests.",
        ),
        FieldShape::optional(
            "directory",
            Shape::Either(&[Shape::String("an absolute directory"), Shape::Record(&PATH_OPERAND)]),
            "The directory in which the text runs, from which relative paths start. Default: `$.context.cwd`.",
        ),
        FieldShape::optional(
            "trusted_code",
            Shape::NonEmptyList(&TRUSTED),
            "Code that is not read and leaves the condition decided: `inline`, code of other languages (`python -c`); `scripts`, scripts \
             that a project defines (`npm test`, `make`); `files`, shell code in files (`sh FILE`, `source FILE`); `dynamic`, commands that are \
             known only when the text runs (`$TOOL`, `eval $X`), and a text that is not understood, which another policy should stop.",
        ),
        FieldShape::optional(
            "wrappers",
            Shape::NonEmptyList(&Shape::Record(&WRAPPER_RECORD)),
            "Further programs that run the command in their arguments, as `sudo` does.",
        ),
    ],
};

static COMMAND_SHAPE: Shape = Shape::Record(&COMMAND_RECORD);
const NAMES: Shape = Shape::OneOrMany(&Shape::String(
    "a name, a glob such as `mkfs.*`, or a regular expression such as `/^python/`",
));

/// A test of one command.
pub(in crate::matcher) static COMMAND_RECORD: RecordShape = RecordShape {
    name: "shell_command",
    doc: "A test of one command. All keys must hold.",
    fields: &[
        FieldShape::optional(
            "program",
            NAMES,
            "The program's name without its directory, one of these. A redirection without a program has the name `(none)`.",
        ),
        FieldShape::optional(
            "subcommand",
            Shape::OneOrMany(&Shape::String("words such as `push` or `remote add`")),
            "The first words that are no flags, one of these: `push`, `remote add`. Each word is a name or a glob.",
        ),
        FieldShape::optional(
            "flags",
            Shape::OneOrMany(&Shape::String(
                "a flag such as `-f`, or one with its value such as `-X=DELETE`",
            )),
            "Flags that the command has, all of these. Merged flags (`-rf`) and other names (`--force`) are recognised for known programs. \
             Name and value may be a glob or a regular expression: `--force*`, `-X=/PUT|DELETE/`.",
        ),
        FieldShape::optional(
            "only_flags",
            Shape::Either(&[
                Shape::List(&Shape::String("a flag such as `-l`")),
                Shape::String("a flag such as `-l`"),
            ]),
            "The command has no other flags than these.",
        ),
        FieldShape::optional(
            "arguments",
            Shape::Record(&WORDS_RECORD),
            "A test of the words behind the program.",
        ),
        FieldShape::optional(
            "operands",
            Shape::Record(&WORDS_RECORD),
            "A test of the arguments that are no flags. Of programs with subcommands, of those behind the first one. For `inside`, relative \
             paths start in the command's directory, which follows `cd`.",
        ),
        FieldShape::optional(
            "reads",
            Shape::Record(&WORDS_RECORD),
            "A test of the files that redirections and the arguments of known programs read, as absolute paths if the directory is known.",
        ),
        FieldShape::optional(
            "writes",
            Shape::Record(&WORDS_RECORD),
            "A test of the files that redirections and the arguments of known programs write, create or remove.",
        ),
        FieldShape::optional(
            "input_from",
            NAMES,
            "A program whose output it gets, by a pipe, a substitution or `xargs`: `curl` in `curl URL | sh`.",
        ),
        FieldShape::optional("run_by", NAMES, "A wrapper that runs it, such as `sudo`."),
        FieldShape::optional(
            "remote",
            Shape::Bool,
            "Whether it runs on another machine or in a container: by `ssh`, `docker exec`, `kubectl exec`.",
        ),
        FieldShape::optional("all", Shape::NonEmptyList(&COMMAND_SHAPE), "It passes all of these tests."),
        FieldShape::optional("any", Shape::NonEmptyList(&COMMAND_SHAPE), "It passes one of these tests."),
        FieldShape::optional("not", Shape::Record(&COMMAND_RECORD), "It does not pass this test."),
    ],
};

/// How a test applies to words that are known only when the command runs.
pub(in crate::matcher) const UNKNOWN: &str = "unknown";
/// How a test applies to patterns of file names.
pub(in crate::matcher) const PATTERNS: &str = "patterns";

/// A condition on words.
pub(in crate::matcher) static WORDS_RECORD: RecordShape = RecordShape {
    name: "shell_words",
    doc: "A condition on words of a command, without `path`: `{ matches: … }`, `{ not: { inside: … } }`. By default one of them passes; with \
          `each: every` all of them, with `each: none` none.",
    fields: condition_fields!(
        ELEMENT_SHAPE,
        PATH,
        EXPRESSION,
        AS,
        FieldShape::optional(
            PATTERNS,
            Shape::Word(&[("text", "As they are written.")]),
            "`text` tests patterns of file names (`*.rs`) as they are written. By default only `inside` is decided for them.",
        ),
        FieldShape::optional(
            UNKNOWN,
            Shape::Word(&[("skip", "They are not tested.")]),
            "`skip` leaves out words that are known only when the command runs. By default they leave the condition undecided.",
        )
    ),
};

/// A wrapper of a user.
pub(in crate::matcher) static WRAPPER_RECORD: RecordShape = RecordShape {
    name: "shell_wrapper",
    doc: "A program that runs the command in its arguments.",
    fields: &[
        FieldShape::required(
            "command",
            Shape::String("a program, with its subcommands, such as `mycloud exec`"),
            "The program and its subcommands.",
        ),
        FieldShape::optional(
            "operands",
            Shape::Integer(0, 16),
            "The number of its own operands before the command. Default: 0.",
        ),
        FieldShape::optional(
            "flags_with_value",
            Shape::NonEmptyList(&Shape::String("a flag such as `-n`")),
            "Its flags whose value is the next word.",
        ),
        FieldShape::optional(
            "text",
            Shape::Bool,
            "Whether it joins its arguments to shell text, as `ssh` does.",
        ),
        FieldShape::optional(
            "remote",
            Shape::Bool,
            "Whether the command runs on another machine or in a container.",
        ),
    ],
};
