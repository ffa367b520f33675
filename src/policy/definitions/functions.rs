//! `functions`: pure Rhai functions for expressions, from all files of the bundle.

use std::collections::HashMap;

use super::DefinitionReader;
use crate::diagnostic::{DUPLICATE_NAME, Diagnostic, INVALID_SCRIPT, Span};
use crate::json::{self, Value};
use crate::rules_schema::{PolicyReader, ScriptProblem};
use crate::script::{DefinitionName, Names, ScriptCompileError, SharedFunctions};
use crate::source::{YamlNode, YamlValue};

/// The help for an error that has none.
const EXAMPLE: &str = "write for example `fn fee(amount) { amount * 0.02 }`";

/// The functions of one file, and where they begin in the functions of the bundle.
struct FunctionText {
    node: YamlNode,
    start: usize,
}

impl FunctionText {
    fn text(&self) -> &str {
        self.node.as_str().unwrap_or_default()
    }

    /// Reports an error of this text.
    fn report(&self, error: ScriptCompileError, reader: &mut PolicyReader<'_>) {
        let ScriptProblem { range, message, help } =
            ScriptProblem::from_error(self.text(), error, "functions", EXAMPLE);
        reader.report_in(&INVALID_SCRIPT, &self.node, range, message, Some(help));
    }
}

/// Reads the functions of the bundle. Each may use those of all files.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: &mut Names) {
    let nodes: Vec<&YamlNode> = reader.files.iter().filter_map(|file| file.root.get("functions")).collect();
    let Some(first) = nodes.first() else { return };
    if names.functions().names().next().is_some() {
        reader.diagnostics.push(
            Diagnostic::new(&DUPLICATE_NAME, first.span, "the bundle defines `functions` already")
                .with_help("a lower layer can use the functions of the bundle, and not define others"),
        );
        return;
    }
    let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
    let (texts, joined) = read_texts(&nodes, &mut policy_reader);
    if !are_valid(&texts, &mut policy_reader) {
        names.set_invalid_functions();
    } else if !texts.is_empty() {
        match SharedFunctions::compile(&joined, names) {
            Ok(mut functions) => {
                functions.locate_branches(|range| {
                    let text = texts.iter().rev().find(|text| text.start <= range.start);
                    let span = text.map(|text| {
                        let range = range.start - text.start..range.end - text.start;
                        policy_reader.span_in(&text.node, range)
                    });
                    span.unwrap_or(first.span)
                });
                add_functions(functions, &joined, names);
            }
            Err(mut error) => {
                let offset = error.offset.unwrap_or(0);
                let text = texts.iter().rev().find(|text| text.start <= offset);
                if let Some(text) = text {
                    error.offset = error.offset.map(|offset| offset - text.start);
                    text.report(error, &mut policy_reader);
                }
                names.set_invalid_functions();
            }
        }
    }
    reader.referenced_files.append(&mut std::mem::take(&mut policy_reader.referenced_paths));
}

/// The functions of each file, and all of them as one text.
fn read_texts(nodes: &[&YamlNode], reader: &mut PolicyReader<'_>) -> (Vec<FunctionText>, String) {
    let (mut texts, mut joined) = (Vec::new(), String::new());
    for node in nodes {
        let file_text = node.get("file").and_then(|file| reader.read_referenced_file(file, ".rhai"));
        let node = match (&node.value, file_text) {
            (YamlValue::String(_), _) => (*node).clone(),
            (_, Some((source, text))) => YamlNode::whole_file(source, text),
            _ => continue,
        };
        if !joined.is_empty() {
            joined.push('\n');
        }
        let text = FunctionText { node, start: joined.len() };
        joined.push_str(text.text());
        texts.push(text);
    }
    (texts, joined)
}

/// Whether each text can be parsed, and no two of them define the same name. Problems are reported.
fn are_valid(texts: &[FunctionText], reader: &mut PolicyReader<'_>) -> bool {
    let mut known: HashMap<String, (usize, Span)> = HashMap::new();
    let mut valid = true;
    for (index, text) in texts.iter().enumerate() {
        let definitions = match SharedFunctions::parse_names(text.text()) {
            Ok(definitions) => definitions,
            Err(error) => {
                text.report(error, reader);
                valid = false;
                continue;
            }
        };
        for (name, offset) in definitions {
            let span = reader.span_in(&text.node, offset..offset + name.len());
            let (file, first) = *known.entry(name.clone()).or_insert((index, span));
            // Two functions of one text are an error of the script.
            if file != index {
                let message = format!("`{name}` is defined twice under `functions`");
                reader.report(
                    Diagnostic::new(&DUPLICATE_NAME, span, message)
                        .with_label(first, "first defined here")
                        .with_help("rename or remove one of them: a bundle has one function of each name"),
                );
                valid = false;
            }
        }
    }
    valid
}

fn add_functions(functions: SharedFunctions, text: &str, names: &mut Names) {
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
