//! A directory in which bash runs programs that record their arguments.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::generator::PROGRAMS;

/// What a recording program was executed with.
#[derive(Debug, PartialEq, Eq)]
pub struct Execution {
    pub program: String,
    pub directory: PathBuf,
    pub arguments: Vec<String>,
}

pub struct Sandbox {
    root: tempfile::TempDir,
    directory: String,
    runs: std::cell::Cell<usize>,
}

/// Programs that run others, as they are on the system.
const WRAPPERS: [&str; 6] = ["env", "xargs", "timeout", "nice", "nohup", "find"];

impl Sandbox {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let programs = root.path().join("bin");
        fs::create_dir_all(&programs).unwrap();
        for (name, behaviour) in PROGRAMS {
            // One write for each record, because background commands write at the same time.
            let text = format!(
                "#!/bin/bash\nprintf -v record '%s\\037' \"${{0##*/}}\" \"$PWD\" \"$@\"\n\
                 printf '%s\\036' \"$record\" >> \"$RECORDS\"\n{behaviour}\n"
            );
            let path = programs.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for wrapper in WRAPPERS {
            let found = ["/usr/bin", "/bin"]
                .iter()
                .map(|dir| PathBuf::from(dir).join(wrapper))
                .find(|path| path.exists());
            symlink(found.expect(wrapper), programs.join(wrapper)).unwrap();
        }
        for shell in ["sh", "bash"] {
            symlink("/bin/bash", programs.join(shell)).unwrap();
        }
        let directory = root.path().join("work").to_str().unwrap().to_owned();
        Self { root, directory, runs: std::cell::Cell::new(0) }
    }

    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Runs a text with bash, and returns what it executed.
    pub fn run(&self, text: &str) -> Vec<Execution> {
        // What an earlier text left running writes to the file of that text.
        let number = self.runs.get();
        self.runs.set(number + 1);
        let log = self.root.path().join(format!("records-{number}"));
        let _ = fs::remove_dir_all(&self.directory);
        fs::create_dir_all(format!("{}/sub/deep", self.directory)).unwrap();
        for file in ["one.txt", "two.txt", "sub/three.txt"] {
            fs::write(format!("{}/{file}", self.directory), "line\n").unwrap();
        }
        let mut command = Command::new("/usr/bin/timeout");
        command.args(["-k", "1", "5", "/bin/bash", "-c", text]).env_clear();
        command.env("RECORDS", &log);
        command.env("PATH", self.root.path().join("bin")).env("FUNCNEST", "4").env("HOME", "/nonexistent");
        command.current_dir(&self.directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap();
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        let executions = text.split_terminator('\u{1e}').filter_map(|record| {
            let mut words = record.split_terminator('\u{1f}').map(str::to_owned);
            Some(Execution {
                program: words.next()?,
                directory: words.next()?.into(),
                arguments: words.collect(),
            })
        });
        executions.collect()
    }
}
