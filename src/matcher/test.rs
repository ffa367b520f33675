//! One test of one place: `{ path: $.input.amount, gt: 100 }`.

use std::hash::BuildHasher;

use super::operand;
use super::operator::{COUNT, LENGTH_RECORD, Operator, PATH_OPERAND};
use super::truth::Truth;
use crate::authoring::{Field, Polarity, Reader, Shape, head};
use crate::call::{CallView, Node, Root};
use crate::diagnostic::{Diagnostic, MISSING_KEY, MISSING_QUANTIFIER, Span};
use crate::json::{JsonType, Number, Value};
use crate::meter;
use crate::path::Path;
use crate::source;

const OPERAND: Shape = Shape::Any;
const TEXTS: Shape = Shape::Either(&[
    Shape::Text("a text"),
    Shape::List(&Shape::Text("a text")),
    Shape::Record(&PATH_OPERAND),
]);

pub const PATH: Field = Field::optional(
    "path",
    Shape::Text("a JSONPath such as `$.input.amount`"),
    "The place to test: JSONPath (RFC 9535) over `$.tool`, `$.server`, `$.id`, `$.input`, `$.output`, `$.error`, `$.context`, \
     `$.session` and `$.annotations`.",
);
pub const EQ: Field = Field::optional("eq", OPERAND, "It equals this: a literal, or `{ path: … }`.");
pub const NE: Field = Field::optional("ne", OPERAND, "It is there and does not equal this.");
pub const GT: Field = Field::optional("gt", OPERAND, "It is greater than this number, or after this text.");
pub const GTE: Field = Field::optional("gte", OPERAND, "It is this, or greater.");
pub const LT: Field = Field::optional("lt", OPERAND, "It is less than this number, or before this text.");
pub const LTE: Field = Field::optional("lte", OPERAND, "It is this, or less.");
const SET: Shape = Shape::Either(&[Shape::List(&Shape::Any), Shape::Record(&PATH_OPERAND)]);
pub const IN: Field = Field::optional("in", SET, "It equals one of these: a list, or `{ path: … }`.");
pub const NOT_IN: Field = Field::optional("not_in", SET, "It is there and equals none of these.");
pub const CONTAINS: Field = Field::optional(
    "contains",
    OPERAND,
    "Text that has this in it, or a list with an item that equals this.",
);
pub const STARTS_WITH: Field =
    Field::optional("starts_with", TEXTS, "Text that starts with this, or with one of these.");
pub const ENDS_WITH: Field =
    Field::optional("ends_with", TEXTS, "Text that ends with this, or with one of these.");
pub const MATCHES: Field = Field::optional(
    "matches",
    Shape::Text("a regular expression"),
    "Text in which this regular expression is found somewhere; `^` and `$` anchor it.",
);
pub const EXISTS: Field =
    Field::optional("exists", Shape::Bool, "Whether the place is there at all (null is there).");
const TYPE_WORDS: Shape = Shape::Word(&[
    ("null", "null"),
    ("boolean", "true or false"),
    ("number", "any number"),
    ("integer", "a number without a fraction"),
    ("string", "text"),
    ("array", "a list"),
    ("object", "an object"),
]);
pub const TYPE: Field =
    Field::optional("type", Shape::OneOrMany(&TYPE_WORDS), "It is of this type, or of one of these.");
const LENGTHS: Shape = Shape::Either(&[COUNT, Shape::Record(&LENGTH_RECORD)]);
pub const LENGTH: Field = Field::optional(
    "length",
    LENGTHS,
    "How many characters (of a string), items (of an array) or members (of an object) it has: a number, or `{ of: items, gt: 3, lte: 10 }`.",
);
pub const INSIDE: Field = Field::optional(
    "inside",
    TEXTS,
    "A path that lies under this directory once `.`, `..` and `//` are resolved (symlinks are not). What can't be judged is undecided.",
);
pub const BASE: Field = Field::optional(
    "base",
    Shape::Text("an absolute directory"),
    "For `inside`: where relative paths start.",
);
pub const HOST: Field =
    Field::optional("host", TEXTS, "A URL whose host is this, or for `*.example.com` below it.");
