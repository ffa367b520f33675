//! `tools`: the known tools, in JSON files beside the rules.

use super::{DefinitionReader, shapes};
use crate::diagnostic::{DUPLICATE_NAME, Diagnostic, Diagnostics, INVALID_DATA};
use crate::json::{self, Digest, Value};
use crate::rules_schema::PolicyReader;
use crate::source::{LoadedFile, YamlNode};
use crate::tools::{self, ToolDescriptor};

/// The known tools of a bundle.
#[derive(Clone, Debug, Default)]
pub struct DeclaredTools {
    /// The tools, in the order of files.
    pub descriptors: Vec<ToolDescriptor>,
    /// The digests of the files.
    pub digests: Vec<Digest>,
}

/// Reads the tools of all files. A tool that two files describe differently is reported.
pub(super) fn read(reader: &mut DefinitionReader<'_>) -> DeclaredTools {
    let mut declared = DeclaredTools::default();
    for node in entries(reader.files) {
        let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
        let found = policy_reader.read_referenced_file(node, ".json");
        reader.referenced_files.append(&mut std::mem::take(&mut policy_reader.referenced_paths));
        let Some((_, text)) = found else { continue };
        let name = node.as_str().unwrap_or_default();
        match tools::parse_list(&text) {
            Ok(list) => add(list, node, &mut declared, reader),
            Err(error) => reader.diagnostics.push(
                Diagnostic::new(&INVALID_DATA, node.span, format!("`{name}` is not a valid tools file: {error}"))
                    .with_help("correct that file: it must hold a JSON array of tools, or the result of an MCP `tools/list`"),
            ),
        }
        declared.digests.push(json::digest(&Value::from(text)));
    }
    declared
}

fn add(
    list: Vec<ToolDescriptor>,
    node: &YamlNode,
    declared: &mut DeclaredTools,
    reader: &mut DefinitionReader<'_>,
) {
    for tool in list {
        let is_same = |known: &&ToolDescriptor| known.name == tool.name && known.server == tool.server;
        match declared.descriptors.iter().find(is_same) {
            Some(known) if *known == tool => {}
            Some(_) => {
                let message = format!("two descriptions of the tool `{}` differ", tool.name.escape_debug());
                reader.diagnostics.push(
                    Diagnostic::new(&DUPLICATE_NAME, node.span, message)
                        .with_help("a tool of a server is described once: remove one of the two"),
                );
            }
            None => declared.descriptors.push(tool),
        }
    }
}

/// Reports tools in the files of a layer.
pub(in crate::policy) fn reject_in_layer(files: &[LoadedFile], diagnostics: &mut Diagnostics) {
    for node in entries(files) {
        diagnostics.push(
            Diagnostic::new(&DUPLICATE_NAME, node.span, "a lower layer cannot declare tools")
                .with_help("declare them under `tools` in the bundle"),
        );
    }
}

fn entries(files: &[LoadedFile]) -> impl Iterator<Item = &YamlNode> {
    files.iter().filter_map(|file| file.root.get(shapes::TOOLS.name)).filter(|node| node.as_str().is_some())
}
