//! Suppression comments: `# callgate: allow CG511 because the gateway refuses calls without it`, on the line of the lint or above it.

use crate::lint_context::LintContext;
use crate::registry::LINTS;
use callgate::diagnostic::{
    ALLOWANCE_WITHOUT_REASON, Code, Diagnostic, Diagnostics, Fix, Span, UNUSED_ALLOWANCE, closest_match,
    find_code,
};
use callgate::source::{DirectiveComment, find_comments};

/// Removes the diagnostics that comments suppress from `found`, and adds diagnostics for the comments themselves. `checked_codes` are the
/// lints that ran.
pub(super) fn apply_suppressions(
    checked: &LintContext<'_>,
    checked_codes: &[&'static Code],
    found: &mut Diagnostics,
) {
    let mut about = Diagnostics::default();
    for file in checked.files {
        let Some(source) = checked.sources.get(file.source) else { continue };
        for allowance in find_comments("allow", file.source, source, &file.root) {
            for (word_span, word) in &allowance.words {
                let code = find_code(word);
                let mut used = false;
                found.retain(|diagnostic| {
                    let allowed = Some(diagnostic.code) == code
                        && diagnostic.span.is_some_and(|span| {
                            span.source == file.source && source.position(span.start()).0 == allowance.line
                        });
                    used |= allowed;
                    !allowed
                });
                if !used && let Some(why) = find_problem(code, word, checked_codes) {
                    let fix = match (code, &why.suggestion) {
                        (None, None) => None,
                        (None, Some(meant)) => {
                            Some(Fix::replace(format!("write `{meant}`"), *word_span, *meant))
                        }
                        (Some(_), _) => removal_fix(source.text(), &allowance, *word_span),
                    };
                    about.push(
                        Diagnostic::new(&UNUSED_ALLOWANCE, *word_span, why.message)
                            .with_help(why.help)
                            .with_fix(fix),
                    );
                }
            }
            if allowance.reason.is_none() {
                about.push(
                    Diagnostic::new(
                        &ALLOWANCE_WITHOUT_REASON,
                        allowance.span,
                        "this suppression has no reason",
                    )
                    .with_help("add the reason: `# callgate: allow CG511 because …`"),
                );
            }
        }
    }
    found.extend(about);
}

/// The problem of a code in a comment.
struct SuppressionProblem {
    message: String,
    help: String,
    /// The lint that the author probably meant.
    suggestion: Option<&'static str>,
}

/// Returns the problem of a code that suppressed nothing. Returns `None` if its lint did not run.
fn find_problem(
    code: Option<&'static Code>,
    word: &str,
    checked_codes: &[&'static Code],
) -> Option<SuppressionProblem> {
    let lints = || LINTS.iter().map(|lint| lint.code);
    let of = |message: String, help: &str| {
        Some(SuppressionProblem { message, help: help.to_owned(), suggestion: None })
    };
    let Some(code) = code else {
        let meant = closest_match(word, lints().flat_map(|code| [code.id, code.name]));
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`callgate rule` lists all codes".to_owned(),
        };
        return Some(SuppressionProblem {
            message: format!("unknown lint `{word}`"),
            help,
            suggestion: meant,
        });
    };
    if !lints().any(|lint| lint == code) {
        let help = "remove it: only lints can be suppressed, not errors";
        return of(format!("`{word}` can't be suppressed"), help);
    }
    let help = "remove it, or move it to the line of the lint or above it";
    checked_codes
        .contains(&code)
        .then(|| of(format!("there is no `{word}` here to suppress"), help))
        .flatten()
}

/// Returns a fix that removes a code from a comment, or the whole comment if it has no other code.
fn removal_fix(text: &str, allowance: &DirectiveComment<'_>, span: Span) -> Option<Fix> {
    let (source, start, end) = (allowance.span.source, allowance.span.start(), allowance.span.end());
    let span = match allowance.words.iter().position(|(word_span, _)| *word_span == span)? {
        _ if allowance.words.len() == 1 && allowance.alone => {
            let line = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
            let next = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
            Span::new(source, line, next)
        }
        _ if allowance.words.len() == 1 => Span::new(source, text.get(..start)?.trim_end().len(), end),
        0 => Span::new(source, span.start(), allowance.words.get(1)?.0.start()),
        after => Span::new(source, allowance.words.get(after - 1)?.0.end(), span.end()),
    };
    Some(Fix::replace("remove the unused suppression", span, ""))
}
