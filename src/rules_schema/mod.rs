//! Schema of rules files: the shapes of their parts, and readers for strings with a syntax of their own
//! (paths, patterns, templates, durations), with errors at exact positions.

mod constants;
mod shape_check;
mod json_schema;
mod mapping_keys;
mod did_you_mean;
mod path_hints;
mod regex_hints;
mod policy_reader;
mod script_hints;
mod shape;

pub use constants::{CONSTANT, insert_constants};
pub use did_you_mean::did_you_mean;
pub use json_schema::{KeyConstraint, json_schema};
pub use mapping_keys::head_span;
pub use policy_reader::{Polarity, PolicyReader, SharedParts};
pub use script_hints::ScriptProblem;
pub use shape::{FieldShape, RecordShape, Shape};
