//! The files of a log, from the oldest to the newest.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::audit_chain::ChainedLine;
use crate::line_reader::LineReader;
use crate::log_file::rotated_path;

/// Adds the rotated files of each file, `FILE.2`, `FILE.1`, before it. Files that are named themselves stay where they are.
pub fn with_rotated_files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        let rotated = (1..u32::MAX).map(|number| rotated_path(path, number)).take_while(|file| file.exists());
        let rotated: Vec<PathBuf> = rotated.filter(|file| !paths.contains(file)).collect();
        files.extend(rotated.into_iter().rev());
        files.push(path.clone());
    }
    files
}

/// The files of an audit log with their rotated files, in the order of their first lines, however they are named.
///
/// # Errors
/// A file, which it names, can't be read.
pub fn audit_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let files = with_rotated_files(paths);
    let mut numbered = Vec::with_capacity(files.len());
    for file in &files {
        match first_seq(file) {
            Ok(Some(seq)) => numbered.push((seq, file)),
            // Without its first line nothing says where the file belongs: the names do.
            Ok(None) => {}
            Err(error) => return Err((file.clone(), error)),
        }
    }
    if numbered.len() < files.len() {
        return Ok(files);
    }
    numbered.sort_by_key(|(seq, _)| *seq);
    Ok(numbered.into_iter().map(|(_, file)| file.clone()).collect())
}

fn first_seq(path: &Path) -> io::Result<Option<u64>> {
    let mut lines = LineReader::new(File::open(path)?);
    let first = lines.next_line()?;
    Ok(first.and_then(|line| ChainedLine::parse(line.bytes)).map(|line| line.seq))
}
