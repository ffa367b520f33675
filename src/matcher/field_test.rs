//! Test of the values at a path, as in `{ path: $.input.amount, gt: 100 }`. Call → [`Truth`].

use std::hash::BuildHasher;

use super::detection::DETECTS;
use super::folded_comparison::{CONFUSABLES, IGNORE_CASE};
use super::length_bounds::{COUNT_SHAPE, LENGTH_RECORD};
use super::mention::{AS, DECIMAL, MENTIONED_IN};
use super::operator::{Operator, PATH_OPERAND};
use super::truth::Truth;
use super::value_source::ValueSource;
use crate::call::{CallView, NodeRef};
use crate::diagnostic::{Diagnostic, MISSING_KEY, MISSING_QUANTIFIER, Span};
use crate::json::{JsonType, Number, Value};
use crate::path::Path;
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, Shape, head_span};
use crate::source;
use crate::work_limit;

const OPERAND: Shape = Shape::Any;
const STRINGS: Shape = Shape::Either(&[
    Shape::String("a string"),
    Shape::NonEmptyList(&Shape::String("a string")),
    Shape::Record(&PATH_OPERAND),
]);

pub const PATH: FieldShape = FieldShape::optional(
    "path",
    Shape::String("a JSONPath such as `$.input.amount`"),
    "The path of the value to test: JSONPath (RFC 9535) over `$.tool`, `$.server`, `$.id`, `$.input`, `$.output`, `$.error`, \
     `$.context`, `$.session` and `$.annotations`.",
);
pub const EQ: FieldShape =
    FieldShape::optional("eq", OPERAND, "The value equals this: a literal, or `{ path: … }`.");
pub const NE: FieldShape =
    FieldShape::optional("ne", OPERAND, "The value is present and does not equal this.");
pub const GT: FieldShape =
    FieldShape::optional("gt", OPERAND, "The value is greater than this number, or sorts after this string.");
pub const GTE: FieldShape = FieldShape::optional("gte", OPERAND, "The value equals this, or is greater.");
pub const LT: FieldShape =
    FieldShape::optional("lt", OPERAND, "The value is less than this number, or sorts before this string.");
pub const LTE: FieldShape = FieldShape::optional("lte", OPERAND, "The value equals this, or is less.");
const SET: Shape = Shape::Either(&[Shape::NonEmptyList(&Shape::Any), Shape::Record(&PATH_OPERAND)]);
pub const IN: FieldShape =
    FieldShape::optional("in", SET, "The value equals one of these: a list, or `{ path: … }`.");
pub const NOT_IN: FieldShape =
    FieldShape::optional("not_in", SET, "The value is present and equals none of these.");
pub const CONTAINS: FieldShape = FieldShape::optional(
    "contains",
    OPERAND,
    "The value is a string that contains this, or an array with an item that equals this.",
);
pub const CONTAINS_ANY: FieldShape = FieldShape::optional(
    "contains_any",
    SET,
    "The value is a string that contains one of these, or an array with an item that equals one of these: a list, or `{ path: … }`.",
);
pub const STARTS_WITH: FieldShape = FieldShape::optional(
    "starts_with",
    STRINGS,
    "The value is a string that starts with this, or with one of these.",
);
pub const ENDS_WITH: FieldShape = FieldShape::optional(
    "ends_with",
    STRINGS,
    "The value is a string that ends with this, or with one of these.",
);
pub const MATCHES: FieldShape = FieldShape::optional(
    "matches",
    Shape::OneOrMany(&Shape::String("a regular expression")),
    "The value is a string in which this regular expression, or one of these, matches anywhere; `^` and `$` anchor it.",
);
pub const EXISTS: FieldShape = FieldShape::optional(
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
pub const TYPE: FieldShape =
    FieldShape::optional("type", Shape::OneOrMany(&TYPE_WORDS), "The value has this type, or one of these.");
const LENGTHS: Shape = Shape::Either(&[COUNT_SHAPE, Shape::Record(&LENGTH_RECORD)]);
pub const LENGTH: FieldShape = FieldShape::optional(
    "length",
    LENGTHS,
    "The number of characters (of a string), items (of an array) or members (of an object): a number, or `{ of: items, gt: 3, lte: 10 }`.",
);
pub const INSIDE: FieldShape = FieldShape::optional(
    "inside",
    STRINGS,
    "The value is a file path inside this directory, or one of these, after `.`, `..` and `//` are resolved (symlinks are not). The test \
     is undecided for a path that programs may interpret differently.",
);
pub const BASE: FieldShape = FieldShape::optional(
    "base",
    Shape::String("an absolute directory"),
    "For `inside`: the directory that relative paths start from.",
);
pub const HOST: FieldShape = FieldShape::optional(
    "host",
    STRINGS,
    "The value is a URL whose host is this or one of these; `*.example.com` matches subdomains.",
);
pub const DOMAIN: FieldShape = FieldShape::optional(
    "domain",
    STRINGS,
    "The value is a list of mail addresses in which the domain of every address is this or one of these; `*.example.com` matches \
     subdomains.",
);
pub const EACH: FieldShape = FieldShape::optional(
    "each",
    Shape::Word(&[
        ("any", "at least one value passes the tests"),
        ("every", "there is a value, and all values pass the tests"),
        ("none", "no value passes the tests"),
    ]),
    "For a path that may return several values: how many of them must pass the tests.",
);
pub const ABSENT: FieldShape = FieldShape::optional(
    "absent",
    Shape::Word(&[("no_match", "the test is false"), ("match", "the test is true")]),
    "Result of the test if the value is absent. Default: `defaults.absent`.",
);

/// How a test applies to several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// At least one value passes.
    Any,
    /// All values pass.
    Every,
    /// No value passes.
    None,
}

