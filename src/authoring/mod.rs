//! Schema of rules files: the shapes of their parts, and readers for strings with a syntax of their own
//! (paths, patterns, templates, durations), with errors at exact positions.

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