pub const DOMAIN: Field = Field::optional(
    "domain",
    TEXTS,
    "An address list in which the domain of every address is this (or one of these).",
);
pub const EACH: Field = Field::optional(
    "each",
    Shape::Word(&[
        ("any", "one of the values passes the tests"),
        ("every", "there are values, and every one passes the tests"),
        ("none", "no value passes the tests"),
    ]),
    "For a path that may yield several values.",
);
pub const ABSENT: Field = Field::optional(
    "absent",
    Shape::Word(&[("no_match", "the test does not hold"), ("match", "the test holds")]),
    "What the test says where the place is absent; without it: `defaults.absent`.",
);

/// How the tests apply to several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// One of them passes.
    Any,
    /// Every one passes.
    Every,
    /// No one passes.
    None,
}

impl Each {
    /// The word of the rules file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Every => "every",
            Self::None => "none",
        }
    }

    /// What the truths of the single values come to.
    pub(super) fn of(self, truths: impl IntoIterator<Item = Truth>) -> Truth {
        match self {
            Self::Any => Truth::any(truths),
            Self::None => !Truth::any(truths),
            Self::Every => Truth::all(truths),
        }
    }
}

/// The keys that ask something of the value.
const TESTS: [Field; 18] = [
    EQ,
    NE,
    GT,
    GTE,
    LT,
    LTE,
    IN,
    NOT_IN,
    CONTAINS,
    STARTS_WITH,
    ENDS_WITH,
    MATCHES,
    EXISTS,
    TYPE,
    LENGTH,
    INSIDE,
    HOST,
    DOMAIN,
];

/// What a test says where its place is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// It does not hold.
    NoMatch,
    /// It holds (policies that do not restrict, where the author says so).
    Match,
    /// The policy acts, whether the test stands under a `not` or not (restricting policies).
    Acts,
}

/// A test, compiled. All operators must hold for a value.
#[derive(Debug)]
pub struct Test {
    pub(super) path: Path,
    pub(super) each: Each,
    absence: Absence,
    pub(super) exists: Option<bool>,
    pub(super) operators: Vec<Operator>,
    pub(super) written: Box<Written>,
}

/// Where the parts of a test stand.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: Span,
    pub(super) exists: Option<Span>,
    /// For each operator its key, and where that and its operand stand.
    pub(super) operators: Vec<(&'static str, Span)>,
}

impl Written {
    fn of(test: &source::Node) -> Self {
        let entries = || test.entries().unwrap_or_default().iter();
        let whole = |entry: &source::Entry| Span { end: entry.value.span.end, ..entry.key_span };
        let operators = entries().filter_map(|entry| {
            let key = TESTS.iter().find(|test| test.name == entry.key && test.name != EXISTS.name)?;
            Some((key.name, whole(entry)))
        });
        Self {
            path: test.get(PATH.name).map_or(test.span, |path| path.span),
            exists: entries().find(|entry| entry.key == EXISTS.name).map(whole),
            operators: operators.collect(),
        }
    }
}

impl Test {
    /// Reads a test. Problems are reported to `reader`.
    pub fn read(node: &source::Node, reader: &mut Reader<'_>) -> Option<Self> {
        let path = node.get("path").and_then(|node| reader.path(node));
        let exists = node.get("exists").and_then(source::Node::as_bool);
        let operators = Operator::read_all(node, reader);
        if exists.is_none()
            && !TESTS.iter().any(|test| super::CONDITION.may_be_misspelled(node, test.name))
            && node
                .entries()?
                .iter()
                .all(|entry| ["path", "each", "absent", "base"].contains(&entry.key.as_str()))
        {
            reader.report(
                Diagnostic::new(&MISSING_KEY, head(node), "this test names a place and says nothing of it")
                    .help("add a test such as `eq:`, `gt:`, `matches:` or `exists: true`"),
            );
            return None;
        }
        let path = path?;
        let each = match node.get("each").and_then(source::Node::as_str) {
            Some("every") => Each::Every,
            Some("none") => Each::None,
            Some(_) => Each::Any,
            None if path.is_singular() || reader.polarity != Polarity::Permitting || operators.is_empty() => {
                Each::Any
            }
            None => {
                reader.report(
                    Diagnostic::new(
                        &MISSING_QUANTIFIER,
                        node.get("path").map_or(node.span, |node| node.span),
                        "this path may yield several values, and the policy permits",
                    )
                    .help("say whether `each: any`, `each: every` or `each: none` of them must pass"),
                );
                return None;
            }
        };
        let written = node.get("absent").and_then(source::Node::as_str);
        let absence = match (reader.polarity, written) {
            (Polarity::Restricting, Some("match")) => Absence::Acts,
            (Polarity::Restricting, None) if reader.absent_matches => Absence::Acts,
            (_, Some("match")) => Absence::Match,
            _ => Absence::NoMatch,
        };
        let operators = operators.into_iter().collect::<Option<_>>()?;
        Some(Self { path, each, absence, exists, operators, written: Box::new(Written::of(node)) })
    }

