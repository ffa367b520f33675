//! Line framing of messages: reads lines of bounded length from a peer, and writes messages as lines.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::jsonrpc::JsonRpcMessage;

/// Queued messages are batched into writes of about this many bytes.
const WRITE_BATCH_SIZE: usize = 64 << 10;

/// The result of reading one line.
pub(super) enum Line {
    /// One line, without its end. Empty lines are skipped.
    Text(String),
    /// A line that is not UTF-8: the problem, and the text with replacement characters.
    NotUtf8 { why: String, text: String },
    /// A line that is too long; it is skipped.
    TooLong(String),
    /// The end of the input.
    End,
}

/// Reads lines.
pub(super) struct LineReader<R> {
    from: R,
    /// The maximum length of a line, in bytes.
    limit: usize,
    /// The rest of a line that is too long is being skipped.
    is_skipping: bool,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(super) fn new(from: R, limit: usize) -> Self {
        Self { from, limit, is_skipping: false }
    }

    pub(super) async fn next(&mut self) -> Line {
        let mut line = Vec::new();
        loop {
            let Ok(chunk) = self.from.fill_buf().await else { return Line::End };
            if chunk.is_empty() {
                // The last line may lack its line end; a truncated message fails to parse.
                return match line.iter().all(u8::is_ascii_whitespace) {
                    true => Line::End,
                    false => text(line),
                };
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(chunk, |end| chunk.get(..end).unwrap_or(chunk));
            let is_too_long = !self.is_skipping && line.len() + part.len() > self.limit;
            let is_passed_over = self.is_skipping || is_too_long;
            if !is_passed_over {
                line.extend_from_slice(part);
            }
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.from.consume(used);
            self.is_skipping = is_passed_over && end.is_none();
            if is_too_long {
                // Reported before the line's end, which may never arrive.
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

/// Writes messages until the channel closes or the reader is gone.
pub(super) async fn write_messages(
    mut to: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<JsonRpcMessage>,
) {
    while let Some(first) = outgoing.recv().await {
        let mut text = first.to_line();
        while text.len() < WRITE_BATCH_SIZE
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
        Err(error) => Line::NotUtf8 {
            why: "a message is not UTF-8".to_owned(),
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8]) -> Vec<String> {
        let mut lines = LineReader::new(text, 8);
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Line::Text(text) => read.push(text),
                Line::NotUtf8 { why, .. } | Line::TooLong(why) => read.push(format!("! {why}")),
                Line::End => return read,
            }
        }
    }

    #[tokio::test]
    async fn skips_and_reports_lines_that_are_too_long_or_not_utf_8() {
        assert_eq!(read(b"123456789").await, ["! a message is longer than 8 bytes"], "also without an end");
        let read = read(b"one\r\n\n  \n123456789\n\xff\ntwo\nthree").await;
        let expected =
            ["one", "! a message is longer than 8 bytes", "! a message is not UTF-8", "two", "three"];
        assert_eq!(read, expected);
    }
}
