//! The author's face of the policy language: the shapes of its parts, and the reading of texts that mean more than text
//! (paths, patterns, templates, durations) with placed errors.

mod check;
mod json_schema;
mod keys;
mod meant;
mod path_words;
mod regex_words;
mod reader;
mod script_words;
mod shape;

pub use json_schema::{Constraint, json_schema};
pub use keys::head;
pub use meant::meant;
pub use reader::{Polarity, Reader};
pub use script_words::ScriptProblem;
pub use shape::{Field, Record, Shape};
