//! Examination for `explain`: evaluates every part of a matcher for a call, without short-circuit evaluation, and returns the results
//! with their reasons as [`ExaminedMatcher`]. Decisions don't use it, because it costs more.

use super::Matcher;
use super::condition::{Condition, ConditionNode, ElementCondition, ShellCondition, eval_expr};
use super::condition_shape::EXISTS;
use super::examination_result::{
    ExaminedCommand, ExaminedCondition, ExaminedElement, ExaminedElements, ExaminedForm, ExaminedMatcher,
    ExaminedOperand, ExaminedOperator, ExaminedPattern, ExaminedShell, ExaminedTest, ExaminedValue,
    TestedValues,
};
use super::field_test::{FieldTest, Quantifier};
use super::operand::{Operand, PatternSet};
use super::operand_set::OperandSet;
use super::operator::Operator;
use super::truth::Truth;
use super::value_source::ValueSource;
use crate::call::{CallView, ElementMemo, ElementScope, NodeRef, method_name};
use crate::diagnostic::Span;
use crate::name_pattern::NamePattern;
use crate::script::ExpressionValue;

/// Number of values per path that a result holds, in addition to the one that decided.
const MAX_REPORTED_VALUES: usize = 16;

impl Matcher {
    /// Evaluates each part of the matcher for a call.
    pub fn examine<'a>(&'a self, view: &CallView<'a>) -> ExaminedMatcher<'a> {
        let [tools, servers] = &self.pattern_spans;
        let server = view.call.server.as_deref().unwrap_or("");
        ExaminedMatcher {
            is_for_call: self.is_for(&view.call.tool),
            tools: examine_patterns(&self.tools, tools, &view.call.tool),
            servers: examine_patterns(&self.servers, servers, server),
            condition: self.condition.as_ref().map(|condition| condition.examine(view)),
        }
    }
}

fn examine_patterns<'a>(patterns: &'a [NamePattern], spans: &[Span], name: &str) -> Vec<ExaminedPattern<'a>> {
    let spans = spans.iter().copied().map(Some).chain(std::iter::repeat(None));
    let examined = patterns.iter().zip(spans).map(|(pattern, span)| ExaminedPattern {
        text: method_name(pattern.text()).unwrap_or(pattern.text()),
        span,
        matches: pattern.matches(name),
    });
    examined.collect()
}

impl Condition {
    /// Evaluates the condition and each part of it for a call. The result's truth equals that of [`eval`](Self::eval).
    pub fn examine<'a>(&'a self, view: &CallView<'a>) -> ExaminedCondition<'a> {
        self.examine_part(view, true)
    }

    fn examine_part<'a>(&'a self, view: &CallView<'a>, reached: bool) -> ExaminedCondition<'a> {
        let (truth, form) = match &self.form {
            ConditionNode::All(conditions) => {
                let parts = examine_parts(conditions, view, reached, &Truth::No);
                (Truth::all(truths(&parts)), ExaminedForm::All(parts))
            }
            ConditionNode::Any(conditions) => {
                let parts = examine_parts(conditions, view, reached, &Truth::Yes);
                (Truth::any(truths(&parts)), ExaminedForm::Any(parts))
            }
            ConditionNode::Not(condition) => {
                let part = condition.examine_part(view, reached);
                (!part.truth.clone(), ExaminedForm::Not(Box::new(part)))
            }
            ConditionNode::Test(test) => (test.eval(view), ExaminedForm::Test(test.examine(view))),
            ConditionNode::Expr(expr) => (eval_expr(expr, view), ExaminedForm::Expr(expr)),
            ConditionNode::Elements(elements) => {
                (elements.eval(view), ExaminedForm::Elements(elements.examine(view)))
            }
            ConditionNode::Shell(shell) => (shell.eval(view), ExaminedForm::Shell(shell.examine(view))),
        };
        ExaminedCondition { span: self.span, truth, reached, form }
    }
}

/// Examines the parts of `all` or `any`. Parts after the first one with the truth `decides` are not `reached`.
fn examine_parts<'a>(
    conditions: &'a [Condition],
    view: &CallView<'a>,
    mut reached: bool,
    decides: &Truth,
) -> Vec<ExaminedCondition<'a>> {
    let mut parts = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let part = condition.examine_part(view, reached);
        reached &= part.truth != *decides;
        parts.push(part);
    }
    parts
}

