//! Operands of tests: literals of the rules file, or values that a path or an expression reads from the same call.

use smallvec::SmallVec;

use super::truth::Truth;
use super::value_source::ValueSource;
use crate::call::{CallView, NodeRef};
use crate::diagnostic::{Diagnostic, INVALID_OPERAND};
use crate::json::Value;
use crate::path::Path;
use crate::rules_schema::{Polarity, PolicyReader};
use crate::source;
use crate::work_limit;

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
    /// A value that is read on each call.
    Source(ValueSource),
}

impl Operand {
    /// Reads an operand: `{ path: … }` and `{ expr: … }` are read on each call, everything else is a literal.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let Some(source) = ValueSource::read_operand(node, reader) else {
            return check_literal(node, reader).then(|| Self::Literal(node.to_json()));
        };
        let source = source?;
        if !source.is_singular() {
            reader.report(
                Diagnostic::new(
                    &INVALID_OPERAND,
                    node.get("path").map_or(node.span, |path| path.span),
                    "this path may return several values, and the operator compares with one",
                )
                .with_help("use `in:` or `not_in:` to compare with several"),
            );
            return None;
        }
        Some(Self::Source(source))
    }

    /// Returns the result of `test` for the value, or the truth of the test if the operand is absent or can't be read.
    pub fn evaluate(&self, view: &CallView<'_>, test: impl FnOnce(ResolvedOperand<'_>) -> Truth) -> Truth {
        match self {
            Self::Literal(value) => test(ResolvedOperand { value: NodeRef::Json(value), is_literal: true }),
            Self::Source(source) => source
                .with_values(view, |values| match values?.first() {
                    Some(value) => Ok(test(ResolvedOperand { value: *value, is_literal: false })),
                    None => Err(Truth::Absent),
                })
                .unwrap_or_else(|open| open),
        }
    }
}

/// An operand with several values.
#[derive(Debug)]
pub enum OperandSet {
    /// Literals of the rules file.
    Literals(Vec<Value>),
    /// The values that are read on each call, or the items of the one array among them.
    Source {
        /// Where they are read.
        source: ValueSource,
        /// The result for a path to several values that finds none.
        when_empty: WhenEmpty,
    },
}

/// The meaning of a path to several values that finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenEmpty {
    /// An empty set: in a restricting policy, so that a value is not in the set.
    Empty,
    /// An absent operand: in a permitting policy, so that nothing is permitted.
    Absent,
    /// Undecided: in a definition, which policies of both kinds may use.
    Undecided,
}

impl OperandSet {
    /// Reads an operand: a list of literals, `{ path: … }` or `{ expr: … }`.
    pub fn read(node: &source::YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let Some(source) = ValueSource::read_operand(node, reader) else {
            return Some(Self::Literals(node.items()?.iter().map(source::YamlNode::to_json).collect()));
        };
        let source = source?;
        let when_empty = match reader.polarity {
            _ if source.is_singular() => WhenEmpty::Absent,
            _ if reader.in_definition => WhenEmpty::Undecided,
            Polarity::Permitting => WhenEmpty::Absent,
            Polarity::Restricting | Polarity::Forming => WhenEmpty::Empty,
        };
        Some(Self::Source { source, when_empty })
    }
}

/// Passes the values of a set to `test`. Returns the truth of the test if the operand is absent or can't be read.
pub fn with_set(
    source: &ValueSource,
    when_empty: WhenEmpty,
    view: &CallView<'_>,
    test: impl FnOnce(&[NodeRef<'_>]) -> Truth,
) -> Truth {
    source.with_values(view, |values| match values {
        Err(open) => open,
        Ok([]) => match when_empty {
            WhenEmpty::Empty => test(&[]),
            WhenEmpty::Absent => Truth::Absent,
            WhenEmpty::Undecided => Truth::Undecided(format!("`{}` finds no value", source.text())),
        },
        Ok([NodeRef::Json(Value::Array(items))]) if source.is_singular() => {
            // A condition on elements reads the set for each of them.
            if let Err(exceeded) = work_limit::spend_for(items.len(), 8) {
                return Truth::Undecided(exceeded.to_string());
            }
            let items: SmallVec<[NodeRef<'_>; 8]> = items.iter().map(NodeRef::Json).collect();
            test(&items)
        }
        Ok([_]) if source.is_singular() => Truth::Undecided(format!("`{}` is not an array", source.text())),
        Ok(several) => test(several),
    })
}

/// Patterns of one kind (directories, hosts, domains): parsed on load if they are literals, and otherwise on each call.
#[derive(Debug)]
pub enum PatternSet<P> {
    /// Patterns of the rules file, with their sources.
    Literals(Vec<P>, Vec<String>),
    /// Patterns that are read on each call.
    Source(ValueSource),
}

impl<P> PatternSet<P> {
    /// Reads a literal, a list of literals, `{ path: … }` or `{ expr: … }`. `parse` returns the problem of an invalid literal; `example` shows a
    /// valid one.
    pub fn read(
        node: &source::YamlNode,
        reader: &mut PolicyReader<'_>,
        example: &str,
        parse: impl Fn(&str) -> Result<P, String>,
    ) -> Option<Self> {
        if let Some(source) = ValueSource::read_operand(node, reader) {
            return source.map(Self::Source);
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
    pub fn evaluate(
        &self,
        view: &CallView<'_>,
        parse: impl Fn(&str) -> Result<P, String>,
        test: impl FnOnce(&[P]) -> Truth,
    ) -> Truth {
        let source = match self {
            Self::Literals(patterns, _) => return test(patterns),
            Self::Source(source) => source,
        };
        source.with_values(view, |found| {
            let found = match found {
                Ok([]) => return Truth::Absent,
                Ok(found) => found,
                Err(open) => return open,
            };
            let mut patterns = Vec::new();
            for node in found {
                let items = node.as_json().and_then(Value::as_array);
                let texts: Vec<Option<&str>> = match items {
                    Some(items) => items.iter().map(Value::as_str).collect(),
                    None => vec![node.as_str()],
                };
                for text in texts {
                    // Parsing a pattern and comparing it takes about a quarter of a microsecond, and more for a long one.
                    if let Err(exceeded) = work_limit::spend(12 + text.map_or(0, str::len) as u64) {
                        return Truth::Undecided(exceeded.to_string());
                    }
                    match text.map(&parse) {
                        Some(Ok(pattern)) => patterns.push(pattern),
                        Some(Err(problem)) => {
                            return Truth::Undecided(format!("`{}`: {problem}", source.text()));
                        }
                        None => return Truth::Undecided(format!("`{}` is not a string", source.text())),
                    }
                }
            }
            test(&patterns)
        })
    }
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
                .with_help("an operand that is read from the call has only the key `path` or `expr`"),
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
