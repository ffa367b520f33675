//! The end of an audit log on disk, where a process continues the chain: file → the last line of the chain, and what follows it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use crate::audit_chain::{ChainHead, ChainedLine};
use crate::line_reader::MAX_LINE_BYTES;

/// The number of bytes that are read first.
const FIRST_READ: u64 = 64 << 10;
/// The number of bytes from the end in which the last line of the chain must be.
const LONGEST_READ: u64 = 3 * MAX_LINE_BYTES as u64;

/// The end of an audit log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChainEnd {
    pub(crate) head: ChainHead,
    /// An incomplete line after it, of a process that crashed while it wrote.
    pub(crate) incomplete: Option<Vec<u8>>,
}

impl ChainEnd {
    /// Reads the end of a file. Returns `None` if its end is not that of an audit log.
    pub(crate) fn read(mut file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let mut size = FIRST_READ;
        loop {
            let start = length.saturating_sub(size);
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(start))?;
            file.take(length - start).read_to_end(&mut bytes)?;
            if let Some(end) = Self::find(&bytes, start == 0) {
                return Ok(Some(end));
            }
            if start == 0 || size >= LONGEST_READ {
                return Ok(None);
            }
            size = (size * 4).min(LONGEST_READ);
        }
    }

    /// Finds the last line of the chain in the last bytes of a file. A crash leaves at most the beginning of a line after it, and one
    /// more for each crash of a process that was about to end that.
    fn find(bytes: &[u8], is_whole_file: bool) -> Option<Self> {
        let mut end = bytes.len();
        while let Some(line_end) = bytes.get(..end)?.iter().rposition(|byte| *byte == b'\n') {
            let before = bytes.get(..line_end)?;
            let start = match before.iter().rposition(|byte| *byte == b'\n') {
                Some(line_break) => line_break + 1,
                None if is_whole_file => 0,
                None => return None,
            };
            if let Some(line) = ChainedLine::parse(before.get(start..)?) {
                let rest = bytes.get(line_end + 1..)?;
                let incomplete = rest.strip_suffix(b"\n").unwrap_or(rest);
                return Some(Self {
                    head: line.head(),
                    incomplete: (!rest.is_empty()).then(|| incomplete.to_vec()),
                });
            }
            end = line_end;
        }
        // A file without a complete line: empty, or with the beginning of its first one.
        let is_new = is_whole_file && !bytes.contains(&b'\n') && begins_a_line(bytes);
        is_new.then(|| Self {
            head: ChainHead::start(),
            incomplete: (!bytes.is_empty()).then(|| bytes.to_vec()),
        })
    }
}

/// Whether the bytes can be the beginning of a line of a log.
fn begins_a_line(bytes: &[u8]) -> bool {
    let beginning = b"{\"version\":1,\"event\":\"";
    bytes.starts_with(beginning) || beginning.starts_with(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"version":1,"event":"call_started","time":"2026-11-22T10:00:00Z"}"#;

    #[test]
    fn an_incomplete_line_is_told_from_the_chain() {
        let (first, head) = ChainHead::start().link(EVENT);
        let (second, last) = head.link(EVENT);
        let end = |text: &str| ChainEnd::find(text.as_bytes(), true);
        let found = |head, incomplete: Option<&str>| {
            Some(ChainEnd { head, incomplete: incomplete.map(|text| text.as_bytes().to_vec()) })
        };
        assert_eq!(end(""), found(ChainHead::start(), None));
        assert_eq!(end("{\"version"), found(ChainHead::start(), Some("{\"version")));
        assert_eq!(end(&format!("{first}\n{second}\n")), found(last, None));
        // Without its line break the line was not written to its end.
        assert_eq!(end(&format!("{first}\n{second}")), found(head, Some(&second)));
        assert_eq!(end(&format!("{first}\n{{\"a\n{{\"b")), found(head, Some("{\"a\n{\"b")));
        assert_eq!(end("notes\n"), None);
        assert_eq!(end(&format!("{EVENT}\n")), None);
    }

    #[test]
    fn the_end_of_a_large_file_is_found() {
        let mut file = tempfile::tempfile().expect("a file");
        let long = format!("{{\"version\":1,\"event\":\"x\",\"a\":\"{}\"}}", "x".repeat(300 << 10));
        let (line, head) = ChainHead::start().link(&long);
        io::Write::write_all(&mut file, format!("{line}\n{{\"torn").as_bytes()).expect("space");
        let end = ChainEnd::read(&file).expect("it is readable").expect("it is a chain");
        assert_eq!((end.head, end.incomplete), (head, Some(b"{\"torn".to_vec())));
    }
}
