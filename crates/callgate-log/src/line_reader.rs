//! Lines of a log file, one at a time, within bounded memory.

use std::io::{self, BufRead, BufReader, Read};

/// The length of the longest line that logs have and readers accept, in bytes without the line break.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Reads lines. A line that is too long is not read into memory as a whole.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

/// One line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LogLine<'l> {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes without the line break; of a line that is too long, the first ones.
    pub bytes: &'l [u8],
    /// Whether it ends with a line break. Only the last line may not.
    pub is_terminated: bool,
    /// Whether it is longer than [`MAX_LINE_BYTES`].
    pub is_too_long: bool,
}

impl<R: Read> LineReader<R> {
    /// A reader of this input.
    pub fn new(input: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, input), line: Vec::new(), number: 0 }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// The input can't be read.
    pub fn next_line(&mut self) -> io::Result<Option<LogLine<'_>>> {
        self.line.clear();
        let mut length = 0_usize;
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok((length > 0).then(|| self.finish_line(length, false)));
            }
            let part = buffer.split(|byte| *byte == b'\n').next().unwrap_or(buffer);
            let is_terminated = part.len() < buffer.len();
            let consumed = part.len() + usize::from(is_terminated);
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            length = length.saturating_add(part.len());
            self.reader.consume(consumed);
            if is_terminated {
                return Ok(Some(self.finish_line(length, true)));
            }
        }
    }

    fn finish_line(&mut self, length: usize, is_terminated: bool) -> LogLine<'_> {
        self.number += 1;
        let is_too_long = length > MAX_LINE_BYTES;
        LogLine { number: self.number, bytes: &self.line, is_terminated, is_too_long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<(u64, Vec<u8>, bool, bool)> {
        let mut reader = LineReader::new(input);
        let mut all = Vec::new();
        while let Some(line) = reader.next_line().expect("bytes in memory") {
            all.push((line.number, line.bytes.to_vec(), line.is_terminated, line.is_too_long));
        }
        all
    }

    #[test]
    fn lines_are_whole_whatever_their_length() {
        assert_eq!(lines(b""), []);
        let expected = [
            (1, b"a".to_vec(), true, false),
            (2, Vec::new(), true, false),
            (3, b"b\r".to_vec(), false, false),
        ];
        assert_eq!(lines(b"a\n\nb\r"), expected);
        let mut input = vec![b'x'; MAX_LINE_BYTES];
        input.push(b'\n');
        input.extend(vec![b'y'; MAX_LINE_BYTES + 1]);
        input.extend(b"\nz\n");
        let all = lines(&input);
        let shape: Vec<_> =
            all.iter().map(|(_, bytes, _, is_too_long)| (bytes.len(), *is_too_long)).collect();
        assert_eq!(shape, [(MAX_LINE_BYTES, false), (MAX_LINE_BYTES, true), (1, false)]);
    }
}
