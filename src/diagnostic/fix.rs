//! What a program can do about a problem: pieces of files that are replaced, everything around them kept.

use super::{SourceId, SourceMap, Span};

/// A piece of a file and what is to stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; an empty span is a place to insert at.
    pub span: Span,
    /// What stands there then.
    pub text: String,
}

/// Edits that belong together and mend what a diagnostic tells, nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as in `add \`absent: match\``.
    pub title: String,
    /// The edits, which do not overlap.
    pub edits: Vec<Edit>,
}

impl Fix {
    /// A fix of one edit.
    pub fn replace(title: impl Into<String>, span: Span, text: impl Into<String>) -> Self {
        Self { title: title.into(), edits: vec![Edit { span, text: text.into() }] }
    }

    /// The text of a file after those of the fixes that do not overlap, the first ones first, and how many these are. Edits
    /// that stand in other files, or not on whole characters, are not made, nor what belongs together with them.
    pub fn apply<'f>(
        fixes: impl IntoIterator<Item = &'f Fix>,
        sources: &SourceMap,
        file: SourceId,
    ) -> Option<(String, usize)> {
        let text = sources.get(file)?.text();
        let mut taken: Vec<&Edit> = Vec::new();
        let mut made = 0;
        for fix in fixes {
            let fits = |edit: &Edit| {
                edit.span.source == file
                    && text.get(edit.span.start..edit.span.end).is_some()
                    && taken.iter().all(|other| apart(edit.span, other.span))
            };
            if fix.edits.iter().all(fits) {
                taken.extend(&fix.edits);
                made += 1;
            }
        }
        taken.sort_by_key(|edit| edit.span);
        let (mut changed, mut written) = (String::with_capacity(text.len()), 0);
        for edit in taken {
            changed.push_str(text.get(written..edit.span.start)?);
            changed.push_str(&edit.text);
            written = edit.span.end;
        }
        changed.push_str(text.get(written..)?);
        Some((changed, made))
    }
}

/// Whether nothing lies between two edits that both would change. Two insertions at one place are not apart.
fn apart(a: Span, b: Span) -> bool {
    a != b && (a.end < b.start || b.end < a.start || a.end == b.start || b.end == a.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_fixes_that_overlap_the_first_is_made() {
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
