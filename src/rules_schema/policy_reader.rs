//! Reads strings of a rules file that have a syntax of their own, and reports errors at exact positions.

mod file_positions;
mod member_reads;
mod shared_parts;

pub use shared_parts::SharedParts;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use super::path_hints;
use super::regex_hints::{self, RegexProblem};
use super::script_hints::ScriptProblem;
use super::shape::Shape;
use crate::call::{ContextReads, Root};
use crate::diagnostic::{
    Code, Diagnostic, Diagnostics, INVALID_DURATION, INVALID_PATH, INVALID_REGEX, INVALID_SCRIPT,
    INVALID_TEMPLATE, OUT_OF_RANGE, SourceId, SourceMap, UNKNOWN_NAME,
};
use crate::durations;
use crate::path::{ArgumentNames, Path, PathError};
use crate::principal::PrincipalComparison;
use crate::regex_compiler;
use crate::script::{DefinitionName, Expression, Names, PolicyScript};
use crate::source::{self, YamlNode};
use crate::template::Template;

/// The maximum length of a regular expression.
const MAX_REGEX_BYTES: usize = 32 << 10;
/// The maximum length of a template.
const MAX_TEMPLATE_BYTES: usize = 64 << 10;

/// The effect of a policy on calls, which determines how it treats an undecided condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarity {
    /// It denies, requires approval or redacts: it applies if its condition is undecided (fail closed).
    Restricting,
    /// It allows, responds or supports: it does not apply if its condition is undecided.
    Permitting,
    /// It transforms or stores something; each kind defines what undecided means.
    Forming,
}

/// The reader of one policy: collects diagnostics, and knows what the policy may contain.
#[derive(Debug)]
pub struct PolicyReader<'a> {
    diagnostics: &'a mut Diagnostics,
    sources: &'a mut SourceMap,
    /// How the policy treats an undecided condition.
    pub polarity: Polarity,
    /// Whether the policy is a fact that is stored when the tool starts.
    pub at_start: bool,
    /// Whether the policy acts after the tool, when `$.output` and `$.error` exist.
    pub after_tool: bool,
    /// Whether the policy is about a run and not its calls: only `$.context` and `$.session` exist.
    pub of_run: bool,
    /// Whether absent fields match in restricting policies (`defaults.absent: match`).
    pub absent_matches: bool,
    /// The contents of the files that the policy refers to, apart from the rules file.
    pub referenced_files: Vec<String>,
    /// The paths of those files, including unreadable ones.
    pub referenced_paths: Vec<PathBuf>,
    /// The members of the call document read so far.
    pub roots_read: BTreeSet<Root>,
    /// The members of the context read so far.
    pub context_reads: ContextReads,
    /// How the policy compares principals (`defaults.principals`).
    pub principals: PrincipalComparison,
    /// The arguments read so far.
    pub arguments: ArgumentNames,
    /// The arguments named in templates so far.
    pub named_arguments: ArgumentNames,
    /// The names that the bundle defines.
    pub names: Arc<Names>,
    /// What the policies of the bundle read so far have in common.
    pub shared: SharedParts,
    /// The definitions named so far.
    pub definitions: BTreeSet<DefinitionName>,
    /// Whether a definition is read, which policies of every polarity may use.
    pub in_definition: bool,
    /// Whether a condition is read below an odd number of `not`s.
    pub is_negated: bool,
}

impl<'a> PolicyReader<'a> {
    /// Creates a reader that reports to `diagnostics`.
    pub fn new(diagnostics: &'a mut Diagnostics, sources: &'a mut SourceMap) -> Self {
        Self {
            diagnostics,
            sources,
            polarity: Polarity::Restricting,
            at_start: false,
            after_tool: false,
            of_run: false,
            absent_matches: false,
            referenced_files: Vec::new(),
            referenced_paths: Vec::new(),
            roots_read: BTreeSet::new(),
            context_reads: ContextReads::default(),
            principals: PrincipalComparison::default(),
            arguments: ArgumentNames::default(),
            named_arguments: ArgumentNames::default(),
            names: Arc::default(),
            shared: SharedParts::default(),
            definitions: BTreeSet::new(),
            in_definition: false,
            is_negated: false,
        }
    }

    /// Reports all mismatches between a node and a shape; `name` is its name in messages.
    pub(super) fn check_shape(&mut self, shape: &Shape, node: &YamlNode, name: &str) {
        shape.check(node, name, self.diagnostics);
    }

    /// Records that a definition of the bundle is named.
    pub fn use_definition(&mut self, name: DefinitionName) {
        self.definitions.insert(name);
    }

