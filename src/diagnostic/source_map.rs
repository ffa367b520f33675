//! Source positions: byte ranges in loaded files, and the files themselves.

use std::sync::{Arc, OnceLock};

use serde::Serialize;

use crate::file_access::FileSandbox;

/// Identifies one loaded file within a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

impl SourceId {
    /// The position of the file among those of the map.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A byte range in one loaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub source: SourceId,
    // Each policy has some ten of them, and files are far smaller than 4 GiB.
    start: u32,
    end: u32,
}

impl Span {
    /// The bytes `start..end` of `source`, a file of less than 4 GiB.
    pub fn new(source: SourceId, start: usize, end: usize) -> Self {
        let [start, end] = [start, end].map(|offset| u32::try_from(offset).unwrap_or(u32::MAX));
        Self { source, start, end }
    }

    /// The first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// One past the last byte.
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// The span with the same start up to another byte.
    pub fn until(self, end: usize) -> Self {
        Self::new(self.source, self.start(), end)
    }
}

/// A span in human terms: lines and columns start at 1, columns count characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file's name, as given or found.
    pub file: String,
    /// Line of the first character.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Line just past the last character.
    pub end_line: usize,
    /// Column just past the last character.
    pub end_column: usize,
}

/// One loaded file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    /// Found when a position is asked for.
    line_starts: OnceLock<Vec<usize>>,
}

impl SourceFile {
    /// The file's name, as given or found.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column (both from 1, columns in characters) of a byte offset; an offset past the end counts as the end. In a line
    /// longer than 256 KiB, columns beyond that limit count bytes.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line_starts = self.line_starts.get_or_init(|| {
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(index, _)| index + 1)).collect()
        });
        let line = line_starts.partition_point(|start| *start <= offset).max(1);
        let start = line_starts.get(line - 1).copied().unwrap_or(0);
        // Avoids counting the characters of a very long line again for each position in it.
        let counted = self.text.floor_char_boundary(offset.min(start + COUNTED_BYTES)).max(start);
        let characters = self.text.get(start..counted).map_or(0, |before| before.chars().count());
        (line, characters + (offset - counted) + 1)
    }
}

/// Beyond this many bytes of a line, a column counts bytes.
const COUNTED_BYTES: usize = 256 << 10;

/// All files of one load; resolves a [`Span`] for display.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    sources: Vec<SourceFile>,
    /// The directories of files that these files may refer to.
    roots: FileSandbox,
}

impl SourceMap {
    /// Adds a file and returns its id.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceId {
        let id = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        self.sources.push(SourceFile { name: name.into(), text: text.into(), line_starts: OnceLock::new() });
        SourceId(id)
    }

    /// Allows the files to refer to others below these directories.
    pub(crate) fn with_roots(roots: FileSandbox) -> Self {
        Self { roots, ..Self::default() }
    }

    /// The directories of files that these files may refer to.
    pub(crate) fn roots(&self) -> &FileSandbox {
        &self.roots
    }

    /// The file with an id of this map.
    pub fn get(&self, id: SourceId) -> Option<&SourceFile> {
        self.sources.get(id.index())
    }

    /// The files in the order of addition.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &SourceFile)> {
        (0u32..).map(SourceId).zip(&self.sources)
    }

    /// Resolves a span to file, lines and columns.
    pub fn locate(&self, span: Span) -> Option<Location> {
        let source = self.get(span.source)?;
        let (line, column) = source.position(span.start());
        let (end_line, end_column) = source.position(span.end().max(span.start()));
        Some(Location { file: source.name.to_string(), line, column, end_line, end_column })
    }
}
