//! Appends lines to a log file: many at once or, when the disk is nearly full, those that fit.

use std::io;

use crate::log_file::LogFile;

/// A log file with the buffer in which lines are collected.
#[derive(Debug)]
pub(crate) struct LineAppender {
    file: LogFile,
    buffer: Vec<u8>,
}

impl LineAppender {
    pub(crate) fn new(file: LogFile) -> Self {
        Self { file, buffer: Vec::new() }
    }

    /// The file, for reading.
    pub(crate) fn file(&self) -> &LogFile {
        &self.file
    }

    /// Appends lines in order. Returns how many are written, and why the next one is not.
    pub(crate) fn append<'l>(
        &mut self,
        lines: impl ExactSizeIterator<Item = &'l str> + Clone,
    ) -> (usize, io::Result<()>) {
        let (mut written, mut max_lines) = (0, usize::MAX);
        while written < lines.len() {
            let count = self.fill_buffer(lines.clone().skip(written).take(max_lines));
            match self.file.append(&self.buffer) {
                Ok(()) => written += count,
                Err(_) if count > 1 => max_lines = 1,
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Fills the buffer with the first lines, as many as one file holds. Returns their number.
    fn fill_buffer<'l>(&mut self, lines: impl Iterator<Item = &'l str>) -> usize {
        self.buffer.clear();
        let mut max_bytes = usize::MAX;
        let mut count = 0;
        for line in lines {
            if count == 0 {
                max_bytes = self.file.room_for(line.len() + 1);
            } else if self.buffer.len() + line.len() + 1 > max_bytes {
                break;
            }
            self.buffer.extend_from_slice(line.as_bytes());
            self.buffer.push(b'\n');
            count += 1;
        }
        count
    }
}
