//! The named values that a policy used for a call: evaluated conditions → redacted [`ExplainedLet`]s.

use std::collections::{BTreeSet, VecDeque};

use serde::Serialize;

use super::explained_value::{ExplainedValue, explain_parts};
use super::explanation_redaction::ExplanationRedactor;
use crate::call::{CallView, NamedResult, NodeRef, Root};
use crate::diagnostic::{Location, SourceMap};
use crate::json::Value;
use crate::matcher::{ExaminedCondition, ExaminedForm, ValueSource};
use crate::script::{DefinitionName, Expression, NamedValue, Names};

/// The maximum number of named values that are listed for a policy.
const MAX_LETS: usize = 32;

/// Whether a named value has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LetState {
    /// It has a value.
    Value,
    /// Something that it reads is missing.
    Absent,
    /// A value that it tests is absent, which counts as matching in restricting policies.
    Open,
    /// It cannot be evaluated.
    Undecided,
}

/// A named value that the conditions of a policy used.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ExplainedLet {
    /// Its name.
    pub name: String,
    /// Its definition, on one line.
    pub text: String,
    /// The location of its definition.
    pub at: Option<Location>,
    /// Whether it has a value.
    pub state: LetState,
    /// The value, redacted, and truncated if long; null if it has none.
    pub value: Value,
    /// Why it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The values of the parts that decide it, if it is true or false.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ExplainedValue>,
    #[serde(skip)]
    pub(super) roots: Vec<Root>,
}

/// Explains named values for a call.
pub(super) struct LetExplainer<'t> {
    pub(super) names: &'t Names,
    pub(super) redactor: &'t ExplanationRedactor<'t>,
    /// The rules files, if known.
    pub(super) sources: Option<&'t SourceMap>,
}

impl LetExplainer<'_> {
    /// Explains the named values that the evaluated parts of a condition and these sources use, each before those that it uses itself.
    pub(super) fn explain(
        &self,
        condition: Option<&ExaminedCondition<'_>>,
        sources: &[ValueSource],
        view: &CallView<'_>,
    ) -> Vec<ExplainedLet> {
        let mut used = UsedLets::default();
        if let Some(condition) = condition {
            condition.visit(&mut |part| {
                if part.reached {
                    used.add_part(part);
                }
            });
        }
        sources.iter().for_each(|source| used.add_source(source));
        let mut explained = Vec::new();
        while let Some(name) = used.waiting.pop_front().filter(|_| explained.len() < MAX_LETS) {
            let Some(named) = self.names.find_let(&name).flatten() else { continue };
            named.definitions().iter().for_each(|name| used.add(name));
            explained.push(self.explain_one(named, view));
        }
        explained
    }

    fn explain_one(&self, named: &NamedValue, view: &CallView<'_>) -> ExplainedLet {
        let roots: Vec<Root> = named.roots_read().iter().copied().collect();
        let evaluate = |view: &CallView<'_>| match named.evaluate(view) {
            NamedResult::Value(value) => Some(Value::clone(&value)),
            _ => None,
        };
        let (state, value, why) = match named.evaluate(view) {
            NamedResult::Value(value) => {
                (LetState::Value, self.redactor.computed_value(&roots, NodeRef::Json(&value), evaluate), None)
            }
            NamedResult::Time(time) => {
                let text = time.with_text();
                (LetState::Value, self.redactor.computed_value(&roots, NodeRef::Time(&text), evaluate), None)
            }
            NamedResult::OpenCondition => {
                (LetState::Open, Value::Null, Some("a value that it tests is absent".to_owned()))
            }
            NamedResult::Absent(why) => (LetState::Absent, Value::Null, Some(why)),
            NamedResult::Undecided(why) => (LetState::Undecided, Value::Null, Some(why)),
        };
        let (text, span) =
            named.source().map_or((String::new(), None), |(text, span)| (text.to_owned(), Some(span)));
        let is_expression = value.is_boolean() && !named.is_condition();
        let expression = is_expression.then(|| Expression::compile_with(&text, self.names).ok()).flatten();
        let values = expression.map(|expression| explain_parts(&expression, &text, self.redactor));
        ExplainedLet {
            name: named.name().to_owned(),
            values: values.unwrap_or_default(),
            text,
            at: span.and_then(|span| self.sources?.locate(span)),
            state,
            value,
            why: why.map(|why| self.redactor.text(&why)),
            roots,
        }
    }
}

/// The named values that were found, in the order of their use.
#[derive(Default)]
struct UsedLets {
    known: BTreeSet<String>,
    waiting: VecDeque<String>,
}

impl UsedLets {
    fn add(&mut self, name: &DefinitionName) {
        if let DefinitionName::Let(name) = name
            && self.known.insert(name.clone())
        {
            self.waiting.push_back(name.clone());
        }
    }

    fn add_expression(&mut self, expression: &Expression) {
        expression.definitions().iter().for_each(|name| self.add(name));
    }

    fn add_source(&mut self, source: &ValueSource) {
        if let ValueSource::Expression(expression) = source {
            self.add_expression(&expression.expression);
        }
    }

    fn add_part(&mut self, part: &ExaminedCondition<'_>) {
        match &part.form {
            ExaminedForm::Expr(expr) => self.add_expression(&expr.expression),
            ExaminedForm::Test(test) => {
                self.add_source(test.subject);
                test.operators.iter().filter_map(|operator| operator.operand_source).for_each(|source| {
                    self.add_source(source);
                });
            }
            ExaminedForm::Shell(shell) => self.add_source(shell.source),
            _ => {}
        }
    }
}
