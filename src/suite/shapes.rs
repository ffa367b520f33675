//! What test files may hold, as tables: the check, the JSON Schema and the reference come from them.

use std::sync::LazyLock;

use crate::authoring::{Field, Record, Shape};
use crate::matcher::{self, CONDITION};

const DURATION: Shape = Shape::Text("a span of time such as `30s`, `5m` or `1h30m`");
const NAME: Shape = Shape::Text("a name");
const ID: Shape = Shape::Text("the id of a policy");

const OUTCOMES: Shape = Shape::Word(&[
    ("executed", "the tool ran and answered"),
    ("cached", "a cache answered"),
    ("answered", "a policy answered in the tool's place"),
    ("invalid", "the arguments do not fit"),
    ("denied", "the call was refused"),
    ("suspended", "the call waits for a person"),
    ("halted", "the run was stopped"),
    ("aborted", "the call was given up from outside"),
    ("failed", "the tool failed, or its result had to be withheld"),
    ("recovered", "the tool failed and a policy turned the error into a message"),
    ("indeterminate", "it is unknown whether the tool ran to its end"),
]);

/// How a text is tested.
pub(super) static TEXT_TEST: Record = Record {
    name: "text-test",
    doc: "What is expected of a text. Everything that is said must hold.",
    fields: &[
        Field::optional("contains", Shape::Text("a text"), "The text holds this."),
        Field::optional(
            "matches",
            Shape::Text("a regular expression"),
            "The regular expression is found somewhere in the text.",
        ),
    ],
};

const TEXT: Shape = Shape::Either(&[Shape::Text("the whole text"), Shape::Record(&TEXT_TEST)]);

pub(super) static EXPECT: Record = Record {
    name: "expectation",
    doc: "What a call is to come to. What is not named is not checked.",
    fields: &[
        Field::optional("outcome", OUTCOMES, "How the call ends."),
        Field::optional(
            "policy",
            ID,
            "The policy that gives the reason; of several that ask a person, the first.",
        ),
        Field::optional(
            "code",
            Shape::Text("a code"),
            "The reason's code, such as `denied`, `undecided` or the policy's own.",
        ),
        Field::optional("message", TEXT, "The reason's message."),
        Field::optional("question", TEXT, "What a person is asked, of a call that waits for one."),
        Field::optional(
            "input",
            Shape::Any,
            "The final arguments as they are shown, transformed and redacted: the same JSON value, key order and spelling of \
             numbers aside (`5` is `5.0`).",
        ),
        Field::optional("output", Shape::Any, "The result as the model sees it: the same JSON value."),
        Field::optional("error", TEXT, "The error as the model sees it."),
        Field::optional(
            "ignored",
            TEXT,
            "Why what a person said does not count, of a step in which one answers.",
        ),
        Field::optional(
            "where",
            Shape::OneOrMany(&Shape::Record(&CONDITION)),
            "Conditions as in `match`, over what the call came to: `$.input`, `$.output`, `$.error`, and `$.session` as the call \
             or its round left it. They must all hold; one that can't be decided does not.",
        ),
        Field::optional(
            "policies",
            Shape::OneOrMany(&ID),
            "Policies that took part: they matched, whatever they then did, shadows too. Others may have.",
        ),
        Field::optional(
            "not_policies",
            Shape::OneOrMany(&ID),
            "Policies that took no part: they did not match.",
        ),
        Field::optional(
            "runs",
            Shape::Integer(0, 1_000_000),
            "How often the tool was run: 0 of a call that never reached it, more than 1 where a policy tries again.",
        ),
    ],
};

/// `denied`, or a mapping.
const EXPECTATION: Shape = Shape::Either(&[OUTCOMES, Shape::Record(&EXPECT)]);

static FAILURE: Record = Record {
    name: "tool-failure",
    doc: "An error of a tool.",
    fields: &[
        Field::required("message", Shape::Text("a text"), "What the tool says."),
        Field::optional("kind", Shape::Text("a word"), "A word that policies can match, such as `timeout`."),
    ],
};

const FAILURE_SHAPE: Shape = Shape::Either(&[Shape::Text("a message"), Shape::Record(&FAILURE)]);

const RETURNS: Field = Field::optional("returns", Shape::Any, "The tool's result.");
const FAILS: Field = Field::optional("fails", FAILURE_SHAPE, "The tool's error.");
const TAKES: Field = Field::optional("takes", DURATION, "How long the tool takes, by the clock of the case.");