impl Quantifier {
    /// The name in rules files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Every => "every",
            Self::None => "none",
        }
    }

    /// Combines the results of the single values.
    pub(super) fn combine(self, truths: impl IntoIterator<Item = Truth>) -> Truth {
        match self {
            Self::Any => Truth::any(truths),
            Self::None => !Truth::any(truths),
            Self::Every => Truth::all(truths),
        }
    }
}

/// The key of an expression, as a condition or in place of a path.
pub const EXPR_KEY: &str = "expr";

/// The keys that are operators.
const OPERATOR_FIELDS: [FieldShape; 21] = [
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
];

/// The keys that change how the operators work.
const OPTION_KEYS: [&str; 7] =
    ["each", "absent", "base", AS.name, DECIMAL.name, IGNORE_CASE.name, CONFUSABLES.name];

/// Result of a test for an absent value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// The test is false.
    NoMatch,
    /// The test is true (`absent: match` in policies that do not restrict).
    Match,
    /// The policy applies, whether the test is under a `not` or not (restricting policies).
    Acts,
}

/// A compiled test. All operators must hold for a value.
#[derive(Debug)]
pub struct FieldTest {
    pub(super) subject: ValueSource,
    pub(super) each: Quantifier,
    absence: Absence,
    pub(super) exists: Option<bool>,
    pub(super) operators: Vec<Operator>,
    pub(super) spans: Box<TestSpans>,
}

