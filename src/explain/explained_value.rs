//! The values of the parts of an expression: expression + call → redacted [`ExplainedValue`]s.

use serde::Serialize;

use super::explanation_redaction::ExplanationRedactor;
use crate::call::{NodeRef, Root};
use crate::json::Value;
use crate::script::Expression;

/// A part of an expression: an operand of a comparison, or an argument of a call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ExplainedValue {
    /// The part, as written.
    pub text: String,
    /// Its value, redacted, and truncated if long.
    pub value: Value,
    #[serde(skip)]
    pub(super) roots: Vec<Root>,
}

/// The values of the parts of an expression that have one. Of an expression that reads elements there are none: which element it is, is not
/// known here.
pub(super) fn explain_parts(
    expression: &Expression,
    text: &str,
    redactor: &ExplanationRedactor<'_>,
) -> Vec<ExplainedValue> {
    let roots: Vec<Root> = expression.roots_read().into_iter().collect();
    if roots.iter().any(|root| matches!(root, Root::Element(_))) {
        return Vec::new();
    }
    let parts = expression.parts(text);
    let explained = parts.iter().filter_map(|part| {
        let value = part.value(&redactor.view()).ok()?;
        let value = redactor.computed_value(&roots, NodeRef::Json(&value), |view| part.value(view).ok());
        Some(ExplainedValue { text: part.text.clone(), value, roots: roots.clone() })
    });
    explained.collect()
}
