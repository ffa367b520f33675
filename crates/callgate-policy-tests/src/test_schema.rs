//! The schema of test files, as tables: the source of the check, the JSON Schema and the reference.

use std::sync::LazyLock;

use callgate::matcher::{self, CONDITION_RECORD};
use callgate::rules_schema::{FieldShape, RecordShape, Shape};

const DURATION: Shape = Shape::String("a duration such as `30s`, `5m` or `1h30m`");
const NAME: Shape = Shape::String("a name");
const ID: Shape = Shape::String("the id of a policy");

const OUTCOMES: Shape = Shape::Word(&[
    ("executed", "the tool ran and returned a result"),
    ("cached", "a cache answered"),
    ("answered", "a policy answered in place of the tool"),
    ("invalid", "the arguments are invalid"),
    ("denied", "the call was denied"),
    ("suspended", "the call is pending: it requires approval"),
    ("halted", "the run was stopped"),
    ("aborted", "the call was cancelled from outside"),
    ("failed", "the tool failed, or its result was withheld"),
    ("recovered", "the tool failed and a policy turned the error into a message"),
    ("indeterminate", "it is unknown whether the tool completed"),
]);

/// The tests of a string.
pub(super) static TEXT_TEST: RecordShape = RecordShape {
    name: "text-test",
    doc: "The expectation on a string. All tests must hold.",
    fields: &[
        FieldShape::optional("contains", Shape::String("a string"), "The string contains this."),
        FieldShape::optional(
            "matches",
            Shape::String("a regular expression"),
            "The string contains a match of this regular expression.",
        ),
    ],
};

const TEXT: Shape = Shape::Either(&[Shape::String("the whole string"), Shape::Record(&TEXT_TEST)]);

pub(super) static EXPECT: RecordShape = RecordShape {
    name: "expectation",
    doc: "The expected result of a call. Members that are left out are not checked.",
    fields: &[
        FieldShape::optional("outcome", OUTCOMES, "The outcome of the call."),
        FieldShape::optional(
            "policy",
            ID,
            "The policy that gives the reason; the first one, if several require approval.",
        ),
        FieldShape::optional(
            "code",
            Shape::String("a code"),
            "The reason's code, such as `denied`, `undecided` or the policy's own.",
        ),
        FieldShape::optional("message", TEXT, "The reason's message."),
        FieldShape::optional("question", TEXT, "The question to the approver, for a pending call."),
        FieldShape::optional(
            "input",
            Shape::Any,
            "The final arguments, transformed and redacted: the same JSON value, apart from the order of keys and the spelling of \
             numbers (`5` is `5.0`).",
        ),
        FieldShape::optional("output", Shape::Any, "The result as the model sees it: the same JSON value."),
        FieldShape::optional("error", TEXT, "The error as the model sees it."),
        FieldShape::optional(
            "ignored",
            TEXT,
            "Why a person's answer does not count, for a step with an answer to an approval request.",
        ),
        FieldShape::optional(
            "where",
            Shape::OneOrMany(&Shape::Record(&CONDITION_RECORD)),
            "Conditions as in `match`, on the result of the call: `$.input`, `$.output`, `$.error`, and `$.session` after the call \
             or its round. They must all hold; an undecided condition does not.",
        ),
        FieldShape::optional(
            "policies",
            Shape::OneOrMany(&ID),
            "Policies that took part: they matched, whatever their effect, including policies in shadow mode. Other policies may take part, too.",
        ),
        FieldShape::optional(
            "not_policies",
            Shape::OneOrMany(&ID),
            "Policies that did not take part: they did not match.",
        ),
        FieldShape::optional(
            "runs",
            Shape::Integer(0, 1_000_000),
            "How often the tool ran: 0 if the call never reached it, more than 1 if a policy retried.",
        ),
    ],
};

/// `denied`, or a mapping.
const EXPECTATION: Shape = Shape::Either(&[OUTCOMES, Shape::Record(&EXPECT)]);

static FAILURE: RecordShape = RecordShape {
    name: "tool-failure",
    doc: "An error of a tool.",
    fields: &[
        FieldShape::required("message", Shape::String("a string"), "The error message."),
        FieldShape::optional(
            "kind",
            Shape::String("a word"),
            "The kind of error, which policies can match, such as `timeout`.",
        ),
    ],
};

const FAILURE_SHAPE: Shape = Shape::Either(&[Shape::String("a message"), Shape::Record(&FAILURE)]);

const RETURNS: FieldShape = FieldShape::optional("returns", Shape::Any, "The tool's result.");
const FAILS: FieldShape = FieldShape::optional("fails", FAILURE_SHAPE, "The tool's error.");
const TAKES: FieldShape =
    FieldShape::optional("takes", DURATION, "How long the tool takes, on the clock of the case.");

static ANSWER: RecordShape = RecordShape {
    name: "answer",
    doc: "A tool's answer to one run: `returns` or `fails`.",
    fields: &[RETURNS, FAILS, TAKES],
};

