//! YAML front end: reads the rules files of a bundle into trees with the position of every key and value.
//!
//! `load` finds and reads files, `parse` parses one string, `span_in` resolves positions inside a string.

mod aliases;
mod directive_comments;
mod file_content;
mod document_tree;
mod file_discovery;
mod load;
mod mapping_entries;
mod parse;
mod text_offsets;
mod unsupported_yaml;
mod plain_scalar;
mod yaml_errors;

pub use directive_comments::{DirectiveComment, find_comments};
pub use document_tree::{MAX_NESTING, MAX_NODES, MappingEntry, StringStyle, YamlNode, YamlString, YamlValue};
pub use file_content::read_referenced_file;
pub use file_content::{FileContentError, NotUtf8Error};
pub use file_discovery::{BundleFiles, find_bundle_files, is_policy_test, is_rules_file};
pub use load::load_texts_below;
pub use load::load_trusted;
pub use load::{LoadedFile, LoadedSources, load, load_changed, load_policy_tests, load_texts};
pub use parse::parse;
pub use text_offsets::{exact_span_in, span_in};
