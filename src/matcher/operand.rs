//! Operands of tests: literals of the rules file, or values at another path of the same call document.

use smallvec::SmallVec;

use super::truth::Truth;
use crate::call::{CallView, NodeRef};
use crate::diagnostic::{Diagnostic, INVALID_OPERAND};
use crate::json::Value;
use crate::path::Path;
use crate::rules_schema::{Polarity, PolicyReader};
use crate::source;

/// The value of an operand.
#[derive(Clone, Copy, Debug)]
pub struct ResolvedOperand<'a> {
    /// The value.
    pub value: NodeRef<'a>,
    /// Whether it is a literal of the rules file. Otherwise it comes from the call.
    pub is_literal: bool,
}

/// An operand with a single value.
#[derive(Debug)]
pub enum Operand {
    /// A literal of the rules file.
    Literal(Value),
    /// A path into the call document.
    Path(Path),
}

impl Operand {
    /// Reads an operand: `{ path: … }` is a path, everything else is a literal.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let Some(path) = operand_path_node(node) else {
            return check_literal(node, reader).then(|| Self::Literal(node.to_json()));
        };
        let path = reader.read_path(path)?;
        if !path.is_singular() {
            reader.report(
                Diagnostic::new(
                    &INVALID_OPERAND,
                    operand_path_node(node).map_or(node.span, |path| path.span),
                    "this path may return several values, and the operator compares with one",
                )
                .with_help("use `in:` or `not_in:` to compare with several"),
            );
            return None;
        }
        Some(Self::Path(path))
    }

    /// Returns the value.
    ///
    /// # Errors
    /// Returns the truth of the test if the operand is absent or can't be read.
    pub fn value<'a>(&'a self, view: &CallView<'a>) -> Result<ResolvedOperand<'a>, Truth> {
        match self {
            Self::Literal(value) => Ok(ResolvedOperand { value: NodeRef::Json(value), is_literal: true }),
            Self::Path(path) => {
                let value = resolve_path(path, view)?.first().copied().ok_or(Truth::Absent)?;
                Ok(ResolvedOperand { value, is_literal: false })
            }
        }
    }
}

/// An operand with several values.
#[derive(Debug)]
pub enum OperandSet {
    /// Literals of the rules file.
    Literals(Vec<Value>),
    /// All values at a path, or the items of the one array at it.
    Path {
        /// The path into the call document.
        path: Path,
        /// Whether a path for several values that finds none is an empty set. In a restricting policy it is, so that a value is
        /// not in the set. In a permitting policy the operand is absent instead, and permits nothing.
        may_be_empty: bool,
    },
}

impl OperandSet {
    /// Reads an operand: a list of literals, or `{ path: … }`.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        match operand_path_node(node) {
            Some(node) => {
                let path = reader.read_path(node)?;
                let may_be_empty = !path.is_singular() && reader.polarity != Polarity::Permitting;
                Some(Self::Path { path, may_be_empty })
            }
            None => Some(Self::Literals(node.items()?.iter().map(source::YamlNode::to_json).collect())),
        }
    }
}

/// Returns the values of the set at a path.
///
/// # Errors
/// Returns the truth of the test if the operand is absent or can't be read.
pub fn set_values<'a>(
    path: &Path,
    may_be_empty: bool,
    view: &CallView<'a>,
) -> Result<SmallVec<[NodeRef<'a>; 8]>, Truth> {
    let found = resolve_path(path, view)?;
    match found.as_slice() {
        [] if !may_be_empty => Err(Truth::Absent),
        [NodeRef::Json(Value::Array(items))] if path.is_singular() => {
            Ok(items.iter().map(NodeRef::Json).collect())
        }
        [_] if path.is_singular() => Err(Truth::Undecided(format!("`{}` is not an array", path.text()))),
        several => Ok(several.iter().copied().collect()),
    }
}

/// Patterns of one kind (directories, hosts, domains): parsed on load if they are literals, and on each call if they come from a path.
#[derive(Debug)]
pub enum PatternSet<P> {
    /// Patterns of the rules file, with their sources.
    Literals(Vec<P>, Vec<String>),
    /// A path into the call document.
    Path(Path),
}