const ANSWER_LIST: Shape = Shape::NonEmptyList(&Shape::Record(&ANSWER));
const ANSWERS: FieldShape = FieldShape::optional(
    "answers",
    ANSWER_LIST,
    "The tool's answers to successive runs for one call, for example when a policy retries. The last one repeats.",
);

static STUB: RecordShape = RecordShape {
    name: "stub",
    doc: "A tool's answers. The first stub that matches a call applies; the stubs of the case come before those of the file.",
    fields: &[
        FieldShape::required(
            "match",
            matcher::MATCH_SHAPE,
            "The calls that it answers, as in a policy. Conditions read the arguments that the tool receives; `$.session` is empty.",
        ),
        RETURNS,
        FAILS,
        ANSWERS,
        TAKES,
    ],
};

const TOOL: FieldShape = FieldShape::required(
    "tool",
    NAME,
    "The tool's own name. `method:` and a method for a request by an MCP method, as in `method:resources/read`.",
);
const CALL_KEYS: [FieldShape; 9] = [
    FieldShape::optional("input", Shape::Any, "The arguments. Default: `{}`."),
    FieldShape::optional(
        "context",
        Shape::Any,
        "The context that the host vouches for; merged over the context of the case and of the file.",
    ),
    TASK,
    FieldShape::optional("server", NAME, "The MCP server that has the tool."),
    FieldShape::optional("id", NAME, "The call's id. By default, calls are numbered: `call_1`, `call_2`, …"),
    RETURNS,
    FAILS,
    ANSWERS,
    TAKES,
];
const EXPECT_KEY: FieldShape = FieldShape::optional(
    "expect",
    EXPECTATION,
    "The expected result of the call: an outcome, or a mapping with more tests.",
);

const WAITING: Shape = Shape::String("the pending call: its tool, or its id");

fn record(
    name: &'static str,
    doc: &'static str,
    fields: impl IntoIterator<Item = FieldShape>,
) -> RecordShape {
    RecordShape { name, doc, fields: Vec::leak(fields.into_iter().collect()) }
}

pub(super) static CALL: LazyLock<RecordShape> = LazyLock::new(|| {
    record(
        "call",
        "A call, and its tool's answers. Without an answer of its own and without a stub, the tool is not \
        simulated: the result is null.",
        [TOOL].into_iter().chain(CALL_KEYS),
    )
});

pub(super) static ROUND_CALL: LazyLock<RecordShape> = LazyLock::new(|| {
    record(
        "call-of-a-round",
        "A call with its expectation.",
        [TOOL].into_iter().chain(CALL_KEYS).chain([EXPECT_KEY]),
    )
});

pub(super) static STEP: LazyLock<RecordShape> = LazyLock::new(|| {
    let tool = FieldShape { required: false, ..TOOL };
    let more = [
        EXPECT_KEY,
        FieldShape::optional(
            "wait",
            DURATION,
            "The clock of the case advances by this duration, without a call.",
        ),
        FieldShape::optional(
            "round",
            Shape::NonEmptyList(leak(Shape::Record(&ROUND_CALL))),
            "Calls that are evaluated together, as one round.",
        ),
        FieldShape::optional("approve", WAITING, "A person approves the call, and the session resumes."),
        FieldShape::optional("deny", WAITING, "A person denies the call."),
        FieldShape::optional(
            "edit",
            WAITING,
            "A person approves the call with other arguments: the members of `input` are merged over the ones in the request.",
        ),
        FieldShape::optional("answer", WAITING, "A person gives the result, `output`, in place of the tool."),
        FieldShape::optional("cancel", WAITING, "A person ends the run."),
        FieldShape::optional("resume", WAITING, "The session resumes without a new answer."),
        FieldShape::optional(
            "by",
            Shape::String("a principal"),
            "The approver, as verified by the host. Without it the answer is anonymous, which does not count if the policy requires \
             `approvers` or a `quorum`.",
        ),
        FieldShape::optional("roles", Shape::List(&Shape::String("a role")), "The approver's roles."),
        FieldShape::optional(
            "reason",
            Shape::String("a string"),
            "The approver's reason, which the model sees.",
        ),
        FieldShape::optional("output", Shape::Any, "The result that a person gives in place of the tool."),
    ];
    record(
        "step",
        "One step of a session: a call, a `wait`, a `round`, or a person's answer to an approval request (`approve`, `deny`, `edit`, \
         `answer`, `cancel`), after which the session resumes; `expect` then describes the result of the pending call.",
        [tool].into_iter().chain(CALL_KEYS).chain(more),
    )
});

pub(super) static ROW: LazyLock<RecordShape> = LazyLock::new(|| {
    let name = FieldShape::optional("name", Shape::String("a string"), "The name of the row.");
    let tool = FieldShape { required: false, ..TOOL };
    record(
        "row",
        "One row of a table: its differences from the `call` of the case. The members of `input` and of `context` are merged over \
         those of the call; every other key replaces the one of the call.",
        [name, tool].into_iter().chain(CALL_KEYS).chain([EXPECT_KEY]),
    )
});

