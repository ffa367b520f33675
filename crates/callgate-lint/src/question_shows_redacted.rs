//! Lint: approval requests that show a redacted argument, so that the approver sees only a mask.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::subsumption::covers;
use callgate::diagnostic::{Diagnostics, QUESTION_SHOWS_REDACTED};
use callgate::source::{YamlNode, span_in};

pub(super) static LINT: Lint = Lint { code: &QUESTION_SHOWS_REDACTED, needs: RequiredInput::Nothing, check };

/// Detectors, each with names of arguments that hold its data.
const DETECTED_ARGUMENTS: [(&str, &[&str]); 9] = [
    ("email", &["email", "e_mail", "mail_address", "email_address"]),
    ("phone", &["phone", "telephone", "mobile", "phone_number"]),
    ("payment_card", &["card", "card_number", "pan", "credit_card", "payment_card"]),
    ("iban", &["iban"]),
    ("us_ssn", &["ssn", "social_security_number"]),
    ("api_key", &["api_key", "apikey"]),
    ("private_key", &["private_key"]),
    ("jwt", &["jwt"]),
    ("ip_address", &["ip", "ip_address"]),
];

/// An argument in a template, without a function call, which could change the value.
static ARGUMENT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{\{\s*(input(?:\.\w+)+)\s*\}\}").ok());

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let redactions: Vec<_> = checked
        .enforced_policies()
        .filter(|written| written.has_kind(&["redact"]) && redacts_input(&written.kind.value))
        .collect();
    if redactions.is_empty() {
        return;
    }
    for approval in checked.enforced_policies() {
        let Some(settings) = approval.approval_settings() else { continue };
        let title = settings.get("card").and_then(|card| card.get("title"));
        for node in settings.get("message").into_iter().chain(title) {
            let text = node.as_str().unwrap_or_default();
            for argument in ARGUMENT
                .iter()
                .flat_map(|pattern| pattern.captures_iter(text))
                .filter_map(|captures| captures.get(1))
            {
                let name = snake_case(argument.as_str().rsplit('.').next().unwrap_or_default());
                let hidden = redactions.iter().find_map(|redaction| {
                    let detector = detectors(&redaction.kind.value)
                        .find(|detector| detects_argument(detector, &name))?;
                    covers(redaction, approval).then_some((redaction, detector))
                });
                let Some((redaction, detector)) = hidden else { continue };
                let message = format!(
                    "`{}` may redact `{}` (`{}`): the approver sees a mask",
                    redaction.id(),
                    argument.as_str(),
                    detector.as_str().unwrap_or_default()
                );
                found.push(
                    approval
                        .diagnostic(
                            &QUESTION_SHOWS_REDACTED,
                            span_in(checked.sources, node, argument.range()),
                            message,
                        )
                        .with_label(detector.span, "redacted here")
                        .with_help(
                            "show an argument that is not redacted, such as an id, or redact it with `{ keep_last: 4 }`",
                        ),
                );
            }
        }
    }
}

fn redacts_input(redact: &YamlNode) -> bool {
    let readable = redact.get("with").is_some_and(|with| with.get("keep_last").is_some());
    let input = redact.get("in").is_none_or(|targets| {
        targets
            .items()
            .unwrap_or(std::slice::from_ref(targets))
            .iter()
            .any(|target| target.as_str() == Some("input"))
    });
    input && !readable
}

fn detectors(redact: &YamlNode) -> impl Iterator<Item = &YamlNode> {
    let detect = redact.get("detect");
    detect.into_iter().flat_map(|detect| detect.items().unwrap_or(std::slice::from_ref(detect)))
}

fn detects_argument(detector: &YamlNode, name: &str) -> bool {
    let of_detector = DETECTED_ARGUMENTS.iter().find(|(of, _)| detector.as_str() == Some(of));
    of_detector.is_some_and(|(_, names)| names.contains(&name))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
