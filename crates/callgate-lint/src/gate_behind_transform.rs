//! Lint: gate policies that never match, because a `transform` changes the tested argument first.

use crate::condition_source::TestSource;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use crate::scalars::{compare_scalars, is_literal};
use crate::subsumption::{covers, value_passes};
use callgate::call::Root;
use callgate::diagnostic::{Diagnostics, GATE_BEHIND_TRANSFORM};
use callgate::json::Value;
use callgate::source::{MappingEntry, YamlNode};

pub(super) static LINT: Lint = Lint { code: &GATE_BEHIND_TRANSFORM, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    if !checked.enforced_policies().any(LintContext::changes_input) {
        return;
    }
    for gate in checked
        .enforced_policies()
        .filter(|written| written.has_kind(&["deny", "halt", "approval", "require", "allow", "respond"]))
    {
        let required: Vec<&TestSource<'_>> = gate
            .required_tests()
            .filter(|test| {
                let is_argument = test.root() == Some(Root::Input) && test.text() != "$.input";
                test.positive && test.is_singular() && is_argument && !test.is_folded()
            })
            .collect();
        if required.is_empty() {
            continue;
        }
        let beside = checked.related_policies(gate);
        let transforms: Vec<&PolicySource<'_>> = beside
            .into_iter()
            .filter(|other| other.is_enforced() && LintContext::changes_input(other))
            .collect();
        let steps: Vec<(&PolicySource<'_>, &YamlNode)> =
            transforms.iter().flat_map(|transform| steps(transform).map(|step| (*transform, step))).collect();
        for test in required {
            let touching: Vec<&(&PolicySource<'_>, &YamlNode)> =
                steps.iter().filter(|(_, step)| may_change(step, test.text())).collect();
            // Not decided: several steps that change one value, and transforms that apply only to some of the calls.
            let [(transform, step)] = touching.as_slice() else { continue };
            if !covers(transform, gate) {
                continue;
            }
            let Some((change, why)) = defeating_change(step, test) else { continue };
            let message = format!("`{}` never matches: `{}` {why} first", gate.id(), transform.id());
            found.push(
                gate.diagnostic(&GATE_BEHIND_TRANSFORM, test.subject_node.span, message)
                    .with_label(change.key_span, format!("`{}` changes it here", transform.id()))
                    .with_help("`transform` runs before gate policies; test the transformed value, or remove the step"),
            );
        }
    }
}

fn steps<'a>(transform: &PolicySource<'a>) -> impl Iterator<Item = &'a YamlNode> + use<'a> {
    transform.kind.value.get("input").and_then(YamlNode::items).unwrap_or_default().iter()
}

/// Whether a step may change the value at a path.
fn may_change(step: &YamlNode, path: &str) -> bool {
    let Some(at) = step.get("path").and_then(YamlNode::as_str) else { return true };
    let below = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let renamed = step.get("rename").and_then(YamlNode::as_str).map(|name| {
        let parent = at.rsplit_once('.').map_or("", |(parent, _)| parent);
        format!("{parent}.{name}")
    });
    let plain = |path: &str| !path.contains(['*', '[']) && !path.contains("..");
    !plain(at)
        || below(path, at)
        || below(at, path)
        || renamed.is_some_and(|to| below(path, &to) || below(&to, path))
}

/// Returns the change of a step after which a test never holds, with a description.
fn defeating_change<'a>(step: &'a YamlNode, test: &TestSource<'_>) -> Option<(&'a MappingEntry, String)> {
    let at = step.get("path")?.as_str()?;
    let change = step.entries()?.iter().find(|entry| entry.key != "path")?;
    let (path, exact) = (test.text(), at == test.text());
    let wants_absence = test.exists() == Some(false);
    let gone = format!("removes `{path}`");
    let operand = &change.value;
    let defeated = match change.key.as_str() {
        "remove" | "rename" if path.starts_with(at) => {
            return (!wants_absence && !test.absence_counts).then_some((change, gone));
        }
        "default" if exact && wants_absence => {
            return Some((change, format!("sets `{path}`")));
        }
        "set" if exact => {
            let why = format!("sets `{path}` to `{}`", crate::scalars::display_value(&operand.to_json()));
            let fails = wants_absence || test.operators().any(|operator| always_fails(operand, operator));
            return fails.then_some((change, why));
        }
        "clamp" if exact => test.operators().any(|operator| out_of_bounds(operand, operator)),
        "lowercase" if exact => needs_letters(test, char::is_uppercase),
        "uppercase" if exact => needs_letters(test, char::is_lowercase),
        "trim" if exact => {
            test.operator("eq").and_then(|eq| eq.value.as_str()).is_some_and(|text| text.trim() != text)
        }
        _ => false,
    };
    let does = match change.key.as_str() {
        "clamp" => format!("clamps `{path}` to other bounds"),
        "trim" => format!("trims `{path}`"),
        key => format!("converts `{path}` to {}", key.replace("case", " case")),
    };
    defeated.then_some((change, does))
}

/// Whether a literal fails an operator for every call.
fn always_fails(value: &YamlNode, operator: &MappingEntry) -> bool {
    let comparable = matches!(operator.key.as_str(), "eq" | "in" | "gt" | "gte" | "lt" | "lte");
    let json = value.to_json();
    comparable
        && is_literal(&operator.value)
        && !matches!(json, Value::Object(_) | Value::Array(_) | Value::Null)
        && (operator.key == "in"
            || std::mem::discriminant(&json) == std::mem::discriminant(&operator.value.to_json()))
        && !value_passes(value, operator)
}

/// Whether a number within the bounds of a `clamp` never passes an operator.
fn out_of_bounds(clamp: &YamlNode, operator: &MappingEntry) -> bool {
    let against = |bound: &str| clamp.get(bound).and_then(|bound| compare_scalars(bound, &operator.value));
    let (min, max) = (against("min"), against("max"));
    match operator.key.as_str() {
        "gt" => max.is_some_and(std::cmp::Ordering::is_le),
        "gte" => max.is_some_and(std::cmp::Ordering::is_lt),
        "lt" => min.is_some_and(std::cmp::Ordering::is_ge),
        "lte" => min.is_some_and(std::cmp::Ordering::is_gt),
        "eq" => max.is_some_and(std::cmp::Ordering::is_lt) || min.is_some_and(std::cmp::Ordering::is_gt),
        _ => false,
    }
}

/// Whether a test needs letters that the value no longer has.
fn needs_letters(test: &TestSource<'_>, gone: fn(char) -> bool) -> bool {
    test.operators().any(|operator| {
        let texts = operator.value.items().unwrap_or(std::slice::from_ref(&operator.value));
        matches!(operator.key.as_str(), "eq" | "in" | "starts_with" | "ends_with" | "contains")
            && !texts.is_empty()
            && texts.iter().all(|text| text.as_str().is_some_and(|text| text.contains(gone)))
    })
}
