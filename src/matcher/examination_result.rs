//! Results of an examination: a condition with the truth of each of its parts for one call, and the values that were tested.
//!
//! The values are those of the call and not redacted. Redact them before showing them.

use super::comparison::FieldComparison;
use super::condition::{Condition, ShellQuantifier};
use super::field_test::Quantifier;
use super::truth::Truth;
use super::value_source::{ExpressionText, ValueSource};
use crate::call::CallView;
use crate::diagnostic::Span;
use crate::json::Value;
use crate::script::ExpressionValue;

/// A matcher with the results of its parts for one call.
#[derive(Clone, Debug)]
pub struct ExaminedMatcher<'a> {
    /// Whether the patterns are for calls like this one: for calls of tools, or for requests by methods.
    pub is_for_call: bool,
    /// The patterns for tools. Without patterns every tool matches.
    pub tools: Vec<ExaminedPattern<'a>>,
    /// The patterns for servers. Without patterns every call matches, also one without a server.
    pub servers: Vec<ExaminedPattern<'a>>,
    /// The conditions, evaluated even if the tool or the server does not match. `None` if there are no conditions.
    pub condition: Option<ExaminedCondition<'a>>,
}

/// A name pattern with its result.
#[derive(Clone, Copy, Debug)]
pub struct ExaminedPattern<'a> {
    /// The pattern as written, without the slashes of a regular expression.
    pub text: &'a str,
    /// The location in the rules.
    pub span: Option<Span>,
    /// Whether the name matches.
    pub matches: bool,
}

impl ExaminedMatcher<'_> {
    /// Whether the tool matches.
    pub fn matches_tool(&self) -> bool {
        self.is_for_call && (self.tools.is_empty() || self.tools.iter().any(|pattern| pattern.matches))
    }

    /// Whether the server matches.
    pub fn matches_server(&self) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|pattern| pattern.matches)
    }

    /// Returns the result of the whole matcher.
    pub fn truth(&self) -> Truth {
        match (self.matches_tool() && self.matches_server(), &self.condition) {
            (false, _) => Truth::No,
            (true, None) => Truth::Yes,
            (true, Some(condition)) => condition.truth.clone(),
        }
    }
}

/// A condition with its result for one call.
#[derive(Clone, Debug)]
pub struct ExaminedCondition<'a> {
    /// The location in the rules.
    pub span: Span,
    /// The result.
    pub truth: Truth,
    /// Whether short-circuit evaluation reaches it: no earlier part has decided the whole condition.
    pub reached: bool,
    /// The form of the condition.
    pub form: ExaminedForm<'a>,
}

