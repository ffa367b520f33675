//! `around`: a script that wraps the execution of a call.

use super::cache_scope::{self, CacheScope};
use super::{KindDefinition, PolicyKind};
use crate::call::CallView;
use crate::diagnostic::{
    CONFLICTING_KEYS, Code, Diagnostic, INVALID_SCRIPT, MISSING_KEY, Span, UNKNOWN_NAME,
};
use crate::json::{self, Value, json};
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, ScriptProblem, Shape};
use crate::script::{self, ScriptRunError};
use crate::source::YamlNode;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "around",
    doc: "Wraps the execution of matching calls in a script. The script calls `next(input)` once, several times or never, and its value \
          is the result of the call. If it passes other arguments than the call's, these are evaluated in the gate phase again.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| Around::read(node, reader).map(Box::new).map(PolicyKind::Around),
};

static RECORD: RecordShape = RecordShape {
    name: "around",
    doc: "The script, inline or in a separate file.",
    fields: &[
        FieldShape::optional("script", Shape::String("a script in Rhai"), "The script."),
        FieldShape::optional(
            "file",
            Shape::String("a file such as `wrap.rhai`"),
            "A file with the script, next to the rules file.",
        ),
        cache_scope::SCOPE,
    ],
};

/// The default hint for script errors.
const EXAMPLE: &str = "a script is Rhai: statements, and `next(input)` for the tool";

/// Settings of an `around` policy.
#[derive(Debug)]
pub struct Around {
    /// The script.
    pub script: script::AroundScript,
    scope: CacheScope,
    location: ScriptLocation,
}

/// The location of a script, for error messages.
#[derive(Debug)]
struct ScriptLocation {
    file: String,
    /// The start of each line of the script: line and column in the file, from 1. Empty if the file does not contain the script
    /// literally.
    lines: Vec<(usize, usize)>,
}

impl ScriptLocation {
    fn locate(&self, line: usize, column: usize) -> String {
        match self.lines.get(line.saturating_sub(1)) {
            Some((file_line, first)) => {
                format!("{}:{file_line}:{}", self.file, first + column.saturating_sub(1))
            }
            None => format!("{}, line {line}, column {column} of the script", self.file),
        }
    }
}

/// Compiles a script, and records what it reads at the node that holds or names it. A problem goes to `report`.
fn compile(
    text: &str,
    node: &YamlNode,
    reader: &mut PolicyReader<'_>,
    report: impl FnOnce(&mut PolicyReader<'_>, &'static Code, ScriptProblem),
) -> Option<script::AroundScript> {
    match script::AroundScript::compile_with(text, &reader.names) {
        Ok(script) => {
            reader.arguments.merge(&script.argument_names());
            reader.definitions.extend(script.definitions().iter().cloned());
            let is_valid = reader.check_reads(node, script.roots_read(), script.context_reads());
            is_valid.then_some(script)
        }
        Err(error) => {
            let code = if error.is_unknown_name { &UNKNOWN_NAME } else { &INVALID_SCRIPT };
            report(reader, code, ScriptProblem::from_error(text, error, "script", EXAMPLE));
            None
        }
    }
}

impl Around {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let scope = CacheScope::read(node, reader);
        match (node.get("script"), node.get("file")) {
            (Some(inline), None) => {
                let text = inline.as_str()?;
                let location = ScriptLocation {
                    file: reader.source_name(inline.span.source),
                    lines: reader.line_starts(inline),
                };
                let mut script = compile(text, inline, reader, |reader, code, problem| {
                    reader.report_in(code, inline, problem.range, problem.message, Some(problem.help));
                })?;
                script.locate_branches(|range| reader.span_in(inline, range));
                Some(Self { script, scope, location })
            }
            (None, Some(file)) => {
                let (source, text) = reader.read_referenced_file(file, ".rhai")?;
                let lines = (1..=text.lines().count()).map(|line| (line, 1)).collect();
                let location = ScriptLocation { file: reader.source_name(source), lines };
                let mut script = compile(&text, file, reader, |reader, code, problem| {
                    let span = Span::new(source, problem.range.start, problem.range.end);
                    reader.report(
                        Diagnostic::new(code, span, problem.message)
                            .with_label(file.span, "the script of this policy")
                            .with_help(problem.help),
                    );
                })?;
                script.locate_branches(|range| Span::new(source, range.start, range.end));
                Some(Self { script, scope, location })
            }
            (Some(_), Some(file)) => {
                reader.report(
                    Diagnostic::new(&CONFLICTING_KEYS, file.span, "this policy has both `script` and `file`")
                        .with_help("remove one of them: a policy has one script, inline or in a file"),
                );
                None
            }
            (None, None) => {
                reader.report(
                    Diagnostic::new(&MISSING_KEY, node.span, "this policy has no script")
                        .with_help("write `script: next(input)`, or `file: wrap.rhai`"),
                );
                None
            }
        }
    }

    /// Formats a script error with its location.
    pub fn describe_failure(&self, failure: &ScriptRunError) -> String {
        match failure.position {
            Some((line, column)) => format!("{} ({})", failure.message, self.location.locate(line, column)),
            None => format!("{} ({})", failure.message, self.location.file),
        }
    }

    /// Returns the storage key for a value that the script stores under `key`. Returns `None` if the call lacks a value that the scope
    /// needs.
    pub fn storage_key(&self, key: &Value, view: &CallView<'_>, session: &str) -> Option<String> {
        let scope = self.scope.shared_key(view, session)?;
        Some(json::digest(&json!([scope, key])).to_string())
    }

    /// The name of the scope in which stored values are shared.
    pub fn scope_name(&self) -> String {
        self.scope.name()
    }
}