    /// Reads an expression over the call document and the names of the bundle. `example` shows a valid one.
    pub fn read_expression(&mut self, node: &YamlNode, example: &str) -> Option<Expression> {
        let text = node.as_str()?;
        match Expression::compile_with(text, &self.names) {
            Ok(expression) => {
                self.arguments.merge(&expression.argument_names());
                let roots = expression.roots_read();
                self.arguments.merge(&self.names.elements().arguments_read(roots, expression.member_names()));
                self.definitions.extend(expression.definitions().iter().cloned());
                let is_valid = self.check_reads(node, expression.roots_read(), expression.context_reads());
                is_valid.then_some(expression)
            }
            Err(error) => {
                let code = if error.is_unknown_name { &UNKNOWN_NAME } else { &INVALID_SCRIPT };
                let ScriptProblem { range, message, help } =
                    ScriptProblem::from_error(text, error, "expression", example);
                self.report_in(code, node, range, message, Some(help));
                None
            }
        }
    }

    /// Reads the script of a policy.
    pub fn read_policy_script(&mut self, node: &YamlNode) -> Option<PolicyScript> {
        let text = node.as_str()?;
        let example = "write for example `input.amount > 100`, or `#{ code: \"too_large\" }`";
        match PolicyScript::compile(text, &self.names) {
            Ok(mut script) => {
                self.arguments.merge(&script.argument_names());
                self.definitions.extend(script.definitions().iter().cloned());
                script.locate_branches(|range| self.span_in(node, range));
                let is_valid = self.check_reads(node, script.roots_read(), script.context_reads());
                is_valid.then_some(script)
            }
            Err(error) => {
                let code = if error.is_unknown_name { &UNKNOWN_NAME } else { &INVALID_SCRIPT };
                let ScriptProblem { range, message, help } =
                    ScriptProblem::from_error(text, error, "script", example);
                self.report_in(code, node, range, message, Some(help));
                None
            }
        }
    }

