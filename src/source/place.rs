//! Places inside a string: scripts, regexes and paths count from the start of their text, people from the start of the
//! file.

use std::ops::Range;

use super::document::{Node, NodeValue, TextStyle};
use crate::diagnostic::{SourceMap, Span};

/// The place in the file of a byte range of a string's text.
///
/// Exact for texts without quotes on one line, quoted ones on one line without escapes, and block texts (`|`); of any
/// other node, and for a range that is not one of its text, the whole node.
pub fn place_in(sources: &SourceMap, node: &Node, range: Range<usize>) -> Span {
    exact_place(sources, node, range).unwrap_or(node.span)
}

/// The same, where the text stands in the file letter by letter.
pub fn exact_place(sources: &SourceMap, node: &Node, range: Range<usize>) -> Option<Span> {
    let NodeValue::String(text) = &node.value else { return None };
    text.text.get(range.clone())?;
    let span = node.span;
    let file = sources.get(span.source)?.text();
    let written = file.get(span.start..span.end)?;
    // An alias has the place of its use, where other words stand: the text is compared, not assumed.
    let (start, end) = match text.style {
        TextStyle::Plain => (written == text.text).then_some((range.start, range.end))?,
        TextStyle::Quoted => {
            let inner = written.get(1..written.len().checked_sub(1)?)?;
            (inner == text.text).then_some((range.start + 1, range.end + 1))?
        }
        TextStyle::Literal => {
            let line_start = file.get(..span.start)?.rfind('\n')? + 1;
            let block = file.get(line_start..)?;
            let start = offset_in_block(block, &text.text, range.start)?;
            let end = offset_in_block(block, &text.text, range.end)?;
            return Some(Span::new(span.source, line_start + start, line_start + end));
        }
        TextStyle::Folded => return None,
    };
    Some(Span::new(span.source, span.start + start, span.start + end))
}

/// Where the byte `offset` of a block text stands in the file's lines that hold it, each of which is a line of the text
/// behind some indentation.
fn offset_in_block(block: &str, text: &str, offset: usize) -> Option<usize> {
    let mut in_text = 0;
    let mut in_block = 0;
    for (written, line) in block.split_inclusive('\n').zip(text.split_inclusive('\n')) {
        let content = written.trim_end_matches(['\n', '\r']);
        let line_content = line.trim_end_matches(['\n', '\r']);
        let indentation = content.strip_suffix(line_content)?;
        if !indentation.bytes().all(|byte| byte == b' ') {
            return None;
        }
        // The last place of the text stands behind its last line rather than on the one after it.
        if offset < in_text + line.len() || in_text + line.len() == text.len() {
            let column = (offset - in_text).min(line_content.len());
            return Some(in_block + indentation.len() + column);
        }
        in_text += line.len();
        in_block += written.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::source::parse;

    #[test]
    fn a_range_of_a_text_is_found_in_the_file() {
        for (file, needle, exact) in [
            ("v: one two\n", "two", true),
            ("v: 'one two'\n", "two", true),
            ("v: \"ünë two\"\n", "two", true),
            ("v: 'it''s two'\n", "two", false),
            ("v: \"one\\ttwo\"\n", "two", false),
            ("v: one\n  two\n", "two", false),
            ("v: |\n  one\n\n   let two = 2\n", "two", true),
            ("v: |-\r\n  one\r\n  two\r\n", "two", true),
            ("# ä\nv:   |2 # comment\n    ünë\n  two\nw: 1\n", "two", true),
            ("v: >\n  one\n  two\n", "two", false),
        ] {
            let mut sources = SourceMap::default();
            let source = sources.add("x.yaml", file);
            let mut diagnostics = Diagnostics::default();
            let root = parse(source, file, &mut diagnostics).unwrap();
            let node = root.get("v").unwrap();
            let start = node.as_str().unwrap().find(needle).unwrap();
            let span = place_in(&sources, node, start..start + needle.len());
            if exact {
                assert_eq!(file.get(span.start..span.end), Some(needle), "{file}");
            } else {
                assert_eq!(span, node.span, "{file}");
            }
            assert_eq!(place_in(&sources, node, 0..1000), node.span, "{file}");
        }
    }

    #[test]
    fn an_alias_is_pointed_at_as_a_whole() {
        let file = "v: &x abc\nw: *x\n";
        let mut sources = SourceMap::default();
        let source = sources.add("x.yaml", file);
        let root = parse(source, file, &mut Diagnostics::default()).unwrap();
        let span = place_in(&sources, root.get("w").unwrap(), 1..2);
        assert_eq!(file.get(span.start..span.end), Some("*x"));
    }
}
