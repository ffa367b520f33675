//! Comments that allow a lint in one place: `# callgate: allow CG511 because the gateway refuses calls without it`, on the
//! line that the lint points at or above it.

use std::sync::LazyLock;

use regex::Regex;

use super::LINTS;
use super::checked::Checked;
use crate::diagnostic::{
    ALLOWANCE_WITHOUT_REASON, Code, Diagnostic, Diagnostics, Fix, Source, SourceId, Span, UNUSED_ALLOWANCE,
    by_name, nearest,
};
use crate::source::{Node, NodeValue};

static COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"#[ \t]*callgate:[ \t]*allow\b[ \t]*(?<codes>[\w \t,-]*?)(?:[ \t]*\bbecause\b[ \t]*(?<reason>[^\r\n]*))?[ \t]*(?:\r?\n|$)").ok()
});

/// One comment.
struct Allowance<'t> {
    /// All of it, from `#` to the end of its line.
    span: Span,
    /// Each word behind `allow`, with its place.
    codes: Vec<(Span, &'t str)>,
    has_reason: bool,
    /// The line that it is for, from 1.
    line: usize,
    /// Whether it has its line to itself.
    alone: bool,
}

/// Takes out of `found` what comments allow, and adds what is wrong with the comments. `asked` are the lints that were
/// looked for.
pub(super) fn apply(checked: &Checked<'_>, asked: &[&'static Code], found: &mut Diagnostics) {
    let mut about = Diagnostics::default();
    for file in checked.files {
        let Some(source) = checked.sources.get(file.source) else { continue };
        for allowance in read(file.source, source, &file.root) {
            for (place, word) in &allowance.codes {
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
            if !allowance.has_reason {
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
fn removal(text: &str, allowance: &Allowance<'_>, place: Span) -> Option<Fix> {
    let Span { source, start, end } = allowance.span;
    let place = match allowance.codes.iter().position(|(span, _)| *span == place)? {
        _ if allowance.codes.len() == 1 && allowance.alone => {
            let line = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
            let next = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
            Span::new(source, line, next)
        }
        _ if allowance.codes.len() == 1 => Span::new(source, text.get(..start)?.trim_end().len(), end),
        0 => Span::new(source, place.start, allowance.codes.get(1)?.0.start),
        after => Span::new(source, allowance.codes.get(after - 1)?.0.end, place.end),
    };
    Some(Fix::replace("remove what allows nothing", place, ""))
}

fn read<'t>(id: SourceId, source: &'t Source, root: &Node) -> Vec<Allowance<'t>> {
    let text = source.text();
    let Some(comment) = COMMENT.as_ref().filter(|_| text.contains("callgate:")) else { return Vec::new() };
    let mut scalars = Vec::new();
    collect_texts(root, &mut scalars);
    scalars.sort_unstable();
    let inside_a_text = |at: usize| {
        let after = scalars.partition_point(|(start, _)| *start <= at);
        let before = after.checked_sub(1).and_then(|place| scalars.get(place));
        before.is_some_and(|(_, end)| at < *end)
    };
    let mut found = Vec::new();
    for captures in comment.captures_iter(text) {
        let (Some(whole), Some(codes)) = (captures.get(0), captures.name("codes")) else { continue };
        let before = text.get(..whole.start()).unwrap_or_default();
        let line_before = before.rsplit('\n').next().unwrap_or_default();
        let is_comment = line_before.is_empty() || line_before.ends_with([' ', '\t']);
        if !is_comment || inside_a_text(whole.start()) {
            continue;
        }
        let mut words = Vec::new();
        let mut at = codes.start();
        for word in codes.as_str().split([' ', '\t', ',']) {
            if !word.is_empty() {
                words.push((Span::new(id, at, at + word.len()), word));
            }
            at += word.len() + 1;
        }
        let own = source.position(whole.start()).0;
        let alone = line_before.trim().is_empty();
        let line = if alone { own + lines_to_skip(text.get(whole.end()..).unwrap_or_default()) } else { own };
        found.push(Allowance {
            span: Span::new(id, whole.start(), whole.start() + whole.as_str().trim_end().len()),
            codes: words,
            has_reason: captures.name("reason").is_some_and(|reason| !reason.as_str().trim().is_empty()),
            line,
            alone,
        });
    }
    found
}

/// How many lines further the next line stands that is neither empty nor a comment.
fn lines_to_skip(rest: &str) -> usize {
    let passed = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    rest.lines().take_while(passed).count() + 1
}

fn collect_texts(node: &Node, found: &mut Vec<(usize, usize)>) {
    match &node.value {
        NodeValue::String(_) => found.push((node.span.start, node.span.end)),
        NodeValue::Sequence(items) => items.iter().for_each(|item| collect_texts(item, found)),
        NodeValue::Mapping(entries) => entries.iter().for_each(|entry| collect_texts(&entry.value, found)),
        _ => {}
    }
}
