//! Where the gateway reads what the user asked for: a file or a descriptor that the host rewrites → [`Task`].

use std::path::PathBuf;

use callgate::call::Task;
use callgate::file_access::read_regular_file;
use callgate::json;

/// The longest file that is read: a task of 256 KiB in JSON, with escapes.
const MAX_FILE: u64 = 2 << 20;

/// A file or an open descriptor. It is read again for each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSource {
    path: PathBuf,
    is_json: bool,
}

impl TaskSource {
    /// A file: text is one message of the user; a name that ends in `.json` has a string or a list of messages. The host replaces the
    /// file atomically, by renaming another one over it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        Self { path, is_json }
    }

    /// A descriptor of a regular file that the gateway inherits, with JSON as in a file.
    pub fn descriptor(number: u32) -> Self {
        Self { path: PathBuf::from(format!("/dev/fd/{number}")), is_json: true }
    }

    /// Reads `FILE` or `fd:N`.
    ///
    /// # Errors
    /// What follows `fd:` is not a number.
    pub fn parse(text: &str) -> Result<Self, std::num::ParseIntError> {
        match text.strip_prefix("fd:") {
            Some(number) => number.parse().map(Self::descriptor),
            None => Ok(Self::file(text)),
        }
    }

    /// Reads the task. One that cannot be read is unknown, so that what reads it is undecided. An empty file is no task.
    pub(super) fn read(&self) -> Task {
        let Ok(text) = read_regular_file(&self.path, MAX_FILE) else {
            return Task::unknown("its file cannot be read, or is too long");
        };
        match (text.trim().is_empty(), self.is_json) {
            (true, _) => Task::NONE,
            (false, false) => Task::from_text(text.trim_end_matches(['\r', '\n'])),
            (false, true) => json::parse(&text)
                .ok()
                .and_then(|turns| Task::from_json(&turns).ok())
                .unwrap_or_else(|| Task::unknown("its file has no list of messages")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_files_are_unknown_and_empty_ones_are_no_task() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str, content: Option<&[u8]>| {
            let path = directory.path().join(name);
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            TaskSource::file(path).read()
        };
        assert_eq!(read("a.txt", Some(b"Pay Ana\n")), Task::from_text("Pay Ana"));
        assert_eq!(read("b.txt", Some(b"[\"a\"]")), Task::from_text("[\"a\"]"));
        assert_eq!(
            read("a.json", Some(b"[\"a\", {\"text\": \"b\"}]")),
            Task::from_json(&json::json!(["a", "b"])).unwrap()
        );
        assert_eq!(read("empty.json", Some(b" \n")), Task::NONE);
        assert_eq!(read("empty.txt", Some(b"")), Task::NONE);
        let too_long = "a".repeat((256 << 10) + 1);
        for (name, content) in [
            ("missing.txt", None),
            ("broken.json", Some(b"[\"a\"".as_slice())),
            ("object.json", Some(b"{\"text\": \"a\"}".as_slice())),
            ("bytes.txt", Some(b"\xff".as_slice())),
            ("long.txt", Some(too_long.as_bytes())),
        ] {
            assert!(read(name, content).unknown_reason().is_some(), "{name}");
        }
        assert!(TaskSource::file(directory.path()).read().unknown_reason().is_some());
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(TaskSource::file(pipe).read().unknown_reason().is_some());
        assert!(TaskSource::parse("fd:x").is_err());
        assert_eq!(TaskSource::parse("fd:3"), Ok(TaskSource::descriptor(3)));
    }
}
