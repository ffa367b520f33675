//! The directories in which a command can run, and absolute paths from them.

use crate::word::{Certainty, ShellWord};

/// How many directories are distinguished.
const MAX_DIRECTORIES: usize = 4;

/// The directories in which a command can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Directories {
    /// Any.
    #[default]
    Unknown,
    /// One of these. They are absolute, or begin with `~`.
    OneOf(Vec<String>),
}

impl Directories {
    /// One directory, which must be absolute. Without it, paths stay relative to the directory in which the text starts.
    pub fn new(directory: Option<&str>) -> Self {
        match directory {
            Some(directory) if directory.starts_with('/') => Self::OneOf(vec![directory.to_owned()]),
            Some(_) => Self::Unknown,
            None => Self::OneOf(vec![".".to_owned()]),
        }
    }

    /// The directory, if there is only one.
    pub fn single(&self) -> Option<&str> {
        match self {
            Self::OneOf(directories) => match directories.as_slice() {
                [directory] => Some(directory),
                _ => None,
            },
            Self::Unknown => None,
        }
    }

    /// The directories of both.
    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        let (Self::OneOf(mut directories), Self::OneOf(others)) = (self, other) else { return Self::Unknown };
        for other in others {
            if !directories.contains(&other) {
                directories.push(other);
            }
        }
        if directories.len() > MAX_DIRECTORIES { Self::Unknown } else { Self::OneOf(directories) }
    }

    /// The directories after `cd` to a path.
    #[must_use]
    pub(crate) fn change(&self, path: &str) -> Self {
        self.paths(path).map_or(Self::Unknown, Self::OneOf)
    }

    /// The paths that a path can be, without `.` and `..` where names are before them. `None` if they are not known.
    pub fn paths(&self, path: &str) -> Option<Vec<String>> {
        if path.starts_with(['/', '~']) {
            return Some(vec![normalize(path)]);
        }
        match self {
            Self::Unknown => None,
            Self::OneOf(directories) => {
                let mut paths: Vec<String> =
                    directories.iter().map(|directory| normalize(&format!("{directory}/{path}"))).collect();
                paths.dedup();
                Some(paths)
            }
        }
    }

    /// The absolute paths that a word can be: for a pattern, paths that are inside a directory exactly if all names that match it are. `None` if they
    /// are not known.
    pub fn paths_of(&self, word: &ShellWord) -> Option<Vec<String>> {
        match word.certainty {
            Certainty::Unknown => None,
            Certainty::Known => self.paths(&word.text),
            Certainty::Pattern => self.paths(&representative(&word.text)?),
        }
    }
}

/// A path that stands for all that match a pattern: each name with a wildcard is replaced. `None` if such a name can be `..`.
fn representative(pattern: &str) -> Option<String> {
    let has_wildcard = |name: &str| name.contains(['*', '?', '[']);
    let mut names = Vec::new();
    for name in pattern.split('/') {
        match has_wildcard(name) {
            // `.*` matches `..` in some shells.
            true if name.starts_with(['.', '[']) => return None,
            true => names.push("name"),
            false => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// The path without `.`, `..` and empty names, as far as they have a name before them.
fn normalize(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => match names.last() {
                Some(last) if *last != ".." && !last.starts_with('~') => {
                    names.pop();
                }
                None if is_absolute => {}
                _ => names.push(name),
            },
            name => names.push(name),
        }
    }
    let joined = names.join("/");
    match (is_absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized_without_leaving_what_is_known() {
        for (path, expected) in [
            ("/work/./src//a", "/work/src/a"),
            ("/work/../etc/shadow", "/etc/shadow"),
            ("/../etc", "/etc"),
            ("./../x", "../x"),
            ("a/..", "."),
            ("~/../x", "~/../x"),
            ("~/a/../.ssh", "~/.ssh"),
        ] {
            assert_eq!(normalize(path), expected, "{path}");
        }
    }
}