static ANSWER: Record = Record {
    name: "answer",
    doc: "What a tool does when it is run once: `returns` or `fails`.",
    fields: &[RETURNS, FAILS, TAKES],
};

const ANSWER_LIST: Shape = Shape::List(&Shape::Record(&ANSWER));
const ANSWERS: Field = Field::optional(
    "answers",
    ANSWER_LIST,
    "What the tool does each time that it is run for one call, as when a policy tries again. The last one stays.",
);

static STUB: Record = Record {
    name: "stub",
    doc: "What a tool answers. Of the stubs that fit a call the first counts, those of the case before those of the file.",
    fields: &[
        Field::required(
            "match",
            matcher::SHAPE,
            "Which calls it answers, as in a policy. Conditions go by the arguments as the tool gets them; `$.session` is empty.",
        ),
        RETURNS,
        FAILS,
        ANSWERS,
        TAKES,
    ],
};

const TOOL: Field = Field::required("tool", NAME, "The tool's own name.");
const CALL_KEYS: [Field; 8] = [
    Field::optional("input", Shape::Any, "The arguments. Without it: `{}`."),
    Field::optional(
        "context",
        Shape::Any,
        "What the host vouches for; laid over the context of the case and of the file.",
    ),
    Field::optional("server", NAME, "The MCP server that has the tool."),
    Field::optional("id", NAME, "The call's name. Without it calls are named by number."),
    RETURNS,
    FAILS,
    ANSWERS,
    TAKES,
];
const EXPECT_KEY: Field = Field::optional(
    "expect",
    EXPECTATION,
    "What the call is to come to: an outcome, or a mapping that says more.",
);

const WAITING: Shape = Shape::Text("the call that waits: its tool, or its id");

fn record(name: &'static str, doc: &'static str, fields: impl IntoIterator<Item = Field>) -> Record {
    Record { name, doc, fields: Vec::leak(fields.into_iter().collect()) }
}

pub(super) static CALL: LazyLock<Record> = LazyLock::new(|| {
    record(
        "call",
        "A call, and what its tool answers. Without an answer of its own and without a stub the tool is not \
        played: the result is null.",
        [TOOL].into_iter().chain(CALL_KEYS),
    )
});

pub(super) static ROUND_CALL: LazyLock<Record> = LazyLock::new(|| {
    record(
        "call-of-a-round",
        "A call with what it is to come to.",
        [TOOL].into_iter().chain(CALL_KEYS).chain([EXPECT_KEY]),
    )
});

pub(super) static STEP: LazyLock<Record> = LazyLock::new(|| {
    let tool = Field { required: false, ..TOOL };
    let more = [
        EXPECT_KEY,
        Field::optional("wait", DURATION, "Nothing is called for so long, by the clock of the case."),
        Field::optional(
            "round",
            Shape::List(leak(Shape::Record(&ROUND_CALL))),
            "Calls that are decided together.",
        ),
        Field::optional("approve", WAITING, "A person says yes, and the session is taken up again."),
        Field::optional("deny", WAITING, "A person says no."),
        Field::optional(
            "edit",
            WAITING,
            "A person says yes to other arguments: the members of `input` are laid over those that they were shown.",
        ),
        Field::optional("answer", WAITING, "A person gives the result, `output`, in the tool's place."),
        Field::optional("cancel", WAITING, "A person ends the run."),
        Field::optional("resume", WAITING, "The session is taken up again, and nobody has answered since."),
        Field::optional(
            "by",
            Shape::Text("a principal"),
            "Who answers, as the host has verified. Without it: nobody in particular, which does not count where `approvers` or \
             a `quorum` are asked for.",
        ),
        Field::optional("roles", Shape::Items(&Shape::Text("a role")), "The roles that they have."),
        Field::optional("reason", Shape::Text("a text"), "Why they say so; the model is told."),
        Field::optional("output", Shape::Any, "The result that a person gives in the tool's place."),
    ];
    record(
        "step",
        "One step of a session: a call, a `wait`, a `round`, or what a person says to a question (`approve`, `deny`, `edit`, \
         `answer`, `cancel`), after which the session is taken up again; `expect` is then what the call that waited comes to.",
        [tool].into_iter().chain(CALL_KEYS).chain(more),
    )
});

