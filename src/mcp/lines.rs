//! Messages as lines: those of bounded length that a peer writes, and those that it is written.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::frame::Frame;

/// Bytes that are put together before they are written, of messages that wait already.
const TOGETHER: usize = 64 << 10;

/// What was read.
pub(super) enum Line {
    /// One line, without its end. Empty lines are passed over.
    Text(String),
    /// A line that is no text, and what of it is; it is passed over.
    Unreadable { why: String, text: String },
    /// A line that is too long; it is passed over.
    TooLong(String),
    /// The peer says nothing more.
    End,
}

/// Reads lines.
pub(super) struct Lines<R> {
    from: R,
    /// The longest line, in bytes.
    limit: usize,
    /// The rest of a line that is too long comes first.
    is_passing_over: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, limit: usize) -> Self {
        Self { from, limit, is_passing_over: false }
    }

    pub(super) async fn next(&mut self) -> Line {
        let mut line = Vec::new();
        loop {
            let Ok(chunk) = self.from.fill_buf().await else { return Line::End };
            if chunk.is_empty() {
                // A message that is whole without the end of its line is one; half of one can't be read.
                return match line.iter().all(u8::is_ascii_whitespace) {
                    true => Line::End,
                    false => text(line),
                };
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(chunk, |end| chunk.get(..end).unwrap_or(chunk));
            let is_too_long = !self.is_passing_over && line.len() + part.len() > self.limit;
            let is_passed_over = self.is_passing_over || is_too_long;
            if !is_passed_over {
                line.extend_from_slice(part);
            }
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.from.consume(used);
            self.is_passing_over = is_passed_over && end.is_none();
            if is_too_long {
                // Told before its end, which may never come.
                return Line::TooLong(format!("a message is longer than {} bytes", self.limit));
            }
            if is_passed_over || end.is_none() {
                continue;
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                line.clear();
                continue;
            }
            return text(line);
        }
    }
}

/// Writes messages until there are none any more, or nobody reads them.
pub(super) async fn write(mut to: impl AsyncWrite + Unpin, mut outgoing: mpsc::Receiver<Frame>) {
    while let Some(first) = outgoing.recv().await {
        let mut text = first.to_line();
        while text.len() < TOGETHER
            && let Ok(next) = outgoing.try_recv()
        {
            text.push_str(&next.to_line());
        }
        if to.write_all(text.as_bytes()).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

fn text(line: Vec<u8>) -> Line {
    match String::from_utf8(line) {
        Ok(text) => Line::Text(text),
        Err(error) => Line::Unreadable {
            why: "a message is no UTF-8".to_owned(),
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(text, 8);
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Line::Text(text) => read.push(text),
                Line::Unreadable { why, .. } | Line::TooLong(why) => read.push(format!("! {why}")),
                Line::End => return read,
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_line_is_passed_over_and_told() {
        assert_eq!(read(b"123456789").await, ["! a message is longer than 8 bytes"], "also without an end");
        let read = read(b"one\r\n\n  \n123456789\n\xff\ntwo\nthree").await;
        let said = ["one", "! a message is longer than 8 bytes", "! a message is no UTF-8", "two", "three"];
        assert_eq!(read, said);
    }
}
