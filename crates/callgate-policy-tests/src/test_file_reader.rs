//! Reads the parts of a test file, and collects diagnostics.

use std::sync::Arc;

use jiff::Timestamp;
use regex::Regex;

use crate::stub::Stub;
use callgate::call::Task;
use callgate::diagnostic::{
    Diagnostic, Diagnostics, INVALID_OPERAND, INVALID_TIME, Location, MISSING_QUANTIFIER, PATH_NOT_HERE,
    SourceMap, Span, WRONG_TYPE,
};
use callgate::json::{Map, Value};
use callgate::matcher::{Condition, Matcher};
use callgate::rules_schema::{Polarity, PolicyReader};
use callgate::safe_text::{escape_controls, truncate};
use callgate::source::YamlNode;

/// The reader of one test file: collects diagnostics, and holds the settings shared by all cases.
pub(super) struct TestFileReader<'a> {
    pub(super) reader: PolicyReader<'a>,
    /// The ids of named policies, with their spans.
    pub(super) policy_references: Vec<(Span, String)>,
    pub(super) context: Map,
    pub(super) task: Task,
    pub(super) clock: Timestamp,
    pub(super) stubs: Vec<Arc<Stub>>,
}

impl<'a> TestFileReader<'a> {
    pub(super) fn new(diagnostics: &'a mut Diagnostics, sources: &'a mut SourceMap) -> Self {
        let mut reader = PolicyReader::new(diagnostics, sources);
        // Undecided conditions do not hold, in stubs and in expectations.
        reader.polarity = Polarity::Permitting;
        Self {
            reader,
            policy_references: Vec::new(),
            context: Map::new(),
            task: Task::NONE,
            clock: Timestamp::UNIX_EPOCH,
            stubs: Vec::new(),
        }
    }

    /// Reads what the user asked for: a string, or a list of turns.
    pub(super) fn read_task(&mut self, node: &YamlNode) -> Option<Task> {
        match Task::from_json(&node.to_json()) {
            Ok(task) => Some(task),
            Err(wanted) => {
                let message = format!("`task` is not {wanted}");
                self.report(
                    Diagnostic::new(&INVALID_OPERAND, node.span, message)
                        .with_help("write for example `task: Pay the rent.`, or a list with one item for each message of the user"),
                );
                None
            }
        }
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.reader.report(diagnostic);
    }

    /// The number of diagnostics reported so far.
    pub(super) fn diagnostic_count(&self) -> usize {
        self.reader.problem_count()
    }

    pub(super) fn locate(&self, span: Span) -> Location {
        let nowhere = || Location { file: String::new(), line: 0, column: 0, end_line: 0, end_column: 0 };
        self.reader.locate(span).unwrap_or_else(nowhere)
    }

    /// Reads a policy id, which must exist in the bundle.
    pub(super) fn read_policy_id(&mut self, node: &YamlNode) -> Option<String> {
        let id = node.as_str()?.to_owned();
        self.policy_references.push((node.span, id.clone()));
        Some(id)
    }

    pub(super) fn read_regex(&mut self, node: &YamlNode) -> Option<Regex> {
        self.reader.read_regex(node)
    }

    pub(super) fn read_duration(&mut self, node: &YamlNode) -> Option<std::time::Duration> {
        self.reader.read_duration(node)
    }

    /// Reads a condition on the result of a call.
    pub(super) fn read_condition(&mut self, node: &YamlNode) -> Option<Condition> {
        let reported = self.reader.problem_count();
        self.reader.after_tool = true;
        let condition = Condition::read_all(node, &mut self.reader);
        self.reader.after_tool = false;
        self.reword_diagnostics(reported);
        condition
    }

    /// Reads a stub's matcher.
    pub(super) fn read_matcher(&mut self, node: &YamlNode) -> Matcher {
        let reported = self.reader.problem_count();
        let matcher = Matcher::read(node, &mut self.reader);
        self.reword_diagnostics(reported);
        matcher
    }

    /// Rewords diagnostics that are phrased for the conditions of policies.
    fn reword_diagnostics(&mut self, reported: usize) {
        for diagnostic in self.reader.problems_since(reported) {
            if diagnostic.code == &MISSING_QUANTIFIER {
                diagnostic.message = "this path may yield several values, and `each` is missing".to_owned();
            } else if diagnostic.code == &PATH_NOT_HERE {
                diagnostic.message = "a stub is matched before its tool has answered".to_owned();
                diagnostic.help =
                    Some("match on the call instead: `$.tool`, `$.input`, `$.context` and such".to_owned());
            }
        }
    }

    /// Reads a timestamp.
    pub(super) fn read_timestamp(&mut self, node: &YamlNode) -> Option<Timestamp> {
        let text = node.as_str()?;
        let time = text.parse::<Timestamp>();
        if time.is_err() {
            let date = text.parse::<jiff::civil::DateTime>().ok();
            let help = date.map_or_else(
                || "write date, time and time zone, as in `2026-01-01T12:00:00Z`".to_owned(),
                |date| format!("add the time and the time zone: `{date}Z`"),
            );
            let message =
                format!("`{}` is not a timestamp with a time zone", truncate(&escape_controls(text)));
            self.report(Diagnostic::new(&INVALID_TIME, node.span, message).with_help(help));
        }
        time.ok()
    }

    /// Reads a mapping with arbitrary keys.
    pub(super) fn read_mapping(&mut self, node: &YamlNode, name: &str) -> Map {
        if let Value::Object(members) = node.to_json() {
            return members;
        }
        let message = format!("`{name}` must be a mapping, this is {}", node.type_name());
        self.report(
            Diagnostic::new(&WRONG_TYPE, node.span, message)
                .with_help(format!("write for example `{name}: {{ name: value }}`, or leave the key out")),
        );
        Map::new()
    }
}
