//! Test of the values at a path, as in `{ path: $.input.amount, gt: 100 }`. Call → [`Truth`].

use super::condition_shape::{CONDITION_RECORD, EXISTS, EXPR_KEY, OPERATOR_FIELDS, OPTION_KEYS, PATH};
use super::mention::{AS, MENTIONED_IN};
use super::operator::Operator;
use super::requirement::Requirement;
use super::scalar_test::ScalarTest;
use super::truth::Truth;
use super::value_source::ValueSource;
use crate::call::{CallView, NodeRef, Root};
use crate::diagnostic::{Diagnostic, MISSING_KEY, MISSING_QUANTIFIER, Span};
use crate::path::Path;
use crate::rules_schema::{Polarity, PolicyReader, head_span};
use crate::source;
use crate::work_limit;

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

    /// The key of a condition on elements.
    pub fn key(self) -> &'static str {
        match self {
            Self::Any => "any_of",
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
    pub(super) operators: Box<[Operator]>,
    pub(super) spans: Box<TestSpans>,
}

/// The locations of the parts of a test.
#[derive(Debug)]
pub(super) struct TestSpans {
    pub(super) path: Span,
    pub(super) exists: Option<Span>,
    /// For each operator its key, and the location of key and operand.
    pub(super) operators: Box<[(&'static str, Span)]>,
    /// What changes the meaning of the operators, as written: `as: email`, `ignore_case: true`.
    pub(super) options: Box<[String]>,
}

/// The keys of a test that say something else than how its operators compare.
const OTHER_OPTIONS: [&str; 2] = ["each", "absent"];

impl TestSpans {
    fn from_node(test: &source::YamlNode) -> Self {
        let entries = || test.entries().unwrap_or_default().iter();
        let whole = |entry: &source::MappingEntry| entry.key_span.until(entry.value.span.end());
        let operators = entries().filter_map(|entry| {
            let key =
                OPERATOR_FIELDS.iter().find(|test| test.name == entry.key && test.name != EXISTS.name)?;
            Some((key.name, whole(entry)))
        });
        Self {
            path: test.get(PATH.name).or_else(|| test.get(EXPR_KEY)).map_or(test.span, |path| path.span),
            exists: entries().find(|entry| entry.key == EXISTS.name).map(whole),
            operators: operators.collect(),
            options: operator_options(test),
        }
    }
}

fn operator_options(test: &source::YamlNode) -> Box<[String]> {
    let entries = test.entries().unwrap_or_default().iter();
    // Without `mentioned_in`, `as` names elements.
    let options = entries.filter(|entry| {
        OPTION_KEYS.contains(&entry.key.as_str())
            && !OTHER_OPTIONS.contains(&entry.key.as_str())
            && (entry.key != AS.name || test.get(MENTIONED_IN.name).is_some())
    });
    let text =
        |node: &source::YamlNode| node.as_str().map_or_else(|| node.to_json().to_string(), str::to_owned);
    options.map(|entry| format!("{}: {}", entry.key, text(&entry.value))).collect()
}

impl FieldTest {
    /// Reads a test and reports problems to `reader`.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let subject = match node.get(EXPR_KEY) {
            Some(expression) => ValueSource::read_expression(expression, reader),
            None => match node.get(PATH.name) {
                Some(path) => ValueSource::read_path(path, reader),
                None => ValueSource::innermost_element(reader),
            },
        };
        let exists = node.get("exists").and_then(source::YamlNode::as_bool);
        let operators = Operator::read_all(node, reader);
        if exists.is_none()
            && node.entries()?.iter().all(|entry| {
                [PATH.name, EXPR_KEY].contains(&entry.key.as_str())
                    || OPTION_KEYS.contains(&entry.key.as_str())
            })
            && !OPERATOR_FIELDS.iter().any(|test| CONDITION_RECORD.has_misspelling_of(node, test.name))
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
        let operators: Option<Vec<Operator>> = operators.into_iter().collect();
        let operators = operators?.into_boxed_slice();
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
        if let Some(forms) = self.subject.word_forms(view)
            && let Some(truth) = operator.eval_word(forms, view)
        {
            return truth;
        }
        match self.subject.reads_arguments() {
            true => operator.eval_argument(node, view),
            false => operator.eval(node, view),
        }
    }

    /// Returns the path and the test of its scalar, if the test only compares one argument or member of the context with literals.
    pub fn as_scalar_test(&self) -> Option<(&Path, ScalarTest)> {
        let path = self.subject.as_path()?;
        let is_of_call = matches!(path.root(), Root::Input | Root::Context);
        if !is_of_call || !path.is_singular() || self.each == Quantifier::None || self.exists == Some(false) {
            return None;
        }
        let comparisons = self.operators.iter().map(Operator::as_scalar_comparison).collect::<Option<_>>()?;
        let absent = match self.absence {
            _ if self.exists == Some(true) => Some(false),
            Absence::NoMatch => Some(false),
            Absence::Match | Absence::Acts => None,
        };
        Some((path, ScalarTest { absent, comparisons }))
    }

    /// Returns the path and what its value must be for the test to hold, by which an index can find it: the path is singular, and an
    /// absent value does not match. Returns `None` for other tests.
    pub fn requirement(&self) -> Option<(&Path, Requirement<'_>)> {
        let path = self.subject.as_path()?;
        if !path.is_singular()
            || self.each != Quantifier::Any
            || self.absence != Absence::NoMatch
            || self.exists == Some(false)
        {
            return None;
        }
        let requirements = self.operators.iter().filter_map(Operator::requirement);
        Some((path, requirements.min_by_key(Requirement::kind)?))
    }
}