    /// Reports a problem.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Whether an error was reported for any policy of the bundle.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.has_errors()
    }

    /// The number of problems reported so far.
    pub fn problem_count(&self) -> usize {
        self.diagnostics.len()
    }

    /// The problems reported since there were `count`.
    pub fn problems_since(&mut self, count: usize) -> &mut [Diagnostic] {
        self.diagnostics.since(count)
    }

    /// Reports a problem inside a string.
    pub fn report_in(
        &mut self,
        code: &'static Code,
        node: &YamlNode,
        range: Range<usize>,
        message: String,
        help: Option<String>,
    ) {
        let mut diagnostic = Diagnostic::new(code, self.span_in(node, range), message);
        diagnostic.help = help;
        self.report(diagnostic);
    }

    /// Reads a JSONPath over the call document.
    pub fn read_path(&mut self, node: &YamlNode) -> Option<Path> {
        let text = node.as_str()?;
        match self.parse_path(text) {
            Ok(path) => {
                self.arguments.merge(path.argument_names());
                let roots = path.roots_read().iter().copied();
                let elements = self.names.elements();
                self.arguments.merge(&elements.arguments_read(roots.clone(), &path.members_of_elements()));
                self.check_reads(node, roots, path.context_reads()).then_some(path)
            }
            Err(error) => {
                let help = path_hints::path_help(text, error.help);
                self.report_in(&INVALID_PATH, node, error.range, error.message, Some(help));
                None
            }
        }
    }

    /// Parses a path, or returns the same one again.
    fn parse_path(&mut self, text: &str) -> Result<Path, PathError> {
        let elements = self.names.elements();
        // What a path means depends on the elements that it can name.
        if !elements.is_empty() {
            return Path::parse_with(text, elements);
        }
        self.shared.path(text)
    }

    /// Reads one JSONPath or a list of them.
    pub fn read_paths(&mut self, node: &YamlNode) -> Vec<Path> {
        let nodes = node.items().unwrap_or(std::slice::from_ref(node));
        nodes.iter().filter_map(|node| self.read_path(node)).collect()
    }

    /// Reads a list of paths below `$.input`.
    pub fn read_input_paths(&mut self, node: &YamlNode) -> Vec<Path> {
        let mut paths = Vec::new();
        for item in node.items().unwrap_or_default() {
            match self.read_path(item) {
                Some(path) if path.root() == Root::Input => paths.push(path),
                Some(_) => self.report(
                    Diagnostic::new(&INVALID_PATH, item.span, "the path must start with `$.input`")
                        .with_help("name an argument of the tool, as in `$.input.note`"),
                ),
                None => {}
            }
        }
        paths
    }

    /// Reads a regular expression, in the syntax of the `regex` crate.
    pub fn read_regex(&mut self, node: &YamlNode) -> Option<Regex> {
        self.read_regex_in(node, node.as_str()?)
    }

    /// Reads a regular expression that is a part of a node's string.
    pub fn read_regex_in(&mut self, node: &YamlNode, pattern: &str) -> Option<Regex> {
        if !self.check_length(node, pattern, MAX_REGEX_BYTES, "a regular expression") {
            return None;
        }
        let is_exhausted = regex_compiler::is_budget_exhausted();
        match regex_compiler::compile(pattern) {
            Ok(regex) => Some(regex),
            Err(regex::Error::CompiledTooBig(_)) if is_exhausted => {
                let message = "the regular expressions of this bundle use too much memory in total";
                self.report(Diagnostic::new(&INVALID_REGEX, node.span, message).with_help(
                    "use fewer or simpler ones; `(?-u)` and smaller repetitions make them smaller",
                ));
                None
            }
            Err(error) => {
                let RegexProblem { message, range, help } = regex_hints::regex_problem(pattern, &error);
                let start = node.as_str().and_then(|text| text.find(pattern)).unwrap_or(0);
                let range = range.start + start..range.end + start;
                self.report_in(&INVALID_REGEX, node, range, message, Some(help.to_owned()));
                None
            }
        }
    }

    /// Whether a string is short enough; reports it otherwise.
    fn check_length(&mut self, node: &YamlNode, text: &str, most: usize, name: &str) -> bool {
        if text.len() <= most {
            return true;
        }
        let message = format!("{name} can have at most {most} bytes, this one has {}", text.len());
        self.report(Diagnostic::new(&OUT_OF_RANGE, node.span, message).with_help("shorten it"));
        false
    }

    /// Reads a template over the call document; `extra` lists additional names it may use.
    pub fn read_template(&mut self, node: &YamlNode, extra: &[&str]) -> Option<Template> {
        let text = node.as_str()?;
        if !self.check_length(node, text, MAX_TEMPLATE_BYTES, "a template") {
            return None;
        }
        match Template::parse_with(text, extra, &self.names) {
            Ok(template) => {
                self.definitions.extend(template.definitions());
                self.named_arguments.merge(&template.argument_names());
                self.check_reads(node, template.roots_read(), &template.context_reads()).then_some(template)
            }
            Err(error) => {
                let help =
                    error.help.unwrap_or_else(|| "name a value, as in `{{ input.amount }}`".to_owned());
                self.report_in(&INVALID_TEMPLATE, node, error.range, error.message, Some(help));
                None
            }
        }
    }

    /// Reads a duration such as `30s`, `24h`, `1h30m` or `7d` (a day is 24 hours). Zero is rejected.
    pub fn read_duration(&mut self, node: &YamlNode) -> Option<Duration> {
        let text = node.as_str()?;
        let duration = durations::parse(text);
        if duration.is_none_or(|duration| duration.is_zero()) {
            self.report(
                Diagnostic::new(&INVALID_DURATION, node.span, format!("`{text}` is not a duration"))
                    .with_help(duration_help(text, duration.is_some())),
            );
            return None;
        }
        duration
    }

    /// Reads a text file that a rules file refers to by a path relative to its directory, with this file name ending. Diagnostics can
    /// point into the file, and the policy depends on it.
    pub fn read_referenced_file(&mut self, node: &YamlNode, ending: &str) -> Option<(SourceId, String)> {
        let namer = self.sources.get(node.span.source)?.name().to_owned();
        let (path, text) = source::read_referenced_file(self.sources, &namer, node.as_str()?, ending);
        self.referenced_paths.push(path.clone());
        match text {
            Ok(text) => {
                self.referenced_files.push(text.clone());
                Some((self.sources.add(path.display().to_string(), text.as_str()), text))
            }
            Err(problem) => {
                self.report(problem.to_diagnostic(node.span, &path));
                None
            }
        }
    }
}

fn duration_help(text: &str, zero: bool) -> String {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits {
        format!("add the unit: `{text}s`, `{text}m` or `{text}h`")
    } else if zero || text.starts_with('-') {
        "write a duration longer than zero, such as `30s`".to_owned()
    } else {
        "write a duration such as `500ms`, `30s`, `5m`, `24h`, `1h30m` or `7d`".to_owned()
    }
}
