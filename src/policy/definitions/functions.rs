//! `functions`: pure Rhai functions for expressions.

use super::DefinitionReader;
use crate::diagnostic::{DUPLICATE_NAME, Diagnostic, INVALID_SCRIPT};
use crate::json::{self, Value};
use crate::rules_schema::{PolicyReader, ScriptProblem};
use crate::script::{DefinitionName, Names, SharedFunctions};
use crate::source::{YamlNode, YamlValue};

/// Reads the functions of the bundle, which one of its files defines.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: &mut Names) {
    let files = reader.files;
    let mut nodes = files.iter().filter_map(|file| file.root.get("functions"));
    let Some(node) = nodes.next() else { return };
    for second in nodes {
        reader.diagnostics.push(
            Diagnostic::new(&DUPLICATE_NAME, second.span, "two files of the bundle define `functions`")
                .with_label(node.span, "first defined here")
                .with_help("put all functions into one of them"),
        );
    }
    let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
    let file_text = node.get("file").and_then(|file| policy_reader.read_referenced_file(file, ".rhai"));
    let text_node = match (&node.value, file_text) {
        (YamlValue::String(_), _) => node.clone(),
        (_, Some((source, text))) => YamlNode::whole_file(source, text),
        _ => return,
    };
    let text = text_node.as_str().unwrap_or_default();
    match SharedFunctions::compile(text, names) {
        Ok(functions) => {
            let constants: Vec<Value> = names
                .digests_of(functions.definitions())
                .map(|(name, digest)| json::json!([name.name(), digest.to_string()]))
                .collect();
            let digest = json::digest(&json::json!([text, constants]));
            for name in functions.names() {
                names.add_digest(DefinitionName::Function(name.to_owned()), digest);
            }
            names.set_functions(functions);
        }
        Err(error) => {
            let example = "write for example `fn fee(amount) { amount * 0.02 }`";
            let ScriptProblem { range, message, help } =
                ScriptProblem::from_error(text, error, "functions", example);
            policy_reader.report_in(&INVALID_SCRIPT, &text_node, range, message, Some(help));
        }
    }
    reader.referenced_files.append(&mut std::mem::take(&mut policy_reader.referenced_paths));
}
