//! The text of a `shell` condition, and the directory in which it runs.

use callgate_shell::{Analyzer, ShellScript};

use crate::call::{CallView, NodeRef};
use crate::diagnostic::{Diagnostic, INVALID_OPERAND};
use crate::json::Value;
use crate::matcher::truth::Truth;
use crate::matcher::value_source::ValueSource;
use crate::rules_schema::PolicyReader;
use crate::source::YamlNode;

/// The path of the directory in which a text runs, if the rules say nothing else.
const DEFAULT_DIRECTORY: &str = "$.context.cwd";

/// A text, or a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShellText {
    Text(String),
    Words(Vec<String>),
}

/// The directory in which a text runs.
#[derive(Debug)]
pub(super) enum ShellDirectory {
    Literal(String),
    Source(ValueSource),
}

impl ShellText {
    /// Returns `None` for a value that is neither a string nor an array of strings.
    pub(super) fn from_node(node: NodeRef<'_>) -> Option<Self> {
        if let Some(text) = node.as_str() {
            return Some(Self::Text(text.to_owned()));
        }
        let words = node.as_json().and_then(Value::as_array)?.iter();
        let words: Vec<String> = words.map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        (!words.is_empty()).then_some(Self::Words(words))
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Words(words) => words.iter().map(String::len).sum(),
        }
    }

    pub(super) fn analyze(&self, analyzer: &Analyzer, directory: Option<&str>) -> ShellScript {
        match self {
            Self::Text(text) => analyzer.analyze(text, directory),
            Self::Words(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                analyzer.analyze_arguments(&words, directory)
            }
        }
    }
}

impl ShellDirectory {
    pub(super) fn read(shell: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let Some(node) = shell.get("directory") else {
            let path = YamlNode::from_json(&Value::from(DEFAULT_DIRECTORY), shell.span);
            return ValueSource::read_path(&path, reader).map(Self::Source);
        };
        if let Some(source) = ValueSource::read_operand(node, reader) {
            return source.map(Self::Source);
        }
        let text = node.as_str()?;
        if text.starts_with('/') {
            return Some(Self::Literal(text.to_owned()));
        }
        reader.report(
            Diagnostic::new(&INVALID_OPERAND, node.span, "`directory` must be an absolute directory")
                .with_help("write for example `directory: /srv`, or `directory: { path: $.context.cwd }`"),
        );
        None
    }

    /// The directory. `None` if it is absent.
    pub(super) fn find(&self, view: &CallView<'_>) -> Result<Option<String>, Truth> {
        match self {
            Self::Literal(directory) => Ok(Some(directory.clone())),
            Self::Source(source) => source.with_values(view, |values| {
                let Some(value) = values?.first().copied() else { return Ok(None) };
                match value.as_str() {
                    Some(text) if text.starts_with('/') => Ok(Some(text.to_owned())),
                    _ => Err(Truth::Undecided(format!("`{}` is not an absolute directory", source.text()))),
                }
            }),
        }
    }
}
