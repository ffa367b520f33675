//! The author's face of the policy language: the shapes of its parts, and the reading of texts that mean more than text
//! (paths, patterns, templates, durations) with placed errors.

mod json_schema;
mod reader;
mod shape;

pub use json_schema::{Constraint, json_schema};
pub use reader::{Polarity, Reader};
pub use shape::{Field, Record, Shape};
