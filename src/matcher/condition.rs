//! `where`: three-valued conditions over the call document, nested with `all`, `any` and `not`.

mod element_condition;
mod shell_command_test;
mod shell_condition;
mod shell_element;
mod shell_text;
mod shell_words_test;

pub(super) use element_condition::ElementCondition;
pub use element_condition::{ITEM, MAX_ELEMENTS};
pub(super) use shell_condition::ShellCondition;
pub use shell_condition::ShellQuantifier;

use super::condition_shape::{CONDITION_RECORD, EXPR_KEY, SHELL_KEY};
use super::field_test::{FieldTest, Quantifier};
use super::truth::Truth;
use super::value_source::ExpressionText;
use crate::call::{CallView, NamedResult};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, MISSING_KEY, Span};
use crate::rules_schema::{PolicyReader, head_span};
use crate::script::NamedBody;
use crate::source::YamlNode;

/// A compiled condition.
#[derive(Debug)]
pub struct Condition {
    /// The location in the rules.
    pub(super) span: Span,
    pub(super) form: ConditionNode,
}

/// The forms of a condition.
#[derive(Debug)]
pub(super) enum ConditionNode {
    /// All conditions hold.
    All(Vec<Condition>),
    /// At least one condition holds.
    Any(Vec<Condition>),
    /// The condition does not hold.
    Not(Box<Condition>),
    /// The value at a path passes its tests.
    Test(Box<FieldTest>),
    /// A Rhai expression returns `true`.
    Expr(Box<ExpressionText>),
    /// Elements pass a condition: all, one or none of them.
    Elements(Box<ElementCondition>),
    /// The commands of a shell text pass tests.
    Shell(Box<ShellCondition>),
}

const FORM_KEYS: [&str; 9] = ["path", "all", "any", "not", "expr", "every", "any_of", "none", SHELL_KEY];

impl Condition {
    /// Reads a list of conditions that must all hold, or a single condition. A string is an expression.
    pub fn read_all(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        match node.items() {
            Some(_) => Self::read_list(node, reader)
                .map(|all| Self { span: node.span, form: ConditionNode::All(all) }),
            None => Self::read(node, reader),
        }
    }

