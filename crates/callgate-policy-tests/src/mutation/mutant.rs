//! One mutant: the edits of a rules file, and the lines before and after for display.

use super::Mutation;
use callgate::diagnostic::{Edit, Fix, SourceMap, Span};
use callgate::source::{MappingEntry, YamlNode};

/// A change of a rules file, to be tested.
#[derive(Debug)]
pub(super) struct Mutant {
    pub(super) mutation: Mutation,
    /// The changed policy; `None` for a definition or a setting of the whole bundle.
    pub(super) policy: Option<String>,
    /// The changed definition, such as `let amount`.
    pub(super) definition: Option<String>,
    /// The span of the policy or definition.
    pub(super) owner_span: Option<Span>,
    /// The changed or removed text.
    pub(super) span: Span,
    pub(super) fix: Fix,
    /// Whether the text is removed, and nothing replaces its lines.
    pub(super) is_removal: bool,
    /// A description of a case that would notice the change.
    pub(super) noticed_by: String,
}

impl Mutant {
    /// The text of the changed file. Returns `None` if the edits do not apply to it.
    pub(super) fn apply(&self, sources: &SourceMap) -> Option<String> {
        let (text, applied) = Fix::apply([&self.fix], sources, self.span.source)?;
        (applied == 1).then_some(text)
    }

    /// The changed line, before and after; no line after if nothing is left of it.
    pub(super) fn lines_before_and_after(&self, sources: &SourceMap) -> Option<(String, Option<String>)> {
        let text = sources.get(self.span.source)?.text();
        if self.is_removal {
            let before = line_at(text, self.span.start())?;
            let more = text.get(self.span.start()..self.span.end())?.contains('\n');
            return Some((format!("{}{}", truncate_around(before, 0), if more { " …" } else { "" }), None));
        }
        let at = self.fix.edits.iter().map(|edit| edit.span.start()).min()?;
        let changed = self.apply(sources)?;
        let start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
        let column = text.get(start..at)?.trim_start().chars().count();
        let (before, after) = (line_at(text, at)?, line_at(&changed, at)?);
        Some((truncate_around(before, column), Some(truncate_around(after, column))))
    }
}

fn line_at(text: &str, at: usize) -> Option<&str> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    text.get(start..)?.lines().next()
}

/// The maximum length of a displayed line, in characters.
const MAX_LINE: usize = 110;

/// The part of a line around a column, for display.
fn truncate_around(line: &str, column: usize) -> String {
    let line = line.trim();
    let length = line.chars().count();
    if length <= MAX_LINE {
        return line.to_owned();
    }
    let first = column.saturating_sub(MAX_LINE / 2).min(length - MAX_LINE);
    let visible: String = line.chars().skip(first).take(MAX_LINE).collect();
    let dots = |cut| if cut { "…" } else { "" };
    format!("{}{}{}", dots(first > 0), visible.trim(), dots(first + MAX_LINE < length))
}

/// The edit that removes one item of a list. Returns `None` if it is the only item, or if an anchor would be removed with it.
pub(super) fn item_removal(text: &str, items: &[YamlNode], index: usize) -> Option<Edit> {
    let item = items.get(index)?.span;
    let span = match index.checked_sub(1) {
        Some(before) => Span::new(item.source, items.get(before)?.span.end(), item.end()),
        None => Span::new(item.source, item.start(), items.get(1)?.span.start()),
    };
    removal(text, span)
}

/// The edit that removes one key with its value, with the same conditions as [`item_removal`].
pub(super) fn entry_removal(text: &str, entries: &[MappingEntry], index: usize) -> Option<Edit> {
    let entry = entries.get(index)?;
    let key = entry.key_span;
    let span = match index.checked_sub(1) {
        Some(before) => Span::new(key.source, entries.get(before)?.value.span.end(), entry.value.span.end()),
        None => Span::new(key.source, key.start(), entries.get(1)?.key_span.start()),
    };
    removal(text, span)
}

fn removal(text: &str, span: Span) -> Option<Edit> {
    // Behind an alias, spans are those of the anchor, in another order; and a removed anchor would be missing elsewhere.
    let removed = text.get(span.start()..span.end())?;
    let anchored = text.get(..span.start())?.rsplit([' ', '\n']).find(|word| !word.is_empty());
    let anchors = |word: &str| word.starts_with('&') && word.len() > 1 && word != "&&";
    if anchored.is_some_and(anchors) || removed.split_whitespace().any(anchors) {
        return None;
    }
    Some(Edit { span, replacement: String::new() })
}