static SESSION: RecordShape = RecordShape {
    name: "session",
    doc: "The state of the session before the case: the members of `$.session`.",
    fields: &[
        FieldShape::optional("labels", Shape::List(&Shape::String("a label")), "The labels of the session."),
        FieldShape::optional("facts", Shape::Any, "The facts of the session: a mapping of names to values."),
        FieldShape::optional(
            "calls",
            Shape::Any,
            "How often each tool has run: a mapping of names to integers.",
        ),
        FieldShape::optional("requestId", Shape::Any, "As set by the host."),
        FieldShape::optional("streamId", Shape::Any, "As set by the host."),
        FieldShape::optional("conversationId", Shape::Any, "As set by the host."),
        FieldShape::optional("phase", Shape::Any, "As set by the host."),
        FieldShape::optional("iteration", Shape::Any, "As set by the host."),
        FieldShape::optional("chunkIndex", Shape::Any, "As set by the host."),
    ],
};

static TOOL_RECORD: RecordShape = RecordShape {
    name: "tool",
    doc: "A known tool, as for `--tools`.",
    fields: &[
        FieldShape::required("name", NAME, "The tool's own name."),
        FieldShape::optional("description", Shape::String("a string"), "The tool's description."),
        FieldShape::optional("input_schema", Shape::Any, "The JSON Schema of its arguments."),
        FieldShape::optional("output_schema", Shape::Any, "The JSON Schema of its structured results."),
        FieldShape::optional(
            "annotations",
            Shape::Any,
            "The server's annotations of the tool (`readOnlyHint`, …).",
        ),
        FieldShape::optional("server", NAME, "The MCP server that has the tool. Default: any."),
        FieldShape::optional("once", Shape::Bool, "Whether a call of it must run at most once."),
        FieldShape::optional(
            "idempotent",
            Shape::Bool,
            "Whether a call of it is idempotent: it may run twice without harm.",
        ),
    ],
};

const TOOLS: Shape = Shape::Either(&[
    Shape::String("a JSON file beside the test file, as for `--tools`"),
    Shape::NonEmptyList(&Shape::Record(&TOOL_RECORD)),
]);

const CONTEXT: FieldShape = FieldShape::optional(
    "context",
    Shape::Any,
    "The context that the host vouches for in every call, such as `{ principal: ana }`. A call's own members take precedence.",
);
const TASK: FieldShape = FieldShape::optional(
    "task",
    Shape::Any,
    "What the user asked for, which policies read as `$.task`: a string, or a list with one item for each message of the user, a string or \
     `{ text, at }`. That of a call counts from this call on, in place of that of the case or the file.",
);
const STUB_LIST: Shape = Shape::NonEmptyList(&Shape::Record(&STUB));
const STUBS: FieldShape =
    FieldShape::optional("stubs", STUB_LIST, "The tools' answers. The first stub that matches applies.");
const CLOCK: FieldShape = FieldShape::optional(
    "clock",
    Shape::String("a time such as `2026-01-01T12:00:00Z`"),
    "The start of a case's clock. Default: 2026-01-01T12:00:00Z. Only `wait`, `takes` and policies that wait advance it.",
);

pub(super) static CASE: LazyLock<RecordShape> = LazyLock::new(|| {
    record(
        "case",
        "One session of its own: `steps`, then the `call` under test.",
        [
            FieldShape::required(
                "name",
                Shape::String("a string"),
                "A description of what is expected. Unique in the file.",
            ),
            FieldShape::optional(
                "steps",
                Shape::NonEmptyList(leak(Shape::Record(&STEP))),
                "Calls of one session, in order.",
            ),
            FieldShape::optional("call", Shape::Record(&CALL), "The call under test, made after the steps."),
            FieldShape::optional(
                "expect",
                EXPECTATION,
                "The expected result of `call`: an outcome, or a mapping with more tests.",
            ),
            FieldShape::optional(
                "rows",
                Shape::NonEmptyList(leak(Shape::Record(&ROW))),
                "A table: the case is run once for each row, with a session of its own.",
            ),
            CONTEXT,
            TASK,
            STUBS,
            FieldShape::optional(
                "session",
                Shape::Record(&SESSION),
                "The state of the session before the case.",
            ),
            CLOCK,
        ],
    )
});

static TESTS: LazyLock<RecordShape> = LazyLock::new(|| {
    record(
        "tests",
        "A test file: `*.test.yaml` beside the rules that it tests.",
        [
            FieldShape::optional("callgate", Shape::Number, "The version of the format: 1."),
            FieldShape::optional("tools", TOOLS, "The known tools."),
            CONTEXT,
            TASK,
            CLOCK,
            STUBS,
            FieldShape::required("cases", Shape::NonEmptyList(leak(Shape::Record(&CASE))), "The cases."),
        ],
    )
});

fn leak(shape: Shape) -> &'static Shape {
    Box::leak(Box::new(shape))
}

/// The schema of a test file.
pub fn test_file_record() -> &'static RecordShape {
    &TESTS
}