/// The forms of a condition.
#[derive(Clone, Debug)]
pub enum ExaminedForm<'a> {
    /// All conditions hold. Also used for a list of conditions.
    All(Vec<ExaminedCondition<'a>>),
    /// At least one condition holds.
    Any(Vec<ExaminedCondition<'a>>),
    /// The condition does not hold.
    Not(Box<ExaminedCondition<'a>>),
    /// A test of the values at a path.
    Test(ExaminedTest<'a>),
    /// An expression. If it failed, the truth has the reason.
    Expr(&'a ExpressionText),
    /// A condition on elements.
    Elements(ExaminedElements<'a>),
    /// A condition on shell commands.
    Shell(ExaminedShell<'a>),
}

/// A condition on shell commands, with the commands.
#[derive(Clone, Debug)]
pub struct ExaminedShell<'a> {
    /// How many of them must pass.
    pub quantifier: ShellQuantifier,
    /// Where the text is read.
    pub source: &'a ValueSource,
    /// The location of the path or expression in the rules.
    pub source_span: Span,
    /// The commands. Empty if there are none, or if the text can't be read.
    pub commands: Vec<ExaminedCommand>,
    /// Why further commands can run.
    pub doubts: Vec<&'static str>,
}

/// A shell command with the result of the tests for it.
#[derive(Clone, Debug)]
pub struct ExaminedCommand {
    /// The command in one line.
    pub text: String,
    /// Whether it passes one of the tests.
    pub truth: Truth,
}

/// A condition on elements, with the element that decided it.
#[derive(Clone, Debug)]
pub struct ExaminedElements<'a> {
    /// How many of them must pass.
    pub quantifier: Quantifier,
    /// Where the elements are read.
    pub source: &'a ValueSource,
    /// The location of the path or expression in the rules.
    pub source_span: Span,
    /// The number of elements. `None` if they cannot be read.
    pub count: Option<usize>,
    /// The first element that decided the condition, or otherwise the first one for which it is undecided.
    pub deciding: Option<ExaminedElement<'a>>,
    /// The condition on each element.
    pub(super) condition: &'a Condition,
    /// The call, as it is outside of the elements.
    pub(super) view: CallView<'a>,
}

/// An element with the result of the condition for it.
#[derive(Clone, Debug)]
pub struct ExaminedElement<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The element.
    pub value: ExpressionValue<'a>,
    /// The result of the condition.
    pub truth: Truth,
}

impl<'a> ExaminedCondition<'a> {
    /// Returns the direct parts of the condition, in order.
    pub fn parts(&self) -> &[Self] {
        match &self.form {
            ExaminedForm::All(parts) | ExaminedForm::Any(parts) => parts,
            ExaminedForm::Not(part) => std::slice::from_ref(&**part),
            ExaminedForm::Test(_)
            | ExaminedForm::Expr(_)
            | ExaminedForm::Elements(_)
            | ExaminedForm::Shell(_) => &[],
        }
    }

    /// Calls `visit` with the condition and all its descendants, parents first.
    pub fn visit(&self, visit: &mut impl FnMut(&ExaminedCondition<'a>)) {
        visit(self);
        for part in self.parts() {
            part.visit(visit);
        }
    }
}

/// A test of the values at a path, with its results.
#[derive(Clone, Debug)]
pub struct ExaminedTest<'a> {
    /// Where the values are read.
    pub subject: &'a ValueSource,
    /// The location of the path or expression in the rules.
    pub path_span: Span,
    /// How the operators apply to several values.
    pub each: Quantifier,
    /// The values at the path.
    pub values: TestedValues<'a>,
    /// The operators with their results, `exists` first.
    pub operators: Vec<ExaminedOperator<'a>>,
    /// What changes the meaning of the operators, as written: `as: email`, `ignore_case: true`.
    pub options: &'a [String],
}

/// The values at the path of a test.
#[derive(Clone, Debug)]
pub enum TestedValues<'a> {
    /// There is no value.
    Absent,
    /// A value on the path has a type that does not fit the path; with a description.
    TypeMismatch(String),
    /// Values.
    Values {
        /// The first values, and the one that decided the test.
        first: Vec<ExaminedValue<'a>>,
        /// The number of all values.
        count: usize,
    },
}

/// A value at the path of a test.
#[derive(Clone, Debug)]
pub struct ExaminedValue<'a> {
    /// Its position among all values of the path, from 0.
    pub index: usize,
    /// The value.
    pub value: ExpressionValue<'a>,
    /// The combined result of the operators for it, without `exists`.
    pub truth: Truth,
    /// The result of each operator.
    pub operator_results: Vec<Truth>,
}

/// An operator of a test, with its result.
#[derive(Clone, Debug)]
pub struct ExaminedOperator<'a> {
    /// The key, such as `gt`.
    pub key: &'static str,
    /// The location of the key and the operand.
    pub span: Span,
    /// The operand.
    pub operand: ExaminedOperand<'a>,
    /// Where the operand is read. `None` for a literal.
    pub operand_source: Option<&'a ValueSource>,
    /// The combined result for all values. `None` if there are no values.
    pub truth: Option<Truth>,
}

/// The operand that a value is compared with.
#[derive(Clone, Debug)]
pub enum ExaminedOperand<'a> {
    /// One value.
    Single(ExpressionValue<'a>),
    /// Literals of the rules file.
    Literals(&'a [Value]),
    /// Strings of the rules file: patterns, types.
    Strings(&'a [String]),
    /// A string of the rules file: a regular expression.
    Regex(&'a str),
    /// The values at a path.
    Several(Vec<ExpressionValue<'a>>),
    /// Bounds for a length, with their keys.
    Bounds(Vec<(&'static str, u64)>),
    /// A boolean.
    Bool(bool),
    /// No operand, because its path is absent or does not fit; with the resulting truth.
    Undetermined(Truth),
}

impl ExaminedOperand<'_> {
    /// Returns a copy as JSON. Returns `None` if there is no operand.
    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::Single(value) => value.node().to_value(),
            Self::Literals(values) => Value::from(values.to_vec()),
            Self::Strings([text]) => Value::from(text.as_str()),
            Self::Strings(texts) => Value::from(texts.to_vec()),
            Self::Regex(text) => Value::from(*text),
            Self::Several(values) => values.iter().map(|value| value.node().to_value()).collect(),
            Self::Bounds(bounds) => match bounds.as_slice() {
                [(key, bound)] if *key == FieldComparison::Eq.name() => Value::from(*bound),
                bounds => {
                    bounds.iter().map(|(key, bound)| ((*key).to_owned(), Value::from(*bound))).collect()
                }
            },
            Self::Bool(value) => Value::from(*value),
            Self::Undetermined(_) => return None,
        })
    }
}