    /// What the test says of a call.
    pub fn eval(&self, view: &CallView<'_>) -> Truth {
        let nodes = match operand::nodes(&self.path, view) {
            Ok(nodes) => nodes,
            Err(truth) => return truth,
        };
        match self.exists {
            Some(wanted) if wanted == nodes.is_empty() => return Truth::No,
            Some(_) if nodes.is_empty() => return Truth::Yes,
            _ => {}
        }
        if nodes.is_empty() {
            return match (self.absence, self.each) {
                (Absence::Acts, _) => Truth::Absent,
                (Absence::Match, _) | (Absence::NoMatch, Each::None) => Truth::Yes,
                (Absence::NoMatch, Each::Any | Each::Every) => Truth::No,
            };
        }
        self.each.of(nodes.iter().map(|node| self.eval_node(*node, view)))
    }

    pub(super) fn eval_node(&self, node: Node<'_>, view: &CallView<'_>) -> Truth {
        Truth::all(self.operators.iter().map(|operator| self.answer(operator, node, view)))
    }

    /// What one operator says of one value, for this test.
    pub(super) fn answer(&self, operator: &Operator, node: Node<'_>, view: &CallView<'_>) -> Truth {
        match self.ask(operator, node, view) {
            Truth::Undecided(why) => Truth::Undecided(format!("`{}`: {why}", self.path.text())),
            // An absent operand is absence like that of the place itself.
            Truth::Absent => match self.absence {
                Absence::Acts => Truth::Absent,
                Absence::Match => Truth::Yes,
                Absence::NoMatch => Truth::No,
            },
            decided => decided,
        }
    }

    fn ask(&self, operator: &Operator, node: Node<'_>, view: &CallView<'_>) -> Truth {
        if let Err(exceeded) = meter::spend(operator.cost(node)) {
            return Truth::Undecided(exceeded.to_string());
        }
        match self.path.root() {
            Root::Input => operator.eval_argument(node, view),
            _ => operator.eval(node, view),
        }
    }

    /// Where this test can be looked up in an index instead of being evaluated: a single place that must equal one of
    /// some literals of one type, and that does not match when absent.
    pub fn lookup(&self) -> Option<(&Path, Vec<ScalarKey<'_>>)> {
        if !self.path.is_singular()
            || self.each != Each::Any
            || self.absence != Absence::NoMatch
            || self.exists == Some(false)
        {
            return None;
        }
        let keys = self.operators.iter().find_map(Operator::literals)?;
        let keys: Vec<_> =
            keys.iter().map(|value| ScalarKey::of(Node::Json(value))).collect::<Option<_>>()?;
        let first = keys.first()?.json_type();
        keys.iter().all(|key| key.json_type() == first).then_some((&self.path, keys))
    }
}

/// A scalar as an index looks it up.
#[derive(Clone, Copy, Debug)]
pub enum ScalarKey<'a> {
    /// A string.
    String(&'a str),
    /// A number, by exact value.
    Number(&'a Number),
    /// A boolean.
    Boolean(bool),
}

impl<'a> ScalarKey<'a> {
    /// The key of a node, where it is a scalar other than null.
    pub fn of(node: Node<'a>) -> Option<Self> {
        match node {
            Node::Text(text) => Some(Self::String(text)),
            Node::Json(Value::String(text)) => Some(Self::String(text)),
            Node::Json(Value::Number(number)) => Some(Self::Number(number)),
            Node::Json(Value::Bool(value)) => Some(Self::Boolean(*value)),
            Node::Json(_) => None,
        }
    }

    /// Its JSON type.
    pub fn json_type(&self) -> JsonType {
        match self {
            Self::String(_) => JsonType::String,
            Self::Number(_) => JsonType::Number,
            Self::Boolean(_) => JsonType::Boolean,
        }
    }

    /// Its hash: equal values have equal hashes; what shares one by chance is told apart by evaluating the test.
    pub fn hash(&self, state: &impl BuildHasher) -> u64 {
        match self {
            Self::String(text) => state.hash_one(text),
            Self::Number(number) => state.hash_one(number),
            Self::Boolean(value) => state.hash_one(value),
        }
    }
}