    fn read_list(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Vec<Self>> {
        // Read every item before failing, so that every problem is reported.
        let conditions: Vec<Option<Self>> =
            node.items()?.iter().map(|item| Self::read(item, reader)).collect();
        conditions.into_iter().collect()
    }

    pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        if node.as_str().is_some() {
            let expr = read_expr(node, reader)?;
            return Some(Self { span: node.span, form: ConditionNode::Expr(Box::new(expr)) });
        }
        let entries = node.entries()?;
        let mut forms = entries.iter().filter(|entry| FORM_KEYS.contains(&entry.key.as_str()));
        let Some(form) = forms.next() else {
            if !entries.is_empty() && !reader.names.elements().is_empty() {
                let test = FieldTest::read(node, reader)?;
                return Some(Self { span: node.span, form: ConditionNode::Test(Box::new(test)) });
            }
            if !FORM_KEYS.iter().any(|form| CONDITION_RECORD.has_misspelling_of(node, form)) {
                let (message, help) = match entries.first() {
                    Some(_) => ("this test has no `path`", "add `path:`, as in `path: $.input.amount`"),
                    None => (
                        "this condition is empty",
                        "write `path:` and a test such as `eq:`, or one of `all:`, `any:`, `not:`, `expr:`, `every:`, `any_of:`, `none:`, `shell:`",
                    ),
                };
                reader.report(Diagnostic::new(&MISSING_KEY, head_span(node), message).with_help(help));
            }
            return None;
        };
        if let Some(second) = forms.next() {
            if !CONDITION_RECORD.has_valid_type(&second.key, &second.value) {
                return None;
            }
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    second.key_span,
                    format!("this condition has both `{}` and `{}`", form.key, second.key),
                )
                .with_label(form.key_span, "first key")
                .with_help("write each as a separate list item; all items must hold"),
            );
            return None;
        }
        let is_test = match form.key.as_str() {
            EXPR_KEY => entries.len() > 1,
            key => key == "path",
        };
        if !is_test && entries.len() > 1 {
            let stray = entries.iter().find(|entry| entry.key != form.key)?;
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    stray.key_span,
                    format!("`{}` can't be used with `{}`", stray.key, form.key),
                )
                .with_help(match reader.names.elements().is_empty() {
                    true => "tests such as this one need a `path:` in the same condition",
                    false => "write each as an item of a list: `all: [{ … }, { … }]`",
                }),
            );
            return None;
        }
        let form = match form.key.as_str() {
            "all" => Self::read_list(&form.value, reader).map(ConditionNode::All),
            "any" => Self::read_list(&form.value, reader).map(ConditionNode::Any),
            "not" => {
                reader.is_negated = !reader.is_negated;
                let inner = Self::read(&form.value, reader);
                reader.is_negated = !reader.is_negated;
                inner.map(|inner| ConditionNode::Not(Box::new(inner)))
            }
            "every" => Self::read_elements(Quantifier::Every, &form.value, reader),
            "any_of" => Self::read_elements(Quantifier::Any, &form.value, reader),
            "none" => Self::read_elements(Quantifier::None, &form.value, reader),
            SHELL_KEY => {
                ShellCondition::read(&form.value, reader).map(|shell| ConditionNode::Shell(Box::new(shell)))
            }
            EXPR_KEY if !is_test => {
                read_expr(&form.value, reader).map(|expr| ConditionNode::Expr(Box::new(expr)))
            }
            _ => FieldTest::read(node, reader).map(|test| ConditionNode::Test(Box::new(test))),
        };
        Some(Self { span: node.span, form: form? })
    }

    fn read_elements(
        quantifier: Quantifier,
        node: &YamlNode,
        reader: &mut PolicyReader<'_>,
    ) -> Option<ConditionNode> {
        let elements = ElementCondition::read(quantifier, node, reader)?;
        Some(ConditionNode::Elements(Box::new(elements)))
    }

    /// Evaluates the condition for a call.
    pub fn eval(&self, view: &CallView<'_>) -> Truth {
        match &self.form {
            ConditionNode::All(conditions) => {
                Truth::all(conditions.iter().map(|condition| condition.eval(view)))
            }
            ConditionNode::Any(conditions) => {
                Truth::any(conditions.iter().map(|condition| condition.eval(view)))
            }
            ConditionNode::Not(condition) => !condition.eval(view),
            ConditionNode::Test(test) => test.eval(view),
            ConditionNode::Expr(expr) => eval_expr(expr, view),
            ConditionNode::Elements(elements) => elements.eval(view),
            ConditionNode::Shell(shell) => shell.eval(view),
        }
    }

    /// Whether it reads values in other ways than by tests of paths: by expressions, or conditions on elements and commands.
    pub(super) fn has_other_than_tests(&self) -> bool {
        match &self.form {
            ConditionNode::All(parts) | ConditionNode::Any(parts) => {
                parts.iter().any(Self::has_other_than_tests)
            }
            ConditionNode::Not(part) => part.has_other_than_tests(),
            ConditionNode::Test(_) => false,
            ConditionNode::Expr(_) | ConditionNode::Elements(_) | ConditionNode::Shell(_) => true,
        }
    }

    /// Whether the condition holds if this number of its required tests hold: all of them, and it has no other parts.
    pub fn requires_only_tests(&self, number: usize) -> bool {
        let parts = match &self.form {
            ConditionNode::All(conditions) => conditions.len(),
            _ => 1,
        };
        parts == number
    }

    /// Returns the tests that must all hold for the condition to hold.
    pub fn required_tests(&self) -> impl Iterator<Item = &FieldTest> {
        let conditions = match &self.form {
            ConditionNode::All(conditions) => conditions.as_slice(),
            _ => std::slice::from_ref(self),
        };
        conditions.iter().filter_map(|condition| match &condition.form {
            ConditionNode::Test(test) => Some(&**test),
            _ => None,
        })
    }
}

impl NamedBody for Condition {
    fn evaluate(&self, view: &CallView<'_>) -> NamedResult {
        match self.eval(view) {
            Truth::Yes => NamedResult::Value(true.into()),
            Truth::No => NamedResult::Value(false.into()),
            Truth::Absent => NamedResult::OpenCondition,
            Truth::Undecided(why) => NamedResult::Undecided(why),
        }
    }
}

/// Evaluates an expression for a call. A named condition keeps its truth; anything but a boolean is undecided.
pub(super) fn eval_expr(expr: &ExpressionText, view: &CallView<'_>) -> Truth {
    if let Some(named) = expr.expression.as_named().filter(|named| named.is_condition()) {
        return match named.evaluate(view) {
            NamedResult::Value(value) => Truth::from(value == true),
            NamedResult::Time(_) => Truth::Undecided(format!("`{}` is a time", named.name())),
            NamedResult::OpenCondition => Truth::Absent,
            NamedResult::Absent(why) | NamedResult::Undecided(why) => {
                Truth::Undecided(format!("`{}` is undecided: {why}", named.name()))
            }
        };
    }
    match expr.expression.boolean(view) {
        Ok(value) => value.into(),
        Err(error) => Truth::Undecided(format!("`expr` failed: {}", error.message)),
    }
}

fn read_expr(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<ExpressionText> {
    let example =
        "write an expression that returns `true` or `false`, as in `input.amount > 100 && tool != \"ping\"`";
    let expression = reader.read_expression(node, example)?;
    Some(ExpressionText { text: node.as_str()?.to_owned(), expression })
}
