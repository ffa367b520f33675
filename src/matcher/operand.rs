//! Operands of tests: literals of the rules file, or values that a path or an expression reads from the same call.

use super::truth::Truth;
use super::value_source::ValueSource;
use super::work_units::spend_for;
use crate::call::{CallView, NodeRef};
use crate::diagnostic::{Diagnostic, INVALID_OPERAND};
use crate::json::Value;
use crate::path::Path;
use crate::rules_schema::PolicyReader;
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

/// Patterns of one kind (directories, hosts, domains): parsed on load if they are literals, and otherwise on each call.
#[derive(Debug)]
pub enum PatternSet<P> {
    /// Patterns of the rules file, with their sources.
    Literals(Box<[P]>, Box<[String]>),
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
        Some(Self::Literals(patterns.into(), texts.into()))
    }

    /// Returns the result of `test` for the patterns, or the truth of the test if the patterns are absent or can't be read. A condition on
    /// elements parses them once for all of them.
    pub fn evaluate(
        &self,
        view: &CallView<'_>,
        parse: impl Fn(&str) -> Result<P, String>,
        test: impl FnOnce(&[P]) -> Truth,
    ) -> Truth
    where
        P: Send + Sync + 'static,
    {
        let source = match self {
            Self::Literals(patterns, _) => return test(patterns),
            Self::Source(source) => source,
        };
        let test_read = |patterns: &Result<Vec<P>, Truth>| match patterns {
            Ok(patterns) => test(patterns),
            Err(open) => open.clone(),
        };
        match source.element_memo(view) {
            Some(memo) => {
                let key = std::ptr::from_ref(self).addr();
                test_read(&memo.get_or_compute(key, || read_patterns(source, view, parse)))
            }
            None => test_read(&read_patterns(source, view, parse)),
        }
    }
}

/// Reads and parses patterns.
///
/// # Errors
/// Returns the truth of the test if they are absent or can't be read.
fn read_patterns<P>(
    source: &ValueSource,
    view: &CallView<'_>,
    parse: impl Fn(&str) -> Result<P, String>,
) -> Result<Vec<P>, Truth> {
    source.with_values(view, |found| {
        let found = found?;
        if found.is_empty() {
            return Err(Truth::Absent);
        }
        let mut patterns = Vec::new();
        for node in found {
            let items = node.as_json().and_then(Value::as_array);
            let texts: Vec<Option<&str>> = match items {
                Some(items) => items.iter().map(Value::as_str).collect(),
                None => vec![node.as_str()],
            };
            for text in texts {
                // Parsing a pattern takes about a quarter of a microsecond, and more for a long one.
                spend_for(text.map_or(0, str::len).saturating_add(12), 1)?;
                match text.map(&parse) {
                    Some(Ok(pattern)) => patterns.push(pattern),
                    Some(Err(problem)) => {
                        return Err(Truth::Undecided(format!("`{}`: {problem}", source.text())));
                    }
                    None => return Err(Truth::Undecided(format!("`{}` is not a string", source.text()))),
                }
            }
        }
        Ok(patterns)
    })
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
