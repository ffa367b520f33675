//! A word after expansion, as far as it is known before the command runs.

/// How much is known of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The text is the word.
    Known,
    /// The text is a pattern of file names, which the shell replaces with the names that match it.
    Pattern,
    /// The text is the word as written; what it is when the command runs is not known.
    Unknown,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellWord {
    /// The text. A `~` at its start stands for the home directory, as `$HOME` does.
    pub text: String,
    /// How much is known of it.
    pub certainty: Certainty,
    /// Whether there can be none or several in its place.
    pub is_several: bool,
    /// Programs whose output is part of it.
    pub input_from: Vec<String>,
}

impl ShellWord {
    /// A known word.
    pub fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Known, is_several: false, input_from: Vec::new() }
    }

    /// A word that is known only when the command runs.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { certainty: Certainty::Unknown, ..Self::known(text) }
    }

    /// Any number of words that are known only when the command runs.
    pub fn unknown_words(text: impl Into<String>) -> Self {
        Self { is_several: true, ..Self::unknown(text) }
    }

    /// The word, if it is known.
    pub fn as_known(&self) -> Option<&str> {
        (self.certainty == Certainty::Known && !self.is_several).then_some(self.text.as_str())
    }

    /// Whether it may be or contain a flag.
    pub fn may_be_flag(&self) -> bool {
        match self.certainty {
            Certainty::Known => self.text.starts_with('-'),
            Certainty::Pattern => self.text.starts_with(['-', '*', '?', '[']),
            Certainty::Unknown => !self.text.starts_with(['/', '.', '~']),
        }
    }
}