fn truths<'p>(parts: &'p [ExaminedCondition<'_>]) -> impl Iterator<Item = Truth> + 'p {
    parts.iter().map(|part| part.truth.clone())
}

impl ShellCondition {
    /// Finds the commands, and evaluates the tests for each.
    fn examine<'a>(&'a self, view: &CallView<'a>) -> ExaminedShell<'a> {
        let script = self.script(view).unwrap_or_default();
        let commands = (1..).zip(&script.commands).map(|(number, command)| ExaminedCommand {
            text: command.describe(),
            truth: self.eval_command(number, command, view),
        });
        ExaminedShell {
            quantifier: self.quantifier,
            source: &self.source,
            source_span: self.source_span,
            commands: commands.collect(),
            doubts: self.doubts(&script),
        }
    }
}

impl ElementCondition {
    /// Finds the elements, and the first one that decided the condition or left it undecided.
    fn examine<'a>(&'a self, view: &CallView<'a>) -> ExaminedElements<'a> {
        let elements = self.source.elements(view);
        let memo = ElementMemo::default();
        let found = elements.as_deref().unwrap_or_default();
        let examined = (1..).zip(found).map(|(number, element)| {
            let truth = self.eval_element(number, element.node(), &memo, view);
            ExaminedElement { number, value: element.clone(), truth }
        });
        let (mut first_decisive, mut first_open) = (None, None);
        for element in examined {
            if self.is_decisive(&element.truth) {
                first_decisive = Some(element);
                break;
            }
            if element.truth.is_undetermined() && first_open.is_none() {
                first_open = Some(element);
            }
        }
        ExaminedElements {
            quantifier: self.quantifier,
            source: &self.source,
            source_span: self.source_span,
            count: elements.as_ref().ok().map(Vec::len),
            deciding: first_decisive.or(first_open),
            condition: &self.condition,
            view: *view,
        }
    }
}

impl ExaminedElements<'_> {
    /// Evaluates each part of the condition for the deciding element. Returns `None` if there is no such element.
    pub fn with_deciding<T>(&self, use_condition: impl FnOnce(&ExaminedCondition<'_>) -> T) -> Option<T> {
        let element = self.deciding.as_ref()?.value.node();
        let memo = ElementMemo::default();
        let scope = ElementScope { element, memo: &memo, word: None, outer: self.view.elements };
        let view = CallView { elements: Some(&scope), ..self.view };
        Some(use_condition(&self.condition.examine(&view)))
    }
}

impl FieldTest {
    /// Finds the values at the test's path and evaluates each operator for them.
    fn examine<'a>(&'a self, view: &CallView<'a>) -> ExaminedTest<'a> {
        let nodes = self.subject.values(view);
        let found = nodes.as_ref().map(|nodes| nodes.as_slice()).unwrap_or_default();
        let exists = self.exists.map(|wanted| ExaminedOperator {
            key: EXISTS.name,
            span: self.spans.exists.unwrap_or(self.spans.path),
            operand: ExaminedOperand::Bool(wanted),
            operand_source: None,
            truth: nodes.as_ref().ok().map(|nodes| Truth::from(wanted != nodes.is_empty())),
        });
        let operators = self.operators.iter().zip(&self.spans.operators).map(|(operator, (key, span))| {
            let (operand, source) = operator.examined_operand(view);
            let answers = || found.iter().map(|value| self.eval_operator(operator, value.node(), view));
            ExaminedOperator {
                key,
                span: *span,
                operand,
                operand_source: source,
                truth: (!found.is_empty()).then(|| self.each.combine(answers())),
            }
        });
        ExaminedTest {
            subject: &self.subject,
            path_span: self.spans.path,
            each: self.each,
            operators: exists.into_iter().chain(operators).collect(),
            options: &self.spans.options,
            values: match &nodes {
                Err(Truth::Undecided(why)) => TestedValues::TypeMismatch(why.clone()),
                Err(_) => TestedValues::Absent,
                Ok(nodes) if nodes.is_empty() => TestedValues::Absent,
                Ok(nodes) => {
                    TestedValues::Values { first: self.reported_values(nodes, view), count: nodes.len() }
                }
            },
        }
    }

    fn reported_values<'a>(
        &'a self,
        values: &[ExpressionValue<'a>],
        view: &CallView<'a>,
    ) -> Vec<ExaminedValue<'a>> {
        let decides = if self.each == Quantifier::Every { Truth::No } else { Truth::Yes };
        let (mut reported, mut decided) = (Vec::new(), false);
        for (index, value) in values.iter().enumerate() {
            let node = value.node();
            let truth = self.eval_node(node, view);
            let is_first = reported.len() < MAX_REPORTED_VALUES;
            let deciding = !decided && truth == decides;
            decided |= deciding;
            if is_first || deciding {
                let answers = self.operators.iter().map(|operator| self.eval_operator(operator, node, view));
                let operator_results = answers.collect();
                reported.push(ExaminedValue { index, value: value.clone(), truth, operator_results });
            }
        }
        reported
    }
}

