//! Lint: hard-coded secrets (passwords, keys, tokens) in rules files.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostic, Diagnostics, SECRET_IN_RULES};
use callgate::redaction::Detector;
use callgate::source::{YamlNode, YamlValue, span_in};

pub(super) static LINT: Lint = Lint { code: &SECRET_IN_RULES, needs: RequiredInput::Nothing, check };

const DETECTORS: [Detector; 4] =
    [Detector::PrivateKey, Detector::ApiKey, Detector::Jwt, Detector::UrlCredentials];

/// Minimum length of a token.
const MIN_SECRET_BYTES: usize = 16;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for file in checked.files {
        collect(checked, &file.root, found);
    }
}

fn collect(checked: &LintContext<'_>, node: &YamlNode, found: &mut Diagnostics) {
    match &node.value {
        YamlValue::String(text) if may_contain_secret(&text.text) => {
            for detector in DETECTORS {
                let Some(range) = detector.find(&text.text).into_iter().next() else { continue };
                let label = detector.name().replace('_', " ");
                let span = span_in(checked.sources, node, range);
                // The message does not repeat the secret.
                let message = format!("this looks like a secret (`{}`: {label})", detector.name());
                found.push(Diagnostic::new(&SECRET_IN_RULES, span, message).with_help(
                    "many people can read rules files: remove the secret, rotate it, and let the tool hold the new one",
                ));
                break;
            }
        }
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect(checked, item, found)),
        YamlValue::Mapping(entries) => entries.iter().for_each(|entry| collect(checked, &entry.value, found)),
        _ => {}
    }
}

/// Prefilter: ids, names and most paths are too short or lack the characters of a secret.
fn may_contain_secret(text: &str) -> bool {
    let digit = text.bytes().any(|byte| byte.is_ascii_digit());
    text.len() >= MIN_SECRET_BYTES && (digit || text.contains("://") || text.contains("-----"))
}