impl<P> PatternSet<P> {
    /// Reads a literal, a list of literals, or `{ path: … }`. `parse` returns the problem of an invalid literal; `example` shows a
    /// valid one.
    pub fn read(
        node: &source::YamlNode,
        reader: &mut PolicyReader<'_>,
        example: &str,
        parse: impl Fn(&str) -> Result<P, String>,
    ) -> Option<Self> {
        if let Some(path) = operand_path_node(node) {
            return reader.read_path(path).map(Self::Path);
        }
        if !check_literal(node, reader) {
            return None;
        }
        let (mut patterns, mut texts) = (Vec::new(), Vec::new());
        for item in node.items().unwrap_or(std::slice::from_ref(node)) {
            let text = item.as_str()?;
            texts.push(text.to_owned());
            match parse(text) {
                Ok(pattern) => patterns.push(pattern),
                Err(problem) => reader.report(
                    Diagnostic::new(&INVALID_OPERAND, item.span, problem)
                        .with_help(format!("write for example {example}")),
                ),
            }
        }
        Some(Self::Literals(patterns, texts))
    }

    /// Returns the result of `test` for the patterns, or the truth of the test if the patterns are absent or can't be read.
    pub fn evaluate<'a>(
        &self,
        view: &CallView<'a>,
        parse: impl Fn(&str) -> Result<P, String>,
        test: impl FnOnce(&[P]) -> Truth,
    ) -> Truth {
        let path = match self {
            Self::Literals(patterns, _) => return test(patterns),
            Self::Path(path) => path,
        };
        let found = match resolve_path(path, view) {
            Ok(found) => found,
            Err(truth) => return truth,
        };
        if found.is_empty() {
            return Truth::Absent;
        }
        let mut patterns = Vec::new();
        for node in found {
            let items = node.as_json().and_then(Value::as_array);
            let texts: Vec<Option<&str>> = match items {
                Some(items) => items.iter().map(Value::as_str).collect(),
                None => vec![node.as_str()],
            };
            for text in texts {
                match text.map(&parse) {
                    Some(Ok(pattern)) => patterns.push(pattern),
                    Some(Err(problem)) => return Truth::Undecided(format!("`{}`: {problem}", path.text())),
                    None => return Truth::Undecided(format!("`{}` is not a string", path.text())),
                }
            }
        }
        test(&patterns)
    }
}

/// Returns the nodes at a path.
///
/// # Errors
/// Returns [`Truth::Undecided`] if a value on the path has the wrong type.
pub fn resolve_path<'a>(path: &Path, view: &CallView<'a>) -> Result<crate::path::Nodes<'a>, Truth> {
    path.nodes(view).map_err(|mismatch| Truth::Undecided(format!("`{}`: {mismatch}", path.text())))
}

/// Returns `false` and reports a literal that looks like a path or a template: it would be compared as a plain string, so that the
/// test would silently never hold, or always. Items of a list are not checked.
fn check_literal(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> bool {
    let (span, path) = match (node.entries(), node.as_str()) {
        (Some(entries), _) => {
            let path =
                node.get("path").and_then(source::YamlNode::as_str).filter(|path| Path::parse(path).is_ok());
            let other = entries.iter().find(|entry| entry.key != "path");
            let (Some(_), Some(other)) = (path, other) else { return true };
            reader.report(
                Diagnostic::new(
                    &INVALID_OPERAND,
                    other.key_span,
                    format!("`{}` can't be used with the `path` of an operand", other.key),
                )
                .with_help("an operand that is read from the call has only the key `path`"),
            );
            return false;
        }
        (None, Some(text)) => {
            let named = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).map(str::trim);
            let path = match named {
                Some(name) => format!("$.{}", name.trim_start_matches("$.")),
                None => text.to_owned(),
            };
            (node.span, path)
        }
        (None, None) => return true,
    };
    if Path::parse(&path).is_err() {
        return true;
    }
    reader.report(
        Diagnostic::new(
            &INVALID_OPERAND,
            span,
            "this compares with the string itself, not with the value at that path",
        )
        .with_help(format!(
            "write `{{ path: {path} }}`; to compare with the string itself, use `in:` with a list"
        )),
    );
    false
}

fn operand_path_node(node: &source::YamlNode) -> Option<&source::YamlNode> {
    match node.entries()? {
        [entry] if entry.key == "path" && entry.value.as_str().is_some() => Some(&entry.value),
        _ => None,
    }
}
