//! Positions inside strings: converts offsets in a script, regular expression or path to offsets in the file.

use std::ops::Range;

use super::document_tree::{StringStyle, YamlNode, YamlValue};
use crate::diagnostic::{SourceMap, Span};

/// Returns the span in the file for a byte range of a node's string.
///
/// Exact for plain strings on one line, quoted ones on one line without escapes, and literal blocks (`|`). For any other node, and
/// for a range outside of its string, the span of the whole node.
pub fn span_in(sources: &SourceMap, node: &YamlNode, range: Range<usize>) -> Span {
    exact_span_in(sources, node, range).unwrap_or(node.span)
}

/// Returns the same span, or `None` if the string is not in the file verbatim.
pub fn exact_span_in(sources: &SourceMap, node: &YamlNode, range: Range<usize>) -> Option<Span> {
    let YamlValue::String(text) = &node.value else { return None };
    text.text.get(range.clone())?;
    let span = node.span;
    let file = sources.get(span.source)?.text();
    let written = file.get(span.start()..span.end())?;
    // An alias has the span of its use, where other text is: compare the string instead of assuming it.
    let (start, end) = match text.style {
        StringStyle::Plain => (written == text.text).then_some((range.start, range.end))?,
        StringStyle::Quoted => {
            let inner = written.get(1..written.len().checked_sub(1)?)?;
            (inner == text.text).then_some((range.start + 1, range.end + 1))?
        }
        StringStyle::Literal => {
            let line_start = file.get(..span.start())?.rfind('\n')? + 1;
            let block = file.get(line_start..)?;
            let start = offset_in_block(block, &text.text, range.start)?;
            let end = offset_in_block(block, &text.text, range.end)?;
            return Some(Span::new(span.source, line_start + start, line_start + end));
        }
        StringStyle::Folded => return None,
    };
    Some(Span::new(span.source, span.start() + start, span.start() + end))
}

/// The offset in the file's lines for the byte `offset` of a literal block; each line of the file is a line of the string
/// after some indentation.
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
        // The end of the string is at the end of its last line, not on the next one.
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
    fn maps_ranges_of_strings_to_the_file() {
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
            let span = span_in(&sources, node, start..start + needle.len());
            if exact {
                assert_eq!(file.get(span.start()..span.end()), Some(needle), "{file}");
            } else {
                assert_eq!(span, node.span, "{file}");
            }
            assert_eq!(span_in(&sources, node, 0..1000), node.span, "{file}");
        }
    }

    #[test]
    fn points_at_the_whole_alias() {
        let file = "v: &x abc\nw: *x\n";
        let mut sources = SourceMap::default();
        let source = sources.add("x.yaml", file);
        let root = parse(source, file, &mut Diagnostics::default()).unwrap();
        let span = span_in(&sources, root.get("w").unwrap(), 1..2);
        assert_eq!(file.get(span.start()..span.end()), Some("*x"));
    }
}
