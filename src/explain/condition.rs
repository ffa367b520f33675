//! The result of a condition for a call, with the results of its parts.

mod condition_explainer;
mod explained_shell;

pub(super) use condition_explainer::ConditionExplainer;
pub use explained_shell::{ExplainedCommand, ExplainedShell};

use serde::Serialize;

use super::explained_value::ExplainedValue;
use crate::call::Root;
use crate::diagnostic::Location;
use crate::json::Value;
use crate::matcher::Truth;

/// The result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthValue {
    /// It holds.
    Yes,
    /// It does not hold.
    No,
    /// A value that it reads is absent, and its absence makes the policy apply.
    Absent,
    /// It is undecided.
    Undecided,
}

impl From<&Truth> for TruthValue {
    fn from(truth: &Truth) -> Self {
        match truth {
            Truth::Yes => Self::Yes,
            Truth::No => Self::No,
            Truth::Absent => Self::Absent,
            Truth::Undecided(_) => Self::Undecided,
        }
    }
}

/// The forms of a condition, by their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionForm {
    /// All of its parts hold. A list of conditions is this, too.
    All,
    /// One of its parts holds.
    Any,
    /// Its part does not hold.
    Not,
    /// A test of one path.
    Test,
    /// An expression.
    Expr,
    /// All elements pass a condition.
    Every,
    /// An element passes a condition.
    AnyOf,
    /// No element passes a condition.
    None,
    /// The commands of a shell text pass tests.
    Shell,
}

/// A condition.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedCondition {
    /// The form of the condition.
    pub form: ConditionForm,
    /// The result.
    pub truth: TruthValue,
    /// Why it is undecided, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether it is evaluated: short-circuit evaluation does not stop before it.
    pub reached: bool,
    /// Its location in the rules.
    pub at: Option<Location>,
    /// The test, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<ConditionTest>,
    /// The expression, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expr: Option<String>,
    /// The values of the parts that decide the expression.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ExplainedValue>,
    /// The elements, if it is a condition on elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<ExplainedElements>,
    /// The commands, if it is a condition on shell commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<ExplainedShell>,
    /// The conditions in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ExplainedCondition>,
}

/// The elements that a condition is about.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedElements {
    /// The path or expression, as written.
    pub path: String,
    /// The number of elements. `None` if they cannot be read.
    pub count: Option<usize>,
    /// The element that decided the condition, or left it undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding: Option<ExplainedElement>,
    #[serde(skip)]
    pub(super) roots: Vec<Root>,
}

/// One element.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedElement {
    /// Its number, from 1.
    pub number: usize,
    /// The element, redacted, and truncated if long.
    pub value: Value,
    /// The result of the condition for it.
    pub truth: TruthValue,
    /// The tests and expressions that decided it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<ElementReason>,
}

/// A test or an expression that decided an element. It shows what the rules say and no value of the call: the element is shown, redacted.
#[derive(Clone, Debug, Serialize)]
pub struct ElementReason {
    /// The path or expression, as written.
    pub path: String,
    /// The operators of a test that have the result, as written, or the quantifier of a condition on further elements. Empty for an
    /// expression.
    pub operators: Vec<String>,
    /// The result.
    pub truth: TruthValue,
    /// The location in the rules.
    pub at: Option<Location>,
}

impl ElementReason {
    pub(super) fn new(leaf: &ExplainedCondition) -> Option<Self> {
        if let Some(shell) = &leaf.shell {
            let operators = vec![format!("shell: {}", shell.quantifier)];
            return Some(Self {
                path: shell.path.clone(),
                operators,
                truth: leaf.truth,
                at: leaf.at.clone(),
            });
        }
        let (path, operators) = match (&leaf.test, &leaf.expr, &leaf.elements) {
            (Some(test), ..) => {
                let decides =
                    |operator: &&TestOperator| operator.truth.is_none_or(|truth| truth == leaf.truth);
                let operators = test.operators.iter().filter(decides).map(TestOperator::as_written);
                (test.path.clone(), operators.collect())
            }
            (None, Some(expr), _) => (expr.clone(), Vec::new()),
            (None, None, Some(elements)) => {
                let quantifier = match leaf.form {
                    ConditionForm::Every => "every",
                    ConditionForm::AnyOf => "any_of",
                    _ => "none",
                };
                (elements.path.clone(), vec![quantifier.to_owned()])
            }
            (None, None, None) => return None,
        };
        Some(Self { path, operators, truth: leaf.truth, at: leaf.at.clone() })
    }

