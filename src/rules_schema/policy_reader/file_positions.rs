//! Positions in rules files: nodes and their strings → spans, lines and columns.

use std::ops::Range;

use super::PolicyReader;
use crate::diagnostic::{Location, SourceId, Span};
use crate::source::{self, YamlNode};

impl PolicyReader<'_> {
    /// The span of a range of a string.
    pub fn span_in(&self, node: &YamlNode, range: Range<usize>) -> Span {
        source::span_in(self.sources, node, range)
    }

    /// The position of a span, in lines and columns.
    pub fn locate(&self, span: Span) -> Option<Location> {
        self.sources.locate(span)
    }

    /// The name of a file.
    pub fn source_name(&self, source: SourceId) -> String {
        self.sources.get(source).map(|source| source.name().to_owned()).unwrap_or_default()
    }

    /// The start of each line of a node's string in its file: line and column, from 1. Empty if the string is not in the file
    /// verbatim, as with an alias or a folded scalar.
    pub fn line_starts(&self, node: &YamlNode) -> Vec<(usize, usize)> {
        let mut starts = Vec::new();
        let mut offset = 0;
        for line in node.as_str().unwrap_or_default().split_inclusive('\n') {
            // An empty line has no position of its own, and cannot contain an error.
            let start = match line.trim_end_matches('\n') {
                "" => starts.last().map(|(line, column)| (line + 1, *column)),
                text => {
                    let span = source::exact_span_in(self.sources, node, offset..offset + text.len());
                    let location = span.and_then(|span| self.sources.locate(span));
                    location.map(|location| (location.line, location.column))
                }
            };
            let Some(start) = start else { return Vec::new() };
            starts.push(start);
            offset += line.len();
        }
        starts
    }
}
