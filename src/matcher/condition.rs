//! `where`: three-valued conditions over the call document, nested with `all`, `any` and `not`.

use super::condition_shape::CONDITION_RECORD;
use super::field_test::FieldTest;
use super::truth::Truth;
use crate::call::CallView;
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_SCRIPT, MISSING_KEY, Span};
use crate::rules_schema::{PolicyReader, ScriptProblem, head_span};
use crate::script::Predicate;
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
    Expr(Box<Expr>),
}

/// A compiled expression with its source.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) text: String,
    pub(super) predicate: Predicate,
}

const FORM_KEYS: [&str; 5] = ["path", "all", "any", "not", "expr"];

impl Condition {
    /// Reads a list of conditions that must all hold, or a single condition.
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

    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let entries = node.entries()?;
        let mut forms = entries.iter().filter(|entry| FORM_KEYS.contains(&entry.key.as_str()));
        let Some(form) = forms.next() else {
            if !FORM_KEYS.iter().any(|form| CONDITION_RECORD.has_misspelling_of(node, form)) {
                let (message, help) = match entries.first() {
                    Some(_) => ("this test has no `path`", "add `path:`, as in `path: $.input.amount`"),
                    None => (
                        "this condition is empty",
                        "write `path:` and a test such as `eq:`, or one of `all:`, `any:`, `not:`, `expr:`",
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
        if form.key != "path" && entries.len() > 1 {
            let stray = entries.iter().find(|entry| entry.key != form.key)?;
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    stray.key_span,
                    format!("`{}` can't be used with `{}`", stray.key, form.key),
                )
                .with_help("tests such as this one need a `path:` in the same condition"),
            );
            return None;
        }
        let form = match form.key.as_str() {
            "all" => Self::read_list(&form.value, reader).map(ConditionNode::All),
            "any" => Self::read_list(&form.value, reader).map(ConditionNode::Any),
            "not" => Self::read(&form.value, reader).map(|inner| ConditionNode::Not(Box::new(inner))),
            "expr" => read_expr(&form.value, reader).map(|expr| ConditionNode::Expr(Box::new(expr))),
            _ => FieldTest::read(node, reader).map(|test| ConditionNode::Test(Box::new(test))),
        };
        Some(Self { span: node.span, form: form? })
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
            ConditionNode::Expr(expr) => expr.eval(view),
        }
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

impl Expr {
    /// Evaluates the expression for a call. An error is undecided.
    pub(super) fn eval(&self, view: &CallView<'_>) -> Truth {
        match self.predicate.eval(view) {
            Ok(value) => value.into(),
            Err(error) => Truth::Undecided(format!("`expr` failed: {}", error.message)),
        }
    }
}

fn read_expr(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Expr> {
    let text = node.as_str()?;
    match Predicate::compile(text) {
        Ok(predicate) => {
            reader.arguments.merge(&predicate.argument_names());
            let is_valid = reader.check_reads(node, predicate.roots_read(), predicate.context_reads());
            is_valid.then(|| Expr { text: text.to_owned(), predicate })
        }
        Err(error) => {
            let example = "write an expression that returns `true` or `false`, as in `input.amount > 100 && tool != \"ping\"`";
            let ScriptProblem { range, message, help } =
                ScriptProblem::from_error(text, error, "expression", example);
            reader.report_in(&INVALID_SCRIPT, node, range, message, Some(help));
            None
        }
    }
}
