//! Comments that allow a lint in one place: `# callgate: allow CG511 because the gateway refuses calls without it`, on the
//! line that the lint points at or above it.

use super::LINTS;
use super::checked::Checked;
use crate::diagnostic::{
    ALLOWANCE_WITHOUT_REASON, Code, Diagnostic, Diagnostics, Fix, Span, UNUSED_ALLOWANCE, by_name, nearest,
};
use crate::source::{Comment, comments};

/// Takes out of `found` what comments allow, and adds what is wrong with the comments. `asked` are the lints that were
/// looked for.
pub(super) fn apply(checked: &Checked<'_>, asked: &[&'static Code], found: &mut Diagnostics) {
    let mut about = Diagnostics::default();
    for file in checked.files {
        let Some(source) = checked.sources.get(file.source) else { continue };
        for allowance in comments("allow", file.source, source, &file.root) {
            for (place, word) in &allowance.words {
                let code = by_name(word);
                let mut used = false;
                found.retain(|diagnostic| {
                    let allowed = Some(diagnostic.code) == code
                        && diagnostic.span.is_some_and(|span| {
                            span.source == file.source && source.position(span.start).0 == allowance.line
                        });
                    used |= allowed;
                    !allowed
                });
                if !used && let Some(why) = unused(code, word, asked) {
                    let fix = match (code, &why.meant) {
                        (None, None) => None,
                        (None, Some(meant)) => Some(Fix::replace(format!("write `{meant}`"), *place, *meant)),
                        (Some(_), _) => removal(source.text(), &allowance, *place),
                    };
                    about.push(
                        Diagnostic::new(&UNUSED_ALLOWANCE, *place, why.message).help(why.help).fix(fix),
                    );
                }
            }
            if allowance.reason.is_none() {
                about.push(
                    Diagnostic::new(
                        &ALLOWANCE_WITHOUT_REASON,
                        allowance.span,
                        "this allows a lint and says not why",
                    )
                    .help("say why it is meant so: `# callgate: allow CG511 because …`"),
                );
            }
        }
    }
    found.extend(about);
}

/// Why a code should not stand in a comment.
struct Unused {
    message: String,
    help: String,
    /// The lint that was probably meant.
    meant: Option<&'static str>,
}

/// Why a code that allowed nothing should not stand there. Nothing where it was not looked for.
fn unused(code: Option<&'static Code>, word: &str, asked: &[&'static Code]) -> Option<Unused> {
    let lints = || LINTS.iter().map(|lint| lint.code);
    let of = |message: String, help: &str| Some(Unused { message, help: help.to_owned(), meant: None });
    let Some(code) = code else {
        let meant = nearest(word, lints().flat_map(|code| [code.id, code.name]));
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`callgate rule` lists all codes".to_owned(),
        };
        return Some(Unused { message: format!("there is no lint `{word}`"), help, meant });
    };
    if !lints().any(|lint| lint == code) {
        let help = "lints about what is probably not meant can be allowed, nothing else";
        return of(format!("`{word}` can't be allowed"), help);
    }
    let help = "take it away; it stands on the line that the lint points at, or above it";
    asked.contains(&code).then(|| of(format!("there is no `{word}` here to allow"), help)).flatten()
}

/// Takes one code out of a comment, or the comment where it is the only one.
fn removal(text: &str, allowance: &Comment<'_>, place: Span) -> Option<Fix> {
    let Span { source, start, end } = allowance.span;
    let place = match allowance.words.iter().position(|(span, _)| *span == place)? {
        _ if allowance.words.len() == 1 && allowance.alone => {
            let line = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
            let next = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
            Span::new(source, line, next)
        }
        _ if allowance.words.len() == 1 => Span::new(source, text.get(..start)?.trim_end().len(), end),
        0 => Span::new(source, place.start, allowance.words.get(1)?.0.start),
        after => Span::new(source, allowance.words.get(after - 1)?.0.end, place.end),
    };
    Some(Fix::replace("remove what allows nothing", place, ""))
}
