//! Elements in queries: `$item.x` becomes `$.item.x`, which is JSONPath, with a note of which `$` was an element.

use std::ops::Range;

/// A query in which each element is written as a member.
pub(super) struct ElementSyntax {
    pub(super) text: String,
    /// The numbers of the roots that are elements, among all `$` of the query.
    pub(super) roots: Vec<usize>,
    /// The positions of the added dots.
    dots: Vec<usize>,
}

impl ElementSyntax {
    /// Returns `None` if the query names no element.
    pub(super) fn expand(text: &str) -> Option<Self> {
        let mut expanded = Self { text: String::new(), roots: Vec::new(), dots: Vec::new() };
        let (mut quote, mut is_escaped, mut roots) = (None, false, 0);
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            expanded.text.push(c);
            match quote {
                Some(_) if is_escaped => is_escaped = false,
                Some(_) if c == '\\' => is_escaped = true,
                Some(end) if c == end => quote = None,
                Some(_) => {}
                None if matches!(c, '\'' | '"') => quote = Some(c),
                None if c == '$' => {
                    if letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '_') {
                        expanded.roots.push(roots);
                        expanded.dots.push(expanded.text.len());
                        expanded.text.push('.');
                    }
                    roots += 1;
                }
                None => {}
            }
        }
        (!expanded.roots.is_empty()).then_some(expanded)
    }

    /// The range in the query as written.
    pub(super) fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let original = |at: usize| at - self.dots.iter().filter(|dot| **dot < at).count();
        original(range.start)..original(range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_directly_after_the_sign_are_elements() {
        for (text, expanded, roots) in [
            ("$item", "$.item", vec![0]),
            ("$row['$x'].a", "$.row['$x'].a", vec![0]),
            (
                "$.input.a[?@.b == $row.c && @.d == $.context.e]",
                "$.input.a[?@.b == $.row.c && @.d == $.context.e]",
                vec![1],
            ),
            (
                r"$.input[?@ == 'it\'s $item' && @ == $item]",
                r"$.input[?@ == 'it\'s $item' && @ == $.item]",
                vec![1],
            ),
        ] {
            let syntax = ElementSyntax::expand(text).unwrap();
            assert_eq!((syntax.text.as_str(), &syntax.roots), (expanded, &roots));
            assert_eq!(syntax.original_range(0..expanded.len()), 0..text.len());
        }
        assert!(ElementSyntax::expand("$.input.a[?@.b == '$item']").is_none());
    }
}