/// The locations of the parts of a test.
#[derive(Debug)]
pub(super) struct TestSpans {
    pub(super) path: Span,
    pub(super) exists: Option<Span>,
    /// For each operator its key, and the location of key and operand.
    pub(super) operators: Vec<(&'static str, Span)>,
}

impl TestSpans {
    fn from_node(test: &source::YamlNode) -> Self {
        let entries = || test.entries().unwrap_or_default().iter();
        let whole = |entry: &source::MappingEntry| Span { end: entry.value.span.end, ..entry.key_span };
        let operators = entries().filter_map(|entry| {
            let key =
                OPERATOR_FIELDS.iter().find(|test| test.name == entry.key && test.name != EXISTS.name)?;
            Some((key.name, whole(entry)))
        });
        Self {
            path: test.get(PATH.name).or_else(|| test.get(EXPR_KEY)).map_or(test.span, |path| path.span),
            exists: entries().find(|entry| entry.key == EXISTS.name).map(whole),
            operators: operators.collect(),
        }
    }
}

impl FieldTest {
    /// Reads a test and reports problems to `reader`.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let subject = match node.get(EXPR_KEY) {
            Some(expression) => ValueSource::read_expression(expression, reader),
            None => node.get(PATH.name).and_then(|node| reader.read_path(node)).map(ValueSource::Path),
        };
        let exists = node.get("exists").and_then(source::YamlNode::as_bool);
        let operators = Operator::read_all(node, reader);
        if exists.is_none()
            && !OPERATOR_FIELDS.iter().any(|test| super::CONDITION_RECORD.has_misspelling_of(node, test.name))
            && node.entries()?.iter().all(|entry| {
                [PATH.name, EXPR_KEY].contains(&entry.key.as_str())
                    || OPTION_KEYS.contains(&entry.key.as_str())
            })
        {
            reader.report(
                Diagnostic::new(&MISSING_KEY, head_span(node), "this test has a `path` and no operator")
                    .with_help("add a test such as `eq:`, `gt:`, `matches:` or `exists: true`"),
            );
            return None;
        }
        let subject = subject?;
        let each = match node.get("each").and_then(source::YamlNode::as_str) {
            Some("every") => Quantifier::Every,
            Some("none") => Quantifier::None,
            Some(_) => Quantifier::Any,
            None if subject.is_singular() || operators.is_empty() => Quantifier::Any,
            None if reader.polarity != Polarity::Permitting && !reader.in_definition => Quantifier::Any,
            None => {
                reader.report(
                    Diagnostic::new(
                        &MISSING_QUANTIFIER,
                        node.get("path").map_or(node.span, |node| node.span),
                        match reader.in_definition {
                            true => "this path may return several values, and a definition needs `each`",
                            false => "this path may return several values, and a permitting policy needs `each`",
                        },
                    )
                    .with_help("add `each: any`, `each: every` or `each: none` to say how many of the values must pass"),
                );
                return None;
            }
        };
        let written = node.get("absent").and_then(source::YamlNode::as_str);
        let absence = match (reader.polarity, written) {
            (Polarity::Restricting, Some("match")) => Absence::Acts,
            (Polarity::Restricting, None) if reader.absent_matches => Absence::Acts,
            (_, Some("match")) => Absence::Match,
            _ => Absence::NoMatch,
        };
        let operators = operators.into_iter().collect::<Option<_>>()?;
        Some(Self { subject, each, absence, exists, operators, spans: Box::new(TestSpans::from_node(node)) })
    }

    /// Evaluates the test for a call.
    pub fn eval(&self, view: &CallView<'_>) -> Truth {
        self.subject.with_values(view, |nodes| match nodes {
            Ok(nodes) => self.eval_values(nodes, view),
            Err(undecided) => undecided,
        })
    }

    fn eval_values(&self, nodes: &[NodeRef<'_>], view: &CallView<'_>) -> Truth {
        match self.exists {
            Some(wanted) if wanted == nodes.is_empty() => return Truth::No,
            Some(_) if nodes.is_empty() => return Truth::Yes,
            _ => {}
        }
        if nodes.is_empty() {
            return match (self.absence, self.each) {
                (Absence::Acts, _) => Truth::Absent,
                (Absence::Match, _) | (Absence::NoMatch, Quantifier::None) => Truth::Yes,
                (Absence::NoMatch, Quantifier::Any | Quantifier::Every) => Truth::No,
            };
        }
        self.each.combine(nodes.iter().map(|node| self.eval_node(*node, view)))
    }

    pub(super) fn eval_node(&self, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        Truth::all(self.operators.iter().map(|operator| self.eval_operator(operator, node, view)))
    }

    /// Evaluates one operator for one value, with the path and the absence rule of this test.
    pub(super) fn eval_operator(&self, operator: &Operator, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        match self.eval_metered(operator, node, view) {
            Truth::Undecided(why) => Truth::Undecided(format!("`{}`: {why}", self.subject.text())),
            // An absent operand counts like an absent value.
            Truth::Absent => match self.absence {
                Absence::Acts => Truth::Absent,
                Absence::Match => Truth::Yes,
                Absence::NoMatch => Truth::No,
            },
            decided => decided,
        }
    }

    fn eval_metered(&self, operator: &Operator, node: NodeRef<'_>, view: &CallView<'_>) -> Truth {
        if let Err(exceeded) = work_limit::spend(operator.cost(node)) {
            return Truth::Undecided(exceeded.to_string());
        }
        match self.subject.reads_arguments() {
            true => operator.eval_argument(node, view),
            false => operator.eval(node, view),
        }
    }

    /// Returns the path and the keys by which an index can find this test: the path is singular, its value must equal one of some
    /// literals of one type, and an absent value does not match. Returns `None` for other tests.
    pub fn index_keys(&self) -> Option<(&Path, Vec<ScalarKey<'_>>)> {
        let path = self.subject.as_path()?;
        if !path.is_singular()
            || self.each != Quantifier::Any
            || self.absence != Absence::NoMatch
            || self.exists == Some(false)
        {
            return None;
        }
        let keys = self.operators.iter().find_map(Operator::required_literals)?;
        let keys: Vec<_> =
            keys.iter().map(|value| ScalarKey::from_node(NodeRef::Json(value))).collect::<Option<_>>()?;
        let first = keys.first()?.json_type();
        keys.iter().all(|key| key.json_type() == first).then_some((path, keys))
    }
}

/// A scalar as the key of an index.
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
    /// Returns the key of a node. Returns `None` if it is not a scalar, or is `null`.
    pub fn from_node(node: NodeRef<'a>) -> Option<Self> {
        match node {
            NodeRef::Text(text) => Some(Self::String(text)),
            NodeRef::Json(Value::String(text)) => Some(Self::String(text)),
            NodeRef::Json(Value::Number(number)) => Some(Self::Number(number)),
            NodeRef::Json(Value::Bool(value)) => Some(Self::Boolean(*value)),
            NodeRef::Json(_) => None,
        }
    }

    /// The JSON type of the scalar.
    pub fn json_type(&self) -> JsonType {
        match self {
            Self::String(_) => JsonType::String,
            Self::Number(_) => JsonType::Number,
            Self::Boolean(_) => JsonType::Boolean,
        }
    }

    /// The hash. Equal values have equal hashes; after a collision, evaluating the test decides.
    pub fn hash(&self, state: &impl BuildHasher) -> u64 {
        match self {
            Self::String(text) => state.hash_one(text),
            Self::Number(number) => state.hash_one(number),
            Self::Boolean(value) => state.hash_one(value),
        }
    }
}
