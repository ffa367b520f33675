//! Line reader for JSON Lines input: one line at a time as it arrives, with a maximum line length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::exit::CommandError;

/// Maximum length of a line in bytes; a longer one is rejected without being read into memory.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Reads the lines of a file or of stdin.
pub(crate) struct JsonLinesReader {
    name: String,
    reader: BufReader<Box<dyn Read>>,
    number: u64,
    line: Vec<u8>,
}

/// One line that is not blank.
pub(crate) struct InputLine<'l> {
    /// The line number, from 1, counting blank lines.
    pub(crate) number: u64,
    /// The content, or why it can't be decoded.
    pub(crate) text: Result<&'l str, String>,
    /// The length in bytes.
    pub(crate) bytes: usize,
}

impl JsonLinesReader {
    /// Opens a file, or stdin for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, CommandError> {
        let unreadable =
            |problem: String| CommandError::Message(format!("`{}` can't be read: {problem}", path.display()));
        let (name, reader): (_, Box<dyn Read>) = if path == Path::new("-") {
            ("stdin".to_owned(), Box::new(io::stdin()))
        } else if path.is_dir() {
            return Err(unreadable("it is a directory".to_owned()));
        } else {
            let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
            (path.display().to_string(), Box::new(file))
        };
        Ok(Self::new(name, reader))
    }

    /// Reads lines from a reader; messages use this name for it.
    pub(crate) fn new(name: String, reader: Box<dyn Read>) -> Self {
        Self { name, reader: BufReader::with_capacity(64 << 10, reader), number: 0, line: Vec::new() }
    }

    /// The name of the input in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the next line that is not blank. `before_waiting` is called before each read, which may block forever.
    pub(crate) fn next_line(
        &mut self,
        mut before_waiting: impl FnMut() -> Result<(), CommandError>,
    ) -> Result<Option<InputLine<'_>>, CommandError> {
        loop {
            self.line.clear();
            let Some(bytes) = self.read_line(&mut before_waiting)? else { return Ok(None) };
            self.number += 1;
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                let number = self.number;
                return Ok(Some(InputLine { number, text: self.decode_line(bytes), bytes }));
            }
        }
    }

    /// Reads to the end of the line, storing at most one byte more than the limit. Returns the line's length; `None` at the end of
    /// input.
    fn read_line(
        &mut self,
        before_waiting: &mut impl FnMut() -> Result<(), CommandError>,
    ) -> Result<Option<usize>, CommandError> {
        let mut bytes = 0;
        loop {
            if self.reader.buffer().is_empty() {
                before_waiting()?;
            }
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(CommandError::Message(format!("`{}` can't be read: {error}", self.name)));
                }
            };
            if buffer.is_empty() {
                return Ok((bytes > 0).then_some(bytes));
            }
            let (part, ended) = match buffer.split_inclusive(|byte| *byte == b'\n').next() {
                Some(part) => (part, part.ends_with(b"\n")),
                None => (buffer, false),
            };
            let room = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            bytes += part.len();
            let consumed = part.len();
            self.reader.consume(consumed);
            if ended {
                return Ok(Some(bytes));
            }
        }
    }

    fn decode_line(&self, bytes: usize) -> Result<&str, String> {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        if line.len() > MAX_LINE_BYTES {
            let size = bytes.div_ceil(1 << 20);
            return Err(format!("the line has {size} MiB; the limit is {} MiB", MAX_LINE_BYTES >> 20));
        }
        let text = std::str::from_utf8(line).map_err(|error| {
            let at = error.valid_up_to();
            let byte = line.get(at).copied().unwrap_or_default();
            format!("invalid UTF-8: byte 0x{byte:02X} at offset {at} of the line; save the calls as UTF-8")
        })?;
        // Some files start with a byte order mark.
        Ok(if self.number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: impl Into<Vec<u8>>) -> Vec<(u64, Result<String, String>)> {
        let mut lines = JsonLinesReader::new("test".to_owned(), Box::new(io::Cursor::new(bytes.into())));
        let mut all = Vec::new();
        while let Some(line) = lines.next_line(|| Ok(())).unwrap() {
            all.push((line.number, line.text.map(str::to_owned)));
        }
        all
    }

    #[test]
    fn skips_blank_lines_but_counts_them() {
        let lines = read("\u{feff}a\n\n \t\r\nb\r\nc");
        let texts: Vec<_> = lines.iter().map(|(number, text)| (*number, text.as_deref().unwrap())).collect();
        assert_eq!(texts, [(1, "a"), (4, "b\r"), (5, "c")]);
    }

    #[test]
    fn rejects_overlong_and_non_utf8_lines_and_reads_on() {
        let mut bytes = b"x".repeat(MAX_LINE_BYTES);
        bytes.extend(b"\n");
        bytes.extend(b"y".repeat(MAX_LINE_BYTES + 1));
        bytes.extend(b"\ncaf\xe9\nz");
        let lines = read(bytes);
        assert_eq!(lines[0].1.as_ref().map(String::len), Ok(MAX_LINE_BYTES));
        assert!(lines[1].1.as_ref().is_err_and(|problem| problem.contains("the limit is 16 MiB")));
        assert!(lines[2].1.as_ref().is_err_and(|problem| problem.contains("0xE9")));
        assert_eq!(lines[3], (4, Ok("z".to_owned())));
    }
}
