//! `results`: how the texts that tools return are read as data.

use super::{DefinitionReader, shapes};
use crate::diagnostic::{DUPLICATE_NAME, Diagnostic, Diagnostics};
use crate::matcher::PatternList;
use crate::rules_schema::PolicyReader;
use crate::script::Names;
use crate::source::{LoadedFile, MappingEntry, YamlNode};
use crate::tool_result::{ResultFormat, ResultFormats};

/// Reads the formats of all files.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: &std::sync::Arc<Names>) -> ResultFormats {
    let mut formats = ResultFormats::default();
    for entry in entries(reader.files) {
        let Some(format) = entry.value.as_str().and_then(ResultFormat::from_name) else { continue };
        let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
        policy_reader.names = std::sync::Arc::clone(names);
        let key = YamlNode::from_key(entry);
        for pattern in PatternList::read(&key, &mut policy_reader).patterns {
            let text = pattern.text().to_owned();
            if !formats.add(pattern, format) {
                let message = format!("the results of `{text}` have two formats");
                policy_reader.report(
                    Diagnostic::new(&DUPLICATE_NAME, entry.key_span, message)
                        .with_help("a tool has one format: remove one of the two entries"),
                );
            }
        }
    }
    formats
}

/// Reports formats in the files of a layer.
pub(in crate::policy) fn reject_in_layer(files: &[LoadedFile], diagnostics: &mut Diagnostics) {
    for entry in entries(files) {
        let message = format!("a lower layer cannot declare the results of `{}`", entry.key);
        diagnostics.push(
            Diagnostic::new(&DUPLICATE_NAME, entry.key_span, message)
                .with_help("declare them under `results` in the bundle"),
        );
    }
}

fn entries(files: &[LoadedFile]) -> impl Iterator<Item = &MappingEntry> {
    let sections = files.iter().filter_map(|file| file.root.get(shapes::RESULTS.name));
    sections.flat_map(|section| section.entries().unwrap_or_default())
}
