//! What a place is compared with: literals of the rules file, or another place in the same call document.

use smallvec::SmallVec;

use super::truth::Truth;
use crate::authoring::{Polarity, Reader};
use crate::call::{CallView, Node};
use crate::diagnostic::{Diagnostic, INVALID_OPERAND};
use crate::json::Value;
use crate::path::Path;
use crate::source;

/// What a value is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The value.
    pub value: Node<'a>,
    /// Whether the author of the rules wrote it; else it stands in the call.
    pub written: bool,
}

/// A single value to compare with.
#[derive(Debug)]
pub enum Operand {
    /// Written in the rules file.
    Literal(Value),
    /// Read from the call document.
    Path(Path),
}

impl Operand {
    /// Reads an operand: `{ path: … }` is a path, everything else a literal.
    pub fn read(node: &source::Node, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(path) = path_node(node) else {
            return literal(node, reader).then(|| Self::Literal(node.to_json()));
        };
        let path = reader.path(path)?;
        if !path.is_singular() {
            reader.report(
                Diagnostic::new(
                    &INVALID_OPERAND,
                    path_node(node).map_or(node.span, |path| path.span),
                    "this path may yield several values, and one is compared with",
                )
                .help("use `in:` or `not_in:` to compare with several"),
            );
            return None;
        }
        Some(Self::Path(path))
    }

    /// The value, or the truth of a test whose operand is not there.
    pub fn value<'a>(&'a self, view: &CallView<'a>) -> Result<Compared<'a>, Truth> {
        match self {
            Self::Literal(value) => Ok(Compared { value: Node::Json(value), written: true }),
            Self::Path(path) => {
                let value = nodes(path, view)?.first().copied().ok_or(Truth::Absent)?;
                Ok(Compared { value, written: false })
            }
        }
    }
}

/// Several values to compare with.
#[derive(Debug)]
pub enum OperandSet {
    /// Written in the rules file.
    Literals(Vec<Value>),
    /// Read from the call document: all that the path yields, or the items of the one list that it yields.
    Path {
        /// Where they stand.
        path: Path,
        /// Whether a path for several values that yields none is a set without values. What is not in such a set does
        /// not pass by a restricting policy; to a permitting one it is absent, and permits nothing.
        may_be_empty: bool,
    },
}

impl OperandSet {
    /// Reads a list of literals, or `{ path: … }`.
    pub fn read(node: &source::Node, reader: &mut Reader<'_>) -> Option<Self> {
        match path_node(node) {
            Some(node) => {
                let path = reader.path(node)?;
                let may_be_empty = !path.is_singular() && reader.polarity != Polarity::Permitting;
                Some(Self::Path { path, may_be_empty })
            }
            None => Some(Self::Literals(node.items()?.iter().map(source::Node::to_json).collect())),
        }
    }
}

/// The values that a path lists, or the truth of a test whose operand is not there.
pub fn listed<'a>(
    path: &Path,
    may_be_empty: bool,
    view: &CallView<'a>,
) -> Result<SmallVec<[Node<'a>; 8]>, Truth> {
    let found = nodes(path, view)?;
    match found.as_slice() {
        [] if !may_be_empty => Err(Truth::Absent),
        [Node::Json(Value::Array(items))] if path.is_singular() => Ok(items.iter().map(Node::Json).collect()),
        [_] if path.is_singular() => {
            Err(Truth::Undecided(format!("`{}` is no list to look in", path.text())))
        }
        several => Ok(several.iter().copied().collect()),
    }
}

/// Parsed patterns of one kind (directories, hosts, domains): from literals at load, from a path at each call.
#[derive(Debug)]
pub enum PatternSet<P> {
    /// Written in the rules file; with their texts.
    Literals(Vec<P>, Vec<String>),
    /// Read from the call document.
    Path(Path),
}

impl<P> PatternSet<P> {
    /// Reads one literal, a list of them, or `{ path: … }`; `parse` says what is wrong with a literal, and `example` what
    /// a right one looks like.
    pub fn read(
        node: &source::Node,
        reader: &mut Reader<'_>,
        example: &str,
        parse: impl Fn(&str) -> Result<P, String>,
    ) -> Option<Self> {
        if let Some(path) = path_node(node) {
            return reader.path(path).map(Self::Path);
        }
        if !literal(node, reader) {
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
                        .help(format!("write for example {example}")),
                ),
            }
        }
        Some(Self::Literals(patterns, texts))
    }

    /// Asks `test` of the patterns, or gives the truth of a test whose patterns are not there.
    pub fn with<'a>(
        &self,
        view: &CallView<'a>,
        parse: impl Fn(&str) -> Result<P, String>,
        test: impl FnOnce(&[P]) -> Truth,
    ) -> Truth {
        let path = match self {
            Self::Literals(patterns, _) => return test(patterns),
            Self::Path(path) => path,
        };
        let found = match nodes(path, view) {
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
                    None => return Truth::Undecided(format!("`{}` is no text", path.text())),
                }
            }
        }
        test(&patterns)
    }
}

/// What a path yields; a mismatch of types on the way is undecided.
pub fn nodes<'a>(path: &Path, view: &CallView<'a>) -> Result<crate::path::Nodes<'a>, Truth> {
    path.nodes(view).map_err(|mismatch| Truth::Undecided(format!("`{}`: {mismatch}", path.text())))
}

/// Whether a literal is meant as one: a path or a template in its place would be compared with letter by letter, and
/// the test would quietly never hold, or always. In a list they are what they are.
fn literal(node: &source::Node, reader: &mut Reader<'_>) -> bool {
    let (span, path) = match (node.entries(), node.as_str()) {
        (Some(entries), _) => {
            let path =
                node.get("path").and_then(source::Node::as_str).filter(|path| Path::parse(path).is_ok());
            let other = entries.iter().find(|entry| entry.key != "path");
            let (Some(_), Some(other)) = (path, other) else { return true };
            reader.report(
                Diagnostic::new(
                    &INVALID_OPERAND,
                    other.key_span,
                    format!("`{}` means nothing beside the `path` of an operand", other.key),
                )
                .help("a place to compare with has the key `path` only"),
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
            "this compares with the text itself, not with what stands at that place",
        )
        .help(format!("write `{{ path: {path} }}`; `in:` with a list compares with such a text")),
    );
    false
}

fn path_node(node: &source::Node) -> Option<&source::Node> {
    match node.entries()? {
        [entry] if entry.key == "path" && entry.value.as_str().is_some() => Some(&entry.value),
        _ => None,
    }
}
