//! Lint: restricting tests that a call bypasses by omitting the tested field.

use crate::condition_source::{EachMode, TestSource, member_path};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::call::Root;
use callgate::diagnostic::{Diagnostics, ESCAPE_BY_ABSENCE, Fix, Span};
use callgate::json::Value;
use callgate::path::PathStep;
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &ESCAPE_BY_ABSENCE, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in checked.policies.iter().filter(|written| written.stops_calls()) {
        let mut beside = None;
        for test in written.tests.iter().filter(|test| can_be_bypassed(written, test)) {
            let Some(operator) =
                test.operators().find(|operator| ["ne", "not_in"].contains(&operator.key.as_str()))
            else {
                continue;
            };
            let beside = beside.get_or_insert_with(|| policies_ensuring_presence(checked, written));
            if is_required_elsewhere(checked, written, test, beside) {
                continue;
            }
            let path = test.text();
            let message = format!(
                "a call without `{path}` bypasses this policy: `{}` is false for an absent value",
                operator.key
            );
            found.push(
                written
                    .diagnostic(&ESCAPE_BY_ABSENCE, operator.key_span, message)
                    .with_label(test.subject_node.span, "may be absent")
                    .with_help(format!(
                        "add `absent: match`, or deny calls without it: `path: {path}, exists: false`"
                    ))
                    .with_fix(absence_fix(checked, test)),
            );
        }
    }
}

/// Whether an absent value makes the test false, and with it perhaps the policy.
fn can_be_bypassed(written: &PolicySource<'_>, test: &TestSource<'_>) -> bool {
    let tests_absence = test.node.get("absent").is_some() || test.absence_counts || test.exists().is_some();
    // Under `not` an absent value makes the policy match. Next to a test with `exists` the author has considered absence.
    let thought_of =
        written.tests.iter().any(|other| other.exists().is_some() && other.text() == test.text());
    let inside = test.steps().is_some_and(|steps| !steps.is_empty());
    let by_client = matches!(test.root(), Some(Root::Input | Root::Context));
    test.positive && test.each == EachMode::Any && inside && by_client && !tests_absence && !thought_of
}

/// Whether another policy or the tool's schema ensures that the value is present.
fn is_required_elsewhere(
    checked: &LintContext<'_>,
    written: &PolicySource<'_>,
    test: &TestSource<'_>,
    beside: &[&PolicySource<'_>],
) -> bool {
    let Some([PathStep::Name(first), rest @ ..]) = test.steps() else { return false };
    let requires = |schema: &Value| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(first))) && rest.is_empty()
    };
    let by_policy = beside.iter().any(|other| {
        let denies_absence = other.has_kind(&["deny", "halt"])
            && !other.has_script()
            && other.tests.iter().any(|absent| {
                absent.positive && absent.exists() == Some(false) && absent.text() == test.text()
            });
        let schema = other.kind.value.get("schema").filter(|_| other.has_kind(&["validate"]));
        let validates = schema.is_some_and(|schema| match schema.as_str() {
            Some(_) => every_tool_requires(checked, written, requires),
            // A schema in a separate file is not read here.
            None => requires(&schema.to_json()) || schema.get("file").is_some(),
        });
        let arguments = other.kind.value.get("arguments").filter(|_| other.has_kind(&["validate"]));
        let has_type = arguments.is_some_and(|types| types.get(first).is_some()) && rest.is_empty();
        let validates = validates || has_type;
        denies_absence || requires_value(other, test) || (validates && test.root() == Some(Root::Input))
    });
    by_policy || has_default(beside, test)
}

/// Whether a `require` policy denies calls without the value.
fn requires_value(other: &PolicySource<'_>, test: &TestSource<'_>) -> bool {
    let values = other.kind.value.get("values").filter(|_| other.has_kind(&["require"]));
    let mut texts = values.and_then(YamlNode::items).unwrap_or_default().iter().filter_map(YamlNode::as_str);
    texts.any(|text| text == test.text() || member_path(text).as_deref() == Some(test.text()))
}

fn every_tool_requires(
    checked: &LintContext<'_>,
    written: &PolicySource<'_>,
    requires: impl Fn(&Value) -> bool,
) -> bool {
    let tools = checked.tools_for(written);
    // Without known tools, assume that their schemas require it.
    tools.is_empty() || tools.iter().all(|tool| tool.input_schema.as_ref().is_some_and(&requires))
}

/// Whether a `transform` sets an absent value.
fn has_default(beside: &[&PolicySource<'_>], test: &TestSource<'_>) -> bool {
    let transforms = beside.iter().filter(|other| LintContext::changes_input(other));
    let mut steps = transforms
        .flat_map(|other| other.kind.value.get("input").and_then(YamlNode::items).unwrap_or_default());
    steps.any(|step| {
        let path = step.get("path").and_then(YamlNode::as_str);
        path == Some(test.text()) && ["default", "set", "template"].iter().any(|key| step.get(key).is_some())
    })
}

/// Returns the policies for the same calls that can ensure that a value is present.
fn policies_ensuring_presence<'s, 'a>(
    checked: &'s LintContext<'a>,
    written: &PolicySource<'a>,
) -> Vec<&'s PolicySource<'a>> {
    let tests_absence = |other: &PolicySource<'_>| {
        other.has_kind(&["deny", "halt"])
            && !other.has_script()
            && other.tests.iter().any(|test| test.exists() == Some(false))
    };
    let mut beside = checked.related_policies(written);
    beside.retain(|other| {
        other.is_enforced()
            && (other.has_kind(&["validate", "require"])
                || tests_absence(other)
                || LintContext::changes_input(other))
    });
    beside
}

/// Returns a fix that adds `absent: match` after the last key of a test.
fn absence_fix(checked: &LintContext<'_>, test: &TestSource<'_>) -> Option<Fix> {
    let (first, last) = (test.node.entries()?.first()?, test.node.entries()?.last()?);
    let text = checked.text(test.node.span.source);
    // The text of an alias is elsewhere.
    let written = text.get(first.key_span.start()..first.key_span.end())?;
    if written.trim_matches(['"', '\'']) != first.key {
        return None;
    }
    // A span that ends at the end of a line may include the line break.
    let end = text.get(..last.value.span.end())?.trim_end().len();
    let flow = text.get(test.node.span.start()..)?.starts_with('{');
    let (at, addition) = if flow {
        (end, ", absent: match".to_owned())
    } else {
        let line = text.get(..first.key_span.start())?.rfind('\n').map_or(0, |at| at + 1);
        let column = text.get(line..first.key_span.start())?.chars().count();
        let rest = text.get(end..)?.lines().next().unwrap_or_default();
        // A comment after the last value stays on its line.
        if !(rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
            return None;
        }
        let rest = rest.trim_end();
        let line_break = if text.get(line..)?.contains("\r\n") { "\r\n" } else { "\n" };
        (end + rest.len(), format!("{line_break}{}absent: match", " ".repeat(column)))
    };
    Some(Fix::replace("add `absent: match`", Span::new(test.node.span.source, at, at), addition))
}
