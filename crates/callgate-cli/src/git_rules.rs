//! Rules of a git revision: `git:REVISION:PATH` → the files of that revision in a temporary directory. Uses the `git` command.

use std::fs;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::exit::CommandError;

/// What precedes the revision.
const PREFIX: &str = "git:";
/// The most files, and the most bytes of all of them.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 256 << 20;
/// The most bytes of a message of git that is shown.
const MAX_MESSAGE: usize = 500;

/// Files of a git revision, in a directory that is removed with this value.
#[derive(Debug)]
pub(super) struct GitRules {
    directory: TempDir,
    path: PathBuf,
    revision: String,
}

/// A file of a revision.
struct TreeFile {
    object: String,
    path: PathBuf,
}

impl GitRules {
    /// Reads the files of `git:REVISION:PATH`. Returns `None` for any other path.
    ///
    /// # Errors
    /// If git, the repository, the revision or the path is missing, or the files are too large.
    pub(super) fn read(location: &Path) -> Result<Option<Self>, CommandError> {
        let Some(text) = location.to_str().and_then(|text| text.strip_prefix(PREFIX)) else {
            return Ok(None);
        };
        let (revision, path) = text.split_once(':').filter(|(revision, path)| !revision.is_empty() && !path.is_empty()).ok_or_else(
            || CommandError::new(format!("`{}` names no path in a revision; write `git:REVISION:PATH`, such as `git:main:policies`", location.display())),
        )?;
        let path = plain_path(Path::new(path)).ok_or_else(|| {
            CommandError::new(format!("`{path}` must be a path below the current directory, without `..`"))
        })?;
        let commit = find_commit(revision)?;
        let files = list_files(&commit, &path)?;
        if files.is_empty() {
            return Err(CommandError::new(format!(
                "`{}` has no files in revision `{revision}`",
                path.display()
            )));
        }
        let directory = TempDir::with_prefix("callgate-")
            .map_err(|error| CommandError::new(format!("a temporary directory can't be created: {error}")))?;
        write_files(&files, directory.path())?;
        let path = directory.path().join(path);
        Ok(Some(Self { directory, path, revision: revision.to_owned() }))
    }

    /// The rules file, or the directory to search for them.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What begins the names of the files, and what reports show instead.
    pub(super) fn displayed_prefix(&self) -> (String, String) {
        (format!("{}/", self.directory.path().display()), format!("{PREFIX}{}:", self.revision))
    }
}

/// The path without `.`. Returns `None` if it leads out of the current directory.
fn plain_path(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// The id of a revision's commit. A revision that begins with `-` is no option.
fn find_commit(revision: &str) -> Result<String, CommandError> {
    let name = format!("{revision}^{{commit}}");
    let found = run(git().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]), &[]);
    let id = found.ok().map(|id| String::from_utf8_lossy(&id).trim().to_owned());
    id.filter(|id| is_object_id(id)).ok_or_else(|| {
        let problem = "is not a revision of a git repository here; in CI, fetch it first (`fetch-depth: 0`)";
        CommandError::new(format!("`{revision}` {problem}"))
    })
}

fn is_object_id(id: &str) -> bool {
    id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The regular files at and below a path. Symbolic links and submodules are left out.
fn list_files(commit: &str, path: &Path) -> Result<Vec<TreeFile>, CommandError> {
    let mut list = git();
    list.args(["ls-tree", "-r", "-z", "--full-name", commit]);
    // The path as it is, and not as a pattern; without one, everything.
    list.arg("--");
    if !path.as_os_str().is_empty() {
        list.arg(path);
    }
    let listed = run(&mut list, &[])?;
    let prefix = run(git().args(["rev-parse", "--show-prefix"]), &[])?;
    let prefix = String::from_utf8_lossy(&prefix).trim_end_matches('\n').to_owned();
    let mut files = Vec::new();
    for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let entry = String::from_utf8_lossy(entry);
        // `MODE TYPE ID`, a tab, and the name.
        let Some((description, name)) = entry.split_once('\t') else { continue };
        let mut parts = description.split(' ');
        let (Some(mode), Some(object)) = (parts.next(), parts.nth(1)) else { continue };
        // Whoever wrote the tree chose the names.
        let name = name.strip_prefix(&prefix).map(Path::new).and_then(plain_path);
        let Some(path) = name.filter(|_| mode.starts_with("100") && is_object_id(object)) else { continue };
        files.push(TreeFile { object: object.to_owned(), path });
        if files.len() > MAX_FILES {
            return Err(CommandError::new(format!(
                "the revision has more than {MAX_FILES} files there; name a directory of rules"
            )));
        }
    }
    Ok(files)
}

/// Writes the files below a directory.
fn write_files(files: &[TreeFile], directory: &Path) -> Result<(), CommandError> {
    let names: String = files.iter().map(|file| format!("{}\n", file.object)).collect();
    let contents = run(git().args(["cat-file", "--batch"]), names.as_bytes())?;
    let mut rest = contents.as_slice();
    for file in files {
        let content = next_object(&mut rest)
            .ok_or_else(|| CommandError::new(format!("`{}` can't be read from git", file.path.display())))?;
        let path = directory.join(&file.path);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
        written
            .map_err(|error| CommandError::new(format!("`{}` can't be written: {error}", path.display())))?;
    }
    Ok(())
}

/// The content of the next object: `ID blob SIZE`, a line break, the content, and a line break.
fn next_object<'c>(rest: &mut &'c [u8]) -> Option<&'c [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (header, after) = rest.split_at_checked(end)?;
    let size: usize = std::str::from_utf8(header).ok()?.split_once(" blob ")?.1.parse().ok()?;
    let (content, after) = after.get(1..)?.split_at_checked(size)?;
    *rest = after.get(1..)?;
    Some(content)
}

/// git without anything that writes, asks or loads from elsewhere, and with paths that are no patterns.
fn git() -> Command {
    let mut git = Command::new("git");
    git.args(["--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false"])
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    git
}

/// Runs git with an input. Returns its output.
fn run(git: &mut Command, input: &[u8]) -> Result<Vec<u8>, CommandError> {
    let failed = |problem: &dyn std::fmt::Display| CommandError::new(format!("git can't be run: {problem}"));
    let mut child = git
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut output = Vec::new();
    let mut message = Vec::new();
    // Each pipe by a thread, because git waits for a full one.
    std::thread::scope(|scope| {
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
        scope.spawn(|| stderr.map(|stderr| stderr.take(MAX_BYTES).read_to_end(&mut message)));
        stdout.map(|stdout| stdout.take(MAX_BYTES + 1).read_to_end(&mut output))
    })
    .transpose()
    .map_err(|error| failed(&error))?;
    if output.len() as u64 > MAX_BYTES {
        // It waits to write the rest.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    if output.len() as u64 > MAX_BYTES {
        return Err(CommandError::new(format!(
            "the files of the revision are larger than {} MiB",
            MAX_BYTES >> 20
        )));
    }
    if status.success() {
        return Ok(output);
    }
    let message: String = String::from_utf8_lossy(&message).trim().chars().take(MAX_MESSAGE).collect();
    Err(CommandError::new(format!("git failed: {message}")))
}
