//! Explains an evaluated condition: [`ExaminedCondition`] → [`ExplainedCondition`], redacted and with locations.

use super::explained_shell::explain_shell;
use super::{
    ConditionForm, ConditionTest, ElementReason, ExplainedCondition, ExplainedElement, ExplainedElements,
    FoundValue, TestOperator, TruthValue,
};
use crate::diagnostic::{Location, SourceMap, Span};
use crate::explain::explained_value;
use crate::explain::explanation_redaction::{ExplanationRedactor, truncate_value};
use crate::matcher::{
    ExaminedCondition, ExaminedElements, ExaminedForm, ExaminedOperand, ExaminedOperator, ExaminedTest,
    Quantifier, TestedValues, Truth, ValueSource,
};

fn elements_form(quantifier: Quantifier) -> ConditionForm {
    match quantifier {
        Quantifier::Every => ConditionForm::Every,
        Quantifier::Any => ConditionForm::AnyOf,
        Quantifier::None => ConditionForm::None,
    }
}

/// The converter of examined conditions to redacted ones with locations.
pub(in crate::explain) struct ConditionExplainer<'t> {
    pub(in crate::explain) redactor: &'t ExplanationRedactor<'t>,
    /// The rules files, if known.
    pub(in crate::explain) sources: Option<&'t SourceMap>,
}

impl ConditionExplainer<'_> {
    pub(in crate::explain) fn locate(&self, span: Span) -> Option<Location> {
        self.sources?.locate(span)
    }

    pub(in crate::explain) fn condition(&self, examined: &ExaminedCondition<'_>) -> ExplainedCondition {
        let (form, test, expr) = match &examined.form {
            ExaminedForm::All(_) => (ConditionForm::All, None, None),
            ExaminedForm::Any(_) => (ConditionForm::Any, None, None),
            ExaminedForm::Not(_) => (ConditionForm::Not, None, None),
            ExaminedForm::Test(test) => (ConditionForm::Test, Some(self.explain_test(test)), None),
            ExaminedForm::Expr(expr) => (ConditionForm::Expr, None, Some(expr.text.clone())),
            ExaminedForm::Elements(elements) => (elements_form(elements.quantifier), None, None),
            ExaminedForm::Shell(_) => (ConditionForm::Shell, None, None),
        };
        let shell = match &examined.form {
            ExaminedForm::Shell(shell) => Some(explain_shell(self.redactor, shell)),
            _ => None,
        };
        let elements = match &examined.form {
            ExaminedForm::Elements(elements) => Some(self.explain_elements(elements)),
            _ => None,
        };
        ExplainedCondition {
            form,
            truth: TruthValue::from(&examined.truth),
            why: match &examined.truth {
                Truth::Undecided(why) => Some(self.redactor.text(why)),
                _ => None,
            },
            reached: examined.reached,
            at: self.locate(examined.span),
            test,
            expr,
            values: match (&examined.form, &examined.truth) {
                (ExaminedForm::Expr(expr), Truth::Yes | Truth::No) => {
                    explained_value::explain_parts(&expr.expression, &expr.text, self.redactor)
                }
                _ => Vec::new(),
            },
            elements,
            shell,
            parts: examined.parts().iter().map(|part| self.condition(part)).collect(),
        }
    }

    fn explain_elements(&self, examined: &ExaminedElements<'_>) -> ExplainedElements {
        let because = examined.with_deciding(|condition| {
            let explained = self.condition(condition);
            explained.decisive_parts().into_iter().filter_map(ElementReason::new).collect()
        });
        let deciding = examined.deciding.as_ref().map(|element| ExplainedElement {
            number: element.number,
            value: self.redactor.source_value(examined.source, &element.value),
            truth: TruthValue::from(&element.truth),
            because: because.unwrap_or_default(),
        });
        ExplainedElements {
            path: examined.source.text().to_owned(),
            count: examined.count,
            deciding,
            roots: examined.source.roots(),
        }
    }

    fn explain_test(&self, test: &ExaminedTest<'_>) -> ConditionTest {
        let (found, count, misfit) = match &test.values {
            TestedValues::Absent => (Vec::new(), 0, None),
            TestedValues::TypeMismatch(why) => (Vec::new(), 0, Some(self.redactor.text(why))),
            TestedValues::Values { first, count } => {
                let found = first.iter().map(|value| FoundValue {
                    index: value.index,
                    value: self.redactor.source_value(test.subject, &value.value),
                    truth: TruthValue::from(&value.truth),
                });
                (found.collect(), *count, None)
            }
        };
        ConditionTest {
            path: test.subject.text().to_owned(),
            each: Quantifier::name(test.each),
            found,
            count,
            misfit,
            operators: test.operators.iter().map(|operator| self.explain_operator(operator)).collect(),
            options: test.options.to_vec(),
            roots: test.subject.roots(),
        }
    }

    fn explain_operator(&self, operator: &ExaminedOperator<'_>) -> TestOperator {
        let source = operator.operand_source;
        let operand = match (source, &operator.operand) {
            (Some(source), ExaminedOperand::Single(value)) => self.redactor.source_value(source, value),
            (Some(source), ExaminedOperand::Several(values)) => {
                let values = values.iter().map(|value| self.redactor.source_value(source, value));
                truncate_value(values.collect())
            }
            (_, compared) => compared.to_value().map(truncate_value).unwrap_or_default(),
        };
        TestOperator {
            key: operator.key,
            operand,
            operand_path: source.map(|source| source.text().to_owned()),
            truth: operator.truth.as_ref().map(TruthValue::from),
            at: self.locate(operator.span),
            operand_roots: source.map(ValueSource::roots).unwrap_or_default(),
        }
    }
}
