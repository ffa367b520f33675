//! Automatic fixes: edits of files that resolve a diagnostic and keep everything else unchanged.

use super::{SourceId, SourceMap, Span};

/// A range of a file and its new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The range to replace; an empty span inserts text.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// Edits that belong together and resolve one diagnostic, nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Its effect, as in `add \`absent: match\``.
    pub title: String,
    /// The edits, which do not overlap.
    pub edits: Vec<Edit>,
}

impl Fix {
    /// Creates a fix with one edit.
    pub fn replace(title: impl Into<String>, span: Span, text: impl Into<String>) -> Self {
        Self { title: title.into(), edits: vec![Edit { span, replacement: text.into() }] }
    }

    /// Applies the fixes that do not overlap to a file, in order. Returns the new text and the number of fixes applied. A fix with an
    /// edit in another file, or inside a multi-byte character, is skipped as a whole.
    pub fn apply<'f>(
        fixes: impl IntoIterator<Item = &'f Fix>,
        sources: &SourceMap,
        file: SourceId,
    ) -> Option<(String, usize)> {
        let text = sources.get(file)?.text();
        let mut accepted: Vec<&Edit> = Vec::new();
        let mut applied = 0;
        for fix in fixes {
            let is_applicable = |edit: &Edit| {
                edit.span.source == file
                    && text.get(edit.span.start()..edit.span.end()).is_some()
                    && accepted.iter().all(|other| are_disjoint(edit.span, other.span))
            };
            if fix.edits.iter().all(is_applicable) {
                accepted.extend(&fix.edits);
                applied += 1;
            }
        }
        accepted.sort_by_key(|edit| edit.span);
        let (mut changed, mut written) = (String::with_capacity(text.len()), 0);
        for edit in accepted {
            changed.push_str(text.get(written..edit.span.start())?);
            changed.push_str(&edit.replacement);
            written = edit.span.end();
        }
        changed.push_str(text.get(written..)?);
        Some((changed, applied))
    }
}

/// Whether two edits are disjoint. Two insertions at the same position are not.
fn are_disjoint(a: Span, b: Span) -> bool {
    a != b && (a.end() < b.start() || b.end() < a.start() || a.end() == b.start() || b.end() == a.start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applies_the_first_of_overlapping_fixes() {
        let mut sources = SourceMap::default();
        let file = sources.add("a", "abc déf");
        let fix = |start, end, text: &str| Fix::replace("", Span::new(file, start, end), text);
        for (fixes, expected, count) in [
            (vec![fix(0, 3, "x"), fix(2, 4, "y")], "x déf", 1),
            (vec![fix(4, 5, "D"), fix(0, 1, "A")], "Abc Déf", 2),
            (vec![fix(3, 3, ","), fix(3, 3, ";")], "abc, déf", 1),
            (vec![fix(0, 3, ""), fix(3, 4, "-")], "-déf", 2),
            (vec![fix(6, 7, "?")], "abc déf", 0),
        ] {
            assert_eq!(Fix::apply(&fixes, &sources, file), Some((expected.to_owned(), count)));
        }
    }
}