impl Operator {
    /// Returns the operand, and where it is read from.
    fn examined_operand<'a>(&'a self, view: &CallView<'a>) -> (ExaminedOperand<'a>, Option<&'a ValueSource>) {
        match self {
            Self::Compare(_, operand) | Self::Contains(operand) => match operand {
                Operand::Literal(value) => {
                    (ExaminedOperand::Single(ExpressionValue::Borrowed(NodeRef::Json(value))), None)
                }
                Operand::Source(source) => (single_operand(source, view), Some(source)),
            },
            Self::In { set: OperandSet::Literals(values), .. }
            | Self::ContainsAny(OperandSet::Literals(values)) => (ExaminedOperand::Literals(values), None),
            Self::In { set: OperandSet::Source { source, .. }, .. }
            | Self::ContainsAny(OperandSet::Source { source, .. }) => {
                (set_operand(source, view), Some(source))
            }
            Self::StartsWith(texts) | Self::EndsWith(texts) => pattern_operand(texts, view),
            Self::Matches(operands) => match &*operands.regexes {
                [regex] => (ExaminedOperand::Regex(regex.as_str()), None),
                _ => (ExaminedOperand::Strings(&operands.texts), None),
            },
            Self::Type(words) => (ExaminedOperand::Strings(words), None),
            Self::Length(bounds) => {
                let bounds = bounds.bounds.iter().map(|(comparison, bound)| (comparison.name(), *bound));
                (ExaminedOperand::Bounds(bounds.collect()), None)
            }
            Self::Inside(operands) => pattern_operand(&operands.directories, view),
            Self::Host(patterns) => pattern_operand(patterns, view),
            Self::Domain(patterns) => pattern_operand(patterns, view),
            Self::MentionedIn(mention) => match mention.sources.as_slice() {
                [source] => (set_operand(source, view), Some(source)),
                sources => {
                    let values = sources.iter().map(|source| source.values(view));
                    let values: Result<Vec<_>, _> = values.collect();
                    let operand = values.map_or_else(ExaminedOperand::Undetermined, |values| {
                        ExaminedOperand::Several(values.into_iter().flatten().collect())
                    });
                    (operand, sources.first())
                }
            },
            Self::Detects(detection) => (ExaminedOperand::Strings(&detection.names), None),
            Self::Time(time) => {
                let (_, operand) = &**time;
                (ExaminedOperand::Single(ExpressionValue::Borrowed(NodeRef::Json(operand))), None)
            }
            Self::Folded(comparison) => pattern_operand(&comparison.operands, view),
        }
    }
}

fn pattern_operand<'a, P>(
    set: &'a PatternSet<P>,
    view: &CallView<'a>,
) -> (ExaminedOperand<'a>, Option<&'a ValueSource>) {
    match set {
        PatternSet::Literals(_, texts) => (ExaminedOperand::Strings(texts), None),
        PatternSet::Source(source) => (set_operand(source, view), Some(source)),
    }
}

fn single_operand<'a>(source: &'a ValueSource, view: &CallView<'a>) -> ExaminedOperand<'a> {
    match source.values(view) {
        Ok(values) => match values.into_iter().next() {
            Some(value) => ExaminedOperand::Single(value),
            None => ExaminedOperand::Undetermined(Truth::Absent),
        },
        Err(open) => ExaminedOperand::Undetermined(open),
    }
}

fn set_operand<'a>(source: &'a ValueSource, view: &CallView<'a>) -> ExaminedOperand<'a> {
    match source.values(view) {
        Ok(values) if !source.is_singular() && !values.is_empty() => ExaminedOperand::Several(values),
        _ => single_operand(source, view),
    }
}