    /// Whether it is a test of the element itself, and not of a member.
    pub(super) fn is_about_element(&self) -> bool {
        let name = self.path.strip_prefix('$').filter(|_| !self.operators.is_empty());
        name.is_some_and(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
    }
}

/// A test of one path.
#[derive(Clone, Debug, Serialize)]
pub struct ConditionTest {
    /// The path or expression, as written.
    pub path: String,
    /// How the operators apply to several values: `any`, `every` or `none`.
    pub each: &'static str,
    /// The first values at the path, and the decisive one.
    pub found: Vec<FoundValue>,
    /// The number of values at the path.
    pub count: usize,
    /// Why the path does not apply to the value there, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfit: Option<String>,
    /// The operators applied to the values.
    pub operators: Vec<TestOperator>,
    /// What changes the meaning of the operators, as written: `as: email`, `ignore_case: true`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(skip)]
    pub(super) roots: Vec<Root>,
}

/// One value.
#[derive(Clone, Debug, Serialize)]
pub struct FoundValue {
    /// Its position among all values of the path, from 0: for a path to the elements of an array, that of the element.
    pub index: usize,
    /// The value, redacted, and truncated if long.
    pub value: Value,
    /// The combined result of the operators.
    pub truth: TruthValue,
}

/// One operator.
#[derive(Clone, Debug, Serialize)]
pub struct TestOperator {
    /// Its key, such as `gt`.
    pub key: &'static str,
    /// The operand; null if the operand's path has no value.
    pub operand: Value,
    /// The path or expression of the operand, if it is not a literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operand_path: Option<String>,
    /// The result for the values; `None` if there are no values.
    pub truth: Option<TruthValue>,
    /// The location of key and operand.
    pub at: Option<Location>,
    #[serde(skip)]
    pub(super) operand_roots: Vec<Root>,
}

impl TestOperator {
    /// The operator as written: a literal operand, or the path of the operand without its value.
    fn as_written(&self) -> String {
        match &self.operand_path {
            Some(path) => format!("{}: {path}", self.key),
            None => format!("{}: {}", self.key, self.operand),
        }
    }
}

impl ExplainedCondition {
    /// The tests and expressions that decide the result: without them it could differ.
    pub fn decisive_parts(&self) -> Vec<&ExplainedCondition> {
        let mut found = Vec::new();
        self.collect_decisive_parts(&mut found);
        found
    }

    fn collect_decisive_parts<'c>(&'c self, found: &mut Vec<&'c ExplainedCondition>) {
        if self.parts.is_empty() && !matches!(self.form, ConditionForm::All | ConditionForm::Any) {
            found.push(self);
            return;
        }
        // For these forms, one part with the same result decides by itself; otherwise all parts with that result do.
        let by_one = match (self.form, self.truth) {
            (ConditionForm::All, TruthValue::No) | (ConditionForm::Any, TruthValue::Yes) => true,
            (_, TruthValue::Yes | TruthValue::No) => false,
            (_, TruthValue::Absent | TruthValue::Undecided) => true,
        };
        let is_decisive =
            |part: &&ExplainedCondition| self.form == ConditionForm::Not || part.truth == self.truth;
        let parts = self.parts.iter().filter(is_decisive);
        let parts: Vec<&ExplainedCondition> = if by_one { parts.take(1).collect() } else { parts.collect() };
        for part in parts {
            part.collect_decisive_parts(found);
        }
    }

    /// Calls `visit` with the condition and all of its parts, recursively.
    pub(super) fn each_mut(&mut self, visit: &mut impl FnMut(&mut ExplainedCondition)) {
        visit(self);
        for part in &mut self.parts {
            part.each_mut(visit);
        }
    }
}
