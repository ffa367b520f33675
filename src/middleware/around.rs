//! `around`: a script that wraps the execution.

use super::scope::{self, Scope};
use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, ScriptProblem, Shape};
use crate::call::{CallView, Root};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_SCRIPT, MISSING_KEY, Span};
use crate::json::{self, Value, json};
use crate::script::{self, ScriptFailure};
use crate::source::Node;

pub(super) static KIND: KindEntry = KindEntry {
    name: "around",
    doc: "Wraps the execution of matching calls in a script: it calls `next(input)` once, more often or never, and what it gives \
          is the result. Other arguments than the call's go through gate again.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| Around::read(node, reader).map(Kind::Around),
};

static RECORD: Record = Record {
    name: "around",
    doc: "The script, here or in a file of its own.",
    fields: &[
        Field::optional("script", Shape::Text("a script in Rhai"), "The script."),
        Field::optional(
            "file",
            Shape::Text("a file such as `wrap.rhai`"),
            "The script's file, beside the rules file.",
        ),
        scope::SCOPE,
    ],
};

/// What helps where nothing better is known.
const EXAMPLE: &str = "a script is Rhai: statements, and `next(input)` for the tool";

/// An `around` policy's own part.
#[derive(Debug)]
pub struct Around {
    /// The script.
    pub script: script::Around,
    scope: Scope,
    place: ScriptPlace,
}

/// Where a script is written, so that what goes wrong in it can be found.
#[derive(Debug)]
struct ScriptPlace {
    file: String,
    /// Where each line of the script begins: line and column in the file, from 1. Empty where the text in the file is not
    /// the script letter by letter.
    lines: Vec<(usize, usize)>,
}

impl ScriptPlace {
    fn of(&self, line: usize, column: usize) -> String {
        match self.lines.get(line.saturating_sub(1)) {
            Some((file_line, first)) => {
                format!("{}:{file_line}:{}", self.file, first + column.saturating_sub(1))
            }
            None => format!("{}, line {line}, column {column} of the script", self.file),
        }
    }
}

impl Around {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let scope = Scope::read(node, reader);
        match (node.get("script"), node.get("file")) {
            (Some(inline), None) => {
                let text = inline.as_str()?;
                let place = ScriptPlace {
                    file: reader.name_of(inline.span.source),
                    lines: reader.line_starts(inline),
                };
                match script::Around::compile(text) {
                    Ok(script) => {
                        reader.roots_read.extend(script.reads_session().then_some(Root::Session));
                        reader.context_reads.extend(script.context_reads());
                        reader.arguments.merge(&script.argument_names());
                        Some(Self { script, scope, place })
                    }
                    Err(error) => {
                        let ScriptProblem { range, message, help } =
                            ScriptProblem::of(text, error, "script", EXAMPLE);
                        reader.report_in(&INVALID_SCRIPT, inline, range, message, Some(help));
                        None
                    }
                }
            }
            (None, Some(file)) => {
                let (source, text) = reader.draw_file(file, ".rhai")?;
                let lines = (1..=text.lines().count()).map(|line| (line, 1)).collect();
                let place = ScriptPlace { file: reader.name_of(source), lines };
                match script::Around::compile(&text) {
                    Ok(script) => {
                        reader.roots_read.extend(script.reads_session().then_some(Root::Session));
                        reader.context_reads.extend(script.context_reads());
                        reader.arguments.merge(&script.argument_names());
                        Some(Self { script, scope, place })
                    }
                    Err(error) => {
                        let ScriptProblem { range, message, help } =
                            ScriptProblem::of(&text, error, "script", EXAMPLE);
                        let span = Span { source, start: range.start, end: range.end };
                        reader.report(
                            Diagnostic::new(&INVALID_SCRIPT, span, message)
                                .label(file.span, "the script of this policy")
                                .help(help),
                        );
                        None
                    }
                }
            }
            (Some(_), Some(file)) => {
                reader.report(
                    Diagnostic::new(&CONFLICTING_KEYS, file.span, "`script` and `file` in one policy")
                        .help("a policy has one script, here or in a file"),
                );
                None
            }
            (None, None) => {
                reader.report(
                    Diagnostic::new(&MISSING_KEY, node.span, "there is no script")
                        .help("write `script: next(input)`, or `file: wrap.rhai`"),
                );
                None
            }
        }
    }

    /// What went wrong in the script, with where that is written.
    pub fn explain(&self, failure: &ScriptFailure) -> String {
        match failure.position {
            Some((line, column)) => format!("{} ({})", failure.message, self.place.of(line, column)),
            None => format!("{} ({})", failure.message, self.place.file),
        }
    }

    /// The key under which a script keeps a value. Nothing where the call lacks what the scope is made of.
    pub fn key(&self, key: &Value, view: &CallView<'_>, session: &str) -> Option<String> {
        let scope = self.scope.of(view, session)?;
        Some(json::digest(&json!([scope, key])).to_string())
    }

    /// Who shares what the script keeps, in a word.
    pub fn scope(&self) -> String {
        self.scope.name()
    }
}
