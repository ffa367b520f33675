//! The parts that decide an expression, for explanations: operands of comparisons and arguments of calls, each with its value.

use super::expression::Expression;
use super::expression_value::ExpressionError;
use super::program::{Code, CodeNode};
use super::type_problem::code_of;
use crate::call::CallView;
use crate::json::Value;

/// The most parts of one expression.
const MAX_PARTS: usize = 4;

/// A part of an expression.
#[derive(Debug)]
pub struct ExpressionPart<'e> {
    expression: &'e Expression,
    node: &'e CodeNode,
    /// The part as it is written.
    pub text: String,
}

impl Expression {
    /// The operands of its comparisons and the arguments of its calls. Literals and named values alone are left out, and what is too long to
    /// show.
    pub fn parts(&self, text: &str) -> Vec<ExpressionPart<'_>> {
        let mut nodes = Vec::new();
        collect(self.body(), &mut nodes);
        let mut parts: Vec<ExpressionPart<'_>> = Vec::new();
        for node in nodes {
            let is_known = |code: &str| code == text.trim() || parts.iter().any(|part| part.text == code);
            if let Some(code) = code_of(node, text).filter(|code| !is_known(code) && parts.len() < MAX_PARTS)
            {
                parts.push(ExpressionPart { expression: self, node, text: code });
            }
        }
        parts
    }
}

impl ExpressionPart<'_> {
    /// Evaluates the part for a call.
    ///
    /// # Errors
    /// As [`Expression::value`].
    pub fn value(&self, view: &CallView<'_>) -> Result<Value, ExpressionError> {
        self.expression.part_value(self.node, view)
    }
}

/// Collects the parts of a condition that have a value of their own.
fn collect<'e>(node: &'e CodeNode, found: &mut Vec<&'e CodeNode>) {
    match &node.code {
        Code::And(nodes) | Code::Or(nodes) | Code::Coalesce(nodes) => {
            nodes.iter().for_each(|node| collect(node, found));
        }
        Code::Not(node) => collect(node, found),
        Code::Binary(_, _, operands) => add(&**operands, found),
        Code::Function(_, _, arguments) | Code::CallShared(_, _, arguments) => add(arguments, found),
        Code::InRange(value, _)
        | Code::InData(value, _)
        | Code::Exists(value, _)
        | Code::Matches(value, _)
        | Code::Detects(value, _) => add([&**value], found),
        Code::Mentioned(operands, _) => add(operands.first(), found),
        Code::Closure(call) => add([&call.list], found),
        _ => {}
    }
}

fn add<'e>(nodes: impl IntoIterator<Item = &'e CodeNode>, found: &mut Vec<&'e CodeNode>) {
    let is_shown = |node: &&CodeNode| {
        !matches!(
            node.code,
            Code::Null
                | Code::Boolean(_)
                | Code::Number(_)
                | Code::Literal(_)
                | Code::String(_)
                | Code::Array(_)
                | Code::Object(_)
                | Code::Named(_)
        )
    };
    found.extend(nodes.into_iter().filter(is_shown));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{SessionState, ToolCall};
    use crate::json::json;

    #[test]
    fn operands_and_arguments_have_values() {
        let call = ToolCall::new("c1", "t", json!({ "a": 2, "b": [1, 2], "s": "x" }));
        let session = SessionState::default();
        let view = CallView::new(&call, &session);
        for (text, expected) in [
            ("input.a * 2 > len(input.b)", vec![("input.a * 2", json!(4)), ("len(input.b)", json!(2))]),
            ("input.a == 2 && !(input.s in [\"y\"])", vec![("input.a", json!(2)), ("input.s", json!("x"))]),
            ("starts_with(input.s, \"x\")", vec![("input.s", json!("x"))]),
            ("input.b.some(|x| x > 1)", vec![("input.b", json!([1, 2]))]),
            ("(input.a + 1) * 2 - (3 - input.a) == 5", vec![("(input.a + 1) * 2 - (3 - input.a)", json!(5))]),
            ("input.a", vec![]),
            ("input.missing == 1", vec![]),
        ] {
            let expression = Expression::compile(text).unwrap();
            let parts = expression.parts(text);
            let values = parts.iter().filter_map(|part| Some((part.text.as_str(), part.value(&view).ok()?)));
            assert_eq!(values.collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
