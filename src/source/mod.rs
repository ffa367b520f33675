//! YAML front end: reads the rules files of a bundle into trees with the position of every key and value.
//!
//! [`load`] finds and reads files, [`parse`] parses one string, [`span_in`] resolves positions inside a string.

mod aliases;
mod comments;
mod content;
mod document;
mod files;
mod load;
mod parse;
mod place;
mod refusals;
mod scalar;
mod syntax;

pub use comments::{Comment, comments};
pub(crate) use content::read_named;
pub use content::{FileContentError, NotUtf8};
pub use document::{Entry, Node, StringStyle, Text, YamlValue};
pub use files::{BundleFiles, is_policy_test, is_rules_file, survey};
pub(crate) use load::load_texts_below;
#[cfg(feature = "mcp")]
pub(crate) use load::load_trusted;
pub use load::{Loaded, LoadedFile, load, load_policy_tests, load_texts};
pub use parse::{MAX_NESTING, MAX_NODES, parse};
pub use place::{exact_span_in, span_in};
