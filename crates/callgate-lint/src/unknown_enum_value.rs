//! Lint: literals that the tool's schema does not permit.

use crate::argument_lookup::{ArgumentLookup, PathLookup, permitted_values};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::scalars::{display_value, is_literal, replaceable_span, replacement_source};
use callgate::diagnostic::{Diagnostics, Fix, UNKNOWN_ENUM_VALUE, closest_match};
use callgate::json::Value;
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &UNKNOWN_ENUM_VALUE, needs: RequiredInput::Tools, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let arguments = ArgumentLookup::new(checked);
    for written in &checked.policies {
        for test in written.tests.iter().filter(|test| test.is_singular() && !test.is_folded()) {
            let lookup = test.path().map(|path| arguments.find(written, path));
            let Some(PathLookup::Found(schemas)) = lookup else { continue };
            let permitted: Option<Vec<Vec<&Value>>> = schemas.into_iter().map(permitted_values).collect();
            let Some(permitted) = permitted.map(|permitted| permitted.concat()) else { continue };
            for literal in literals(test.node) {
                let value = literal.to_json();
                if value.is_null() || permitted.iter().any(|permitted| **permitted == value) {
                    continue;
                }
                let texts = || permitted.iter().filter_map(|value| value.as_str());
                let same_letters = literal.as_str().and_then(|text| {
                    let mut same = texts().filter(|permitted| permitted.eq_ignore_ascii_case(text));
                    same.next().filter(|_| same.next().is_none())
                });
                let near = same_letters.or_else(|| closest_match(literal.as_str()?, texts()));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        let all: Vec<String> =
                            permitted.iter().map(|value| format!("`{}`", display_value(value))).collect();
                        format!("permitted values: {}", all.join(", "))
                    }
                };
                let fix = same_letters.and_then(|near| {
                    let span = replaceable_span(checked.sources, literal)?;
                    Some(Fix::replace(format!("write `{near}`"), span, replacement_source(literal, near)))
                });
                let message = format!(
                    "`{}` can't be `{}` according to the tool's schema",
                    test.text(),
                    display_value(&value)
                );
                found.push(
                    written
                        .diagnostic(&UNKNOWN_ENUM_VALUE, literal.span, message)
                        .with_help(help)
                        .with_fix(fix),
                );
            }
        }
    }
}

/// Returns the literals that a test compares whole values with.
fn literals(test: &YamlNode) -> Vec<&YamlNode> {
    let mut found = Vec::new();
    for key in ["eq", "ne"] {
        found.extend(test.get(key).filter(|operand| is_literal(operand)));
    }
    for key in ["in", "not_in"] {
        found.extend(test.get(key).and_then(YamlNode::items).into_iter().flatten());
    }
    found
}
