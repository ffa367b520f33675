//! `Error`: a failed conversion between JSON and a Rust type.

use std::fmt;

use super::ParseError;
use super::parser::value_position::{ValueStep, find_position};

/// A failed conversion between JSON and a Rust type.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The text is not JSON.
    Parse(ParseError),
    /// The type does not accept a value, or can't be written as JSON.
    Data(DataError),
}

/// A value that a type does not accept, with its path.
#[derive(Clone, Debug, PartialEq)]
pub struct DataError {
    message: String,
    /// The path of the value, innermost step first.
    steps: Vec<ValueStep>,
    position: Option<(usize, usize)>,
}

impl Error {
    pub(super) fn with_parent_step(mut self, step: ValueStep) -> Self {
        if let Self::Data(error) = &mut self {
            error.steps.push(step);
        }
        self
    }

    /// Adds the position in the text from which the value was read.
    pub(super) fn with_position(mut self, text: &str) -> Self {
        if let Self::Data(error) = &mut self {
            error.position = find_position(text, error.steps.iter().rev());
        }
        self
    }

    /// The message without the position.
    pub fn message(&self) -> String {
        match self {
            Self::Parse(error) => error.kind.to_string(),
            Self::Data(error) => error.message.clone(),
        }
    }

    /// Line and column in the text, both from one. Returns `None` without a text.
    pub fn position(&self) -> Option<(usize, usize)> {
        match self {
            Self::Parse(error) => Some((error.line, error.column)),
            Self::Data(error) => error.position,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Parse(error) => return fmt::Display::fmt(error, f),
            Self::Data(error) => error,
        };
        f.write_str(&error.message)?;
        if let Some((line, column)) = error.position {
            return write!(f, " at line {line} column {column}");
        }
        if error.steps.is_empty() {
            return Ok(());
        }
        f.write_str(" at `")?;
        for (index, step) in error.steps.iter().rev().enumerate() {
            match step {
                ValueStep::Key(key) if index == 0 => f.write_str(key)?,
                ValueStep::Key(key) => write!(f, ".{key}")?,
                ValueStep::Index(at) => write!(f, "[{at}]")?,
            }
        }
        f.write_str("`")
    }
}

impl std::error::Error for Error {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Data(DataError { message: message.to_string(), steps: Vec::new(), position: None })
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        serde::de::Error::custom(message)
    }
}
