//! Lint: tests that need a value of another type than the tool's schema permits.

use crate::argument_lookup::{ArgumentLookup, PathLookup, permitted_types};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::scalars::{is_literal, quoted, replaceable_span};
use callgate::diagnostic::{Diagnostics, Fix, SourceMap, TEST_OF_WRONG_TYPE};
use callgate::json::{JsonType, Value};
use callgate::source::{MappingEntry, YamlNode};

pub(super) static LINT: Lint = Lint { code: &TEST_OF_WRONG_TYPE, needs: RequiredInput::Tools, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let arguments = ArgumentLookup::new(checked);
    for written in &checked.policies {
        for test in written.tests.iter().filter(|test| test.is_singular()) {
            let lookup = test.path().map(|path| arguments.find(written, path));
            let Some(PathLookup::Found(schemas)) = lookup else { continue };
            let permitted: Option<Vec<Vec<JsonType>>> = schemas.into_iter().map(permitted_types).collect();
            let Some(permitted) = permitted.map(|permitted| permitted.concat()) else { continue };
            for operator in test.operators().filter(|operator| is_literal(&operator.value)) {
                let needed = decidable_types(operator);
                if needed.is_empty() || needed.iter().any(|json_type| permitted.contains(json_type)) {
                    continue;
                }
                let message = format!(
                    "`{}` is {} in the tool's schema, but `{}` needs {}",
                    test.text(),
                    list_types(&permitted),
                    operator.key,
                    list_types(&needed)
                );
                let diagnostic = written
                    .diagnostic(&TEST_OF_WRONG_TYPE, operator.value.span, message)
                    .with_help("the test is undecided for every argument of another type; compare with a value of the tool's type")
                    .with_fix(conversion_fix(checked.sources, &operator.value, &permitted));
                found.push(diagnostic);
            }
        }
    }
}

pub(super) fn list_types(types: &[JsonType]) -> String {
    let mut words: Vec<&str> = types.iter().map(|json_type| json_type.with_article()).collect();
    words.sort_unstable();
    words.dedup();
    words.join(" or ")
}

/// Returns the types of values that an operator can decide. Returns an empty list if it decides all types.
pub(super) fn decidable_types(operator: &MappingEntry) -> Vec<JsonType> {
    let of = |node: &YamlNode| JsonType::from_value(&node.to_json());
    let operand = &operator.value;
    match operator.key.as_str() {
        "eq" | "ne" | "gt" | "gte" | "lt" | "lte" if of(operand) != JsonType::Null => vec![of(operand)],
        "in" | "not_in" => {
            let types: Vec<JsonType> = operand.items().unwrap_or_default().iter().map(of).collect();
            if types.contains(&JsonType::Null) { Vec::new() } else { types }
        }
        "starts_with" | "ends_with" | "matches" | "inside" | "host" | "domain" => vec![JsonType::String],
        "contains" | "contains_any" => vec![JsonType::String, JsonType::Array],
        "mentioned_in" => vec![JsonType::String, JsonType::Number],
        "length" => match operand.get("of").and_then(YamlNode::as_str) {
            Some("characters") => vec![JsonType::String],
            Some("items") => vec![JsonType::Array],
            Some("members") => vec![JsonType::Object],
            _ => vec![JsonType::String, JsonType::Array, JsonType::Object],
        },
        _ => Vec::new(),
    }
}

/// Returns a fix that writes the same literal in the tool's type. Returns `None` if the conversion is ambiguous.
fn conversion_fix(sources: &SourceMap, literal: &YamlNode, permitted: &[JsonType]) -> Option<Fix> {
    let (permitted, others) = permitted.split_first()?;
    if others.iter().any(|other| other != permitted) {
        return None;
    }
    let span = replaceable_span(sources, literal)?;
    let text = match (literal.as_str(), literal.as_number(), permitted) {
        (Some(text), _, JsonType::Number) => {
            callgate::json::from_str::<Value>(text).ok().filter(Value::is_number)?.to_string()
        }
        (Some(text @ ("true" | "false")), _, JsonType::Boolean) => text.to_owned(),
        (None, Some(number), JsonType::String) => quoted(&number.text()),
        _ => return None,
    };
    Some(Fix::replace(format!("write `{text}`"), span, text))
}
