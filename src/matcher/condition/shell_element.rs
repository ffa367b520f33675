//! A word of a shell command as an element: the forms in which tests read it.

use callgate_shell::{Certainty, Directories, ShellWord};

use crate::call::WordForms;

/// The texts and paths of a word.
pub(super) struct ShellElement {
    /// The texts that tests read: the word, or for files the paths that it can be.
    pub(super) texts: Vec<String>,
    /// What `inside` reads, and whether other tests can be decided.
    pub(super) forms: WordForms,
}

impl ShellElement {
    /// A word as it is written.
    pub(super) fn word(word: &ShellWord, directories: &Directories) -> Self {
        let paths = directories.paths_of(word);
        let is_pattern = word.certainty == Certainty::Pattern;
        Self { texts: vec![word.text.clone()], forms: WordForms { paths, is_pattern } }
    }

    /// A file. Its texts are the paths that it can be, if the command's directory is known.
    pub(super) fn file(word: &ShellWord, directories: &Directories) -> Self {
        let is_pattern = word.certainty == Certainty::Pattern;
        let texts = match is_pattern {
            true => directories.paths(&word.text),
            false => directories.paths_of(word),
        };
        let paths = directories.paths_of(word);
        Self { texts: texts.unwrap_or_default(), forms: WordForms { paths, is_pattern } }
    }
}