pub(super) static ROW: LazyLock<Record> = LazyLock::new(|| {
    let name = Field::optional("name", Shape::Text("a text"), "What the row is for.");
    let tool = Field { required: false, ..TOOL };
    record(
        "row",
        "One row of a table: what differs from the `call` of the case. The members of `input` and of `context` are laid over \
         those of the call, every other key stands in its place.",
        [name, tool].into_iter().chain(CALL_KEYS).chain([EXPECT_KEY]),
    )
});

static SESSION: Record = Record {
    name: "session",
    doc: "What the session has seen before the case: the members of `$.session`.",
    fields: &[
        Field::optional("labels", Shape::Items(&Shape::Text("a label")), "The labels that it has."),
        Field::optional("facts", Shape::Any, "The facts that it keeps: a mapping of names to values."),
        Field::optional(
            "calls",
            Shape::Any,
            "How often each tool has run: a mapping of names to whole numbers.",
        ),
        Field::optional("requestId", Shape::Any, "As the host says."),
        Field::optional("streamId", Shape::Any, "As the host says."),
        Field::optional("conversationId", Shape::Any, "As the host says."),
        Field::optional("phase", Shape::Any, "As the host says."),
        Field::optional("iteration", Shape::Any, "As the host says."),
        Field::optional("chunkIndex", Shape::Any, "As the host says."),
    ],
};

static TOOL_RECORD: Record = Record {
    name: "tool",
    doc: "A known tool, as for `--tools`.",
    fields: &[
        Field::required("name", NAME, "The tool's own name."),
        Field::optional("description", Shape::Text("a text"), "What it does."),
        Field::optional("input_schema", Shape::Any, "The JSON Schema of its arguments."),
        Field::optional("annotations", Shape::Any, "What its server says of it (`readOnlyHint`, …)."),
        Field::optional("server", NAME, "The MCP server that has it. Without it: any."),
        Field::optional("once", Shape::Bool, "Whether a call of it must run at most once."),
        Field::optional("idempotent", Shape::Bool, "Whether a call of it may run twice without harm."),
    ],
};

const TOOLS: Shape = Shape::Either(&[
    Shape::Text("a JSON file beside the test file, as for `--tools`"),
    Shape::List(&Shape::Record(&TOOL_RECORD)),
]);

const CONTEXT: Field = Field::optional(
    "context",
    Shape::Any,
    "What the host vouches for in every call, such as `{ principal: ana }`. A call's own members stand before these.",
);
const STUB_LIST: Shape = Shape::List(&Shape::Record(&STUB));
const STUBS: Field = Field::optional("stubs", STUB_LIST, "What tools answer. The first that fits counts.");
const CLOCK: Field = Field::optional(
    "clock",
    Shape::Text("a time such as `2026-01-01T12:00:00Z`"),
    "Where the clock of a case starts. Without it: 2026-01-01T12:00:00Z. Only `wait`, `takes` and policies that wait move it.",
);

pub(super) static CASE: LazyLock<Record> = LazyLock::new(|| {
    record(
        "case",
        "One session of its own: `steps`, then the `call` that is tried.",
        [
            Field::required("name", Shape::Text("a text"), "What is expected, in words. Unique in the file."),
            Field::optional(
                "steps",
                Shape::List(leak(Shape::Record(&STEP))),
                "Calls of one session, in order.",
            ),
            Field::optional(
                "call",
                Shape::Record(&CALL),
                "The call that is tried, after the steps if there are any.",
            ),
            Field::optional(
                "expect",
                EXPECTATION,
                "What `call` is to come to: an outcome, or a mapping that says more.",
            ),
            Field::optional(
                "rows",
                Shape::List(leak(Shape::Record(&ROW))),
                "A table: the case is run once for each row, with a session of its own.",
            ),
            CONTEXT,
            STUBS,
            Field::optional("session", Shape::Record(&SESSION), "What the session has seen before."),
            CLOCK,
        ],
    )
});

static TESTS: LazyLock<Record> = LazyLock::new(|| {
    record(
        "tests",
        "A test file: `*.test.yaml` beside the rules that it tests.",
        [
            Field::optional("callgate", Shape::Number, "The version of the format: 1."),
            Field::optional("tools", TOOLS, "The known tools."),
            CONTEXT,
            CLOCK,
            STUBS,
            Field::required("cases", Shape::List(leak(Shape::Record(&CASE))), "The cases."),
        ],
    )
});

fn leak(shape: Shape) -> &'static Shape {
    Box::leak(Box::new(shape))
}

/// The shape of a test file.
pub fn tests_record() -> &'static Record {
    &TESTS
}
