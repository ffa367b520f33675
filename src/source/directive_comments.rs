//! Directive comments: `# callgate: VERB WORD, WORD because REASON`, for their own line or the next one.

use std::sync::LazyLock;

use regex::Regex;

use super::document_tree::{YamlNode, YamlValue};
use crate::diagnostic::{SourceFile, SourceId, Span};

static COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"#[ \t]*callgate:[ \t]*(?<verb>\w+)\b[ \t]*(?<words>[\w \t,-]*?)(?:[ \t]*\bbecause\b[ \t]*(?<reason>[^\r\n]*))?[ \t]*(?:\r?\n|$)").ok()
});

/// One comment.
#[derive(Debug)]
pub struct DirectiveComment<'t> {
    /// The whole comment, from `#` to the end of its line.
    pub span: Span,
    /// Each word after the verb, with its position.
    pub words: Vec<(Span, &'t str)>,
    /// The text after `because`, if not empty.
    pub reason: Option<&'t str>,
    /// The line that it applies to, from 1.
    pub line: usize,
    /// Whether the comment is alone on its line.
    pub alone: bool,
}

/// Returns the comments with this verb in a file whose tree is `root`.
pub fn find_comments<'t>(
    verb: &str,
    id: SourceId,
    source: &'t SourceFile,
    root: &YamlNode,
) -> Vec<DirectiveComment<'t>> {
    let text = source.text();
    let Some(comment) = COMMENT.as_ref().filter(|_| text.contains("callgate:")) else { return Vec::new() };
    let mut scalars = Vec::new();
    collect_texts(root, &mut scalars);
    scalars.sort_unstable();
    let inside_a_text = |at: usize| {
        let after = scalars.partition_point(|(start, _)| *start <= at);
        let before = after.checked_sub(1).and_then(|index| scalars.get(index));
        before.is_some_and(|(_, end)| at < *end)
    };
    let mut found = Vec::new();
    for captures in comment.captures_iter(text) {
        let named = |name| captures.name(name);
        let (Some(whole), Some(written)) = (captures.get(0), named("words")) else { continue };
        if named("verb").is_none_or(|word| word.as_str() != verb) {
            continue;
        }
        let before = text.get(..whole.start()).unwrap_or_default();
        let line_before = before.rsplit('\n').next().unwrap_or_default();
        let is_comment = line_before.is_empty() || line_before.ends_with([' ', '\t']);
        if !is_comment || inside_a_text(whole.start()) {
            continue;
        }
        let mut words = Vec::new();
        let mut at = written.start();
        for word in written.as_str().split([' ', '\t', ',']) {
            if !word.is_empty() {
                words.push((Span::new(id, at, at + word.len()), word));
            }
            at += word.len() + 1;
        }
        let own = source.position(whole.start()).0;
        let alone = line_before.trim().is_empty();
        let line = if alone { own + lines_to_skip(text.get(whole.end()..).unwrap_or_default()) } else { own };
        let reason = named("reason").map(|reason| reason.as_str().trim()).filter(|reason| !reason.is_empty());
        let end = whole.start() + whole.as_str().trim_end().len();
        found.push(DirectiveComment { span: Span::new(id, whole.start(), end), words, reason, line, alone });
    }
    found
}

/// How many lines to skip to the next line that is neither empty nor a comment.
fn lines_to_skip(rest: &str) -> usize {
    let passed = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    rest.lines().take_while(passed).count() + 1
}

fn collect_texts(node: &YamlNode, found: &mut Vec<(usize, usize)>) {
    match &node.value {
        YamlValue::String(_) => found.push((node.span.start(), node.span.end())),
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect_texts(item, found)),
        YamlValue::Mapping(entries) => entries.iter().for_each(|entry| collect_texts(&entry.value, found)),
        _ => {}
    }
}
