//! Programs that run the command in their arguments.

/// How a wrapper runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The words behind its own flags and operands are a program and its arguments.
    Command,
    /// The words behind its own flags and operands are joined to shell text.
    Text,
    /// Every word behind its own flags and operands is shell text.
    Texts,
    /// As `Command`, with more arguments that it reads.
    CommandWithMore,
}

/// A program that runs the command in its arguments, defined by a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// The program and its subcommands: `["mycloud", "exec"]`.
    pub(crate) words: Vec<String>,
    /// The number of its own operands before the command.
    pub(crate) operands: usize,
    /// Its flags that have a value.
    pub(crate) flags_with_value: Vec<String>,
    /// How it runs the command.
    pub(crate) runs: Runs,
    /// Whether the command runs on another machine or in another file system.
    pub(crate) is_remote: bool,
}

/// An invalid wrapper.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrapperError(&'static str);

impl Wrapper {
    /// A wrapper that runs the words behind `operands` operands as a program and its arguments. `command` is its program, and subcommands
    /// separated by spaces.
    ///
    /// # Errors
    /// Returns [`WrapperError`] if `command` has no program, or one with a directory.
    pub fn new(command: &str, operands: usize) -> Result<Self, WrapperError> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        match words.first() {
            None => return Err(WrapperError("a wrapper needs the name of its program")),
            Some(program) if program.contains('/') || program.starts_with('-') => {
                return Err(WrapperError("the program of a wrapper is a name without a directory"));
            }
            Some(_) => {}
        }
        Ok(Self { words, operands, flags_with_value: Vec::new(), runs: Runs::Command, is_remote: false })
    }

    /// The same with flags that have a value.
    #[must_use]
    pub fn with_flags_with_value(self, flags: Vec<String>) -> Self {
        Self { flags_with_value: flags, ..self }
    }

    /// The same for a wrapper that joins its arguments to shell text, as `ssh` does.
    #[must_use]
    pub fn with_text(self) -> Self {
        Self { runs: Runs::Text, ..self }
    }

    /// The same for a wrapper that runs the command on another machine or in another file system.
    #[must_use]
    pub fn with_remote(self) -> Self {
        Self { is_remote: true, ..self }
    }
}
