//! `shell`: tests of the commands that a shell text runs. Call → [`Truth`].

use std::sync::Arc;

use callgate_shell::{Analyzer, DoubtKind, ShellCommand, ShellScript, Wrapper};

use super::shell_command_test::CommandTest;
use super::shell_text::{ShellDirectory, ShellText};
use crate::call::CallView;
use crate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, INVALID_OPERAND, MISSING_KEY, MISSING_QUANTIFIER, Span,
};
use crate::matcher::condition_shape::{EXPR_KEY, PATH, QUANTIFIERS, SHELL_RECORD};
use crate::matcher::truth::Truth;
use crate::matcher::value_source::ValueSource;
use crate::rules_schema::{Polarity, PolicyReader, head_span};
use crate::source::{MappingEntry, YamlNode};
use crate::work_limit;

/// How many commands must pass the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellQuantifier {
    /// At least one command passes a test.
    Any,
    /// Each test is passed by a command.
    All,
    /// There is a command, and every command passes a test.
    Every,
    /// No command passes a test.
    None,
}

impl ShellQuantifier {
    /// The key in rules files.
    pub fn key(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::All => "all",
            Self::Every => "every",
            Self::None => "none",
        }
    }

    fn from_key(key: &str) -> Self {
        match key {
            "all" => Self::All,
            "every" => Self::Every,
            "none" => Self::None,
            _ => Self::Any,
        }
    }
}

/// A compiled condition on shell commands.
#[derive(Debug)]
pub struct ShellCondition {
    pub(in crate::matcher) quantifier: ShellQuantifier,
    pub(in crate::matcher) source: ValueSource,
    /// The location of the path or expression in the rules.
    pub(in crate::matcher) source_span: Span,
    directory: ShellDirectory,
    trusted: Vec<DoubtKind>,
    analyzer: Analyzer,
    tests: Vec<CommandTest>,
    /// Whether an absent text makes the policy apply.
    absent_acts: bool,
}

/// A text with its commands.
struct AnalyzedText {
    analyzer: Analyzer,
    text: ShellText,
    directory: Option<String>,
    script: Arc<ShellScript>,
}

impl ShellCondition {
    /// Reads the value of `shell`.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let source_entry = find_one(node, &[PATH.name, EXPR_KEY], "the text", reader)?;
        let source = match source_entry.key == EXPR_KEY {
            true => ValueSource::read_expression(&source_entry.value, reader),
            false => ValueSource::read_path(&source_entry.value, reader),
        };
        let source = source?;
        if !source.is_singular() {
            reader.report(
                Diagnostic::new(
                    &INVALID_OPERAND,
                    source_entry.value.span,
                    "this path may return several values, and `shell` needs one text",
                )
                .with_help("write the condition in `any_of: { path: …, as: text, all: [ { shell: { path: $text, … } } ] }`"),
            );
            return None;
        }
        let entry = find_one(node, &QUANTIFIERS, "the tests", reader)?;
        let quantifier = ShellQuantifier::from_key(&entry.key);
        check_polarity(quantifier, entry, reader)?;
        let is_negation = quantifier == ShellQuantifier::None;
        reader.is_negated ^= is_negation;
        let tests = CommandTest::read_list(&entry.value, &source, reader);
        reader.is_negated ^= is_negation;
        let directory = ShellDirectory::read(node, reader);
        let wrappers = read_wrappers(node.get("wrappers"), reader);
        let words = node.get("trusted_code").and_then(YamlNode::items).unwrap_or_default();
        let trusted = words.iter().filter_map(|word| {
            DoubtKind::NAMED.into_iter().find(|(name, _)| word.as_str() == Some(name)).map(|(_, kind)| kind)
        });
        Some(Self {
            quantifier,
            source,
            source_span: source_entry.value.span,
            directory: directory?,
            trusted: trusted.collect(),
            analyzer: Analyzer::new(wrappers?),
            tests: tests?,
            absent_acts: reader.polarity == Polarity::Restricting && reader.absent_matches,
        })
    }

    /// Evaluates the condition for a call.
    pub fn eval(&self, view: &CallView<'_>) -> Truth {
        match self.script(view) {
            Ok(script) => self.eval_script(&script, view),
            Err(truth) => truth,
        }
    }

    /// The commands of the text.
    ///
    /// # Errors
    /// Returns the truth of the condition if the text is absent or can't be read.
    pub(in crate::matcher) fn script(&self, view: &CallView<'_>) -> Result<Arc<ShellScript>, Truth> {
        let directory = self.directory.find(view)?;
        self.source.with_values(view, |values| {
            let Some(value) = values?.first().copied() else {
                return Err(match (self.absent_acts, self.quantifier) {
                    (true, _) => Truth::Absent,
                    (false, ShellQuantifier::None) => Truth::Yes,
                    (false, _) => Truth::No,
                });
            };
            let text = ShellText::from_node(value).ok_or_else(|| {
                let source = self.source.text();
                Truth::Undecided(format!("`{source}` is neither a string nor an array of strings"))
            })?;
            self.analyze(text, directory, view)
        })
    }

    /// Analyses a text, once for all conditions on it. It costs the same whether it was analysed before or not.
    fn analyze(
        &self,
        text: ShellText,
        directory: Option<String>,
        view: &CallView<'_>,
    ) -> Result<Arc<ShellScript>, Truth> {
        let spend = |amount: usize| {
            work_limit::spend_for(amount, 1).map_err(|exceeded| Truth::Undecided(exceeded.to_string()))
        };
        spend(text.len().saturating_mul(8))?;
        let compute = |text: ShellText, directory: Option<String>| {
            let script = text.analyze(&self.analyzer, directory.as_deref());
            AnalyzedText { analyzer: self.analyzer.clone(), text, directory, script: Arc::new(script) }
        };
        let script = match view.lets {
            None => compute(text, directory).script,
            Some(memo) => {
                let is_same = |known: &AnalyzedText| {
                    known.text == text && known.directory == directory && known.analyzer == self.analyzer
                };
                Arc::clone(&memo.find_or_compute(is_same, || compute(text.clone(), directory.clone())).script)
            }
        };
        spend(script.commands.len().saturating_mul(64))?;
        Ok(script)
    }

    fn eval_script(&self, script: &ShellScript, view: &CallView<'_>) -> Truth {
        let doubt = self.doubt(script);
        let test_all = |test: &CommandTest| {
            let truths = (1..)
                .zip(&script.commands)
                .map(|(number, command)| self.eval_test(test, number, command, view));
            Truth::any(truths.chain(doubt.clone()))
        };
        match self.quantifier {
            ShellQuantifier::Any => Truth::any(self.tests.iter().map(test_all)),
            ShellQuantifier::None => !Truth::any(self.tests.iter().map(test_all)),
            ShellQuantifier::All => Truth::all(self.tests.iter().map(test_all)),
            ShellQuantifier::Every if script.commands.is_empty() => doubt.unwrap_or(Truth::No),
            ShellQuantifier::Every => {
                let truths = (1..)
                    .zip(&script.commands)
                    .map(|(number, command)| self.eval_command(number, command, view));
                Truth::all(truths.chain(doubt))
            }
        }
    }

    /// Evaluates the tests for one command; `number` counts from 1.
    pub(in crate::matcher) fn eval_command(
        &self,
        number: usize,
        command: &ShellCommand,
        view: &CallView<'_>,
    ) -> Truth {
        Truth::any(self.tests.iter().map(|test| self.eval_test(test, number, command, view)))
    }

    fn eval_test(
        &self,
        test: &CommandTest,
        number: usize,
        command: &ShellCommand,
        view: &CallView<'_>,
    ) -> Truth {
        if command.program.is_none() && self.trusted.contains(&DoubtKind::Dynamic) {
            return Truth::from(self.quantifier == ShellQuantifier::Every);
        }
        match test.eval(command, view) {
            Truth::Undecided(why) => {
                Truth::Undecided(format!("command {number} of `{}`: {why}", self.source.text()))
            }
            decided => decided,
        }
    }

    /// Why other commands than those of the text can run, if they can.
    fn doubt(&self, script: &ShellScript) -> Option<Truth> {
        let doubt = script.doubts.iter().find(|doubt| !self.trusted.contains(&doubt.kind))?;
        Some(Truth::Undecided(format!("`{}`: {}", self.source.text(), doubt.reason)))
    }

    /// The reasons for which the condition may be undecided whatever the commands are.
    pub(in crate::matcher) fn doubts(&self, script: &ShellScript) -> Vec<&'static str> {
        let doubts = script.doubts.iter().filter(|doubt| !self.trusted.contains(&doubt.kind));
        doubts.map(|doubt| doubt.reason).collect()
    }
}

/// The only entry with one of these keys. Reports if there is none, or several.
fn find_one<'n>(
    node: &'n YamlNode,
    keys: &[&str],
    what: &str,
    reader: &mut PolicyReader<'_>,
) -> Option<&'n MappingEntry> {
    let mut found = node.entries()?.iter().filter(|entry| keys.contains(&entry.key.as_str()));
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => {
            let message = format!("`shell` has both `{}` and `{}`", first.key, second.key);
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, second.key_span, message)
                    .with_label(first.key_span, "first key")
                    .with_help("write each in a `shell` of its own"),
            );
            None
        }
        (None, _) => {
            if !keys.iter().any(|key| SHELL_RECORD.has_misspelling_of(node, key)) {
                let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                let message = format!("`shell` has none of {}", keys.join(", "));
                reader.report(Diagnostic::new(&MISSING_KEY, head_span(node), message).with_help(format!(
                    "add {what}, as in `shell: {{ path: $.input.command, any: [ {{ program: rm }} ] }}`"
                )));
            }
            None
        }
        (entry, _) => entry,
    }
}

/// Reports a quantifier with which one harmless command would permit all others.
fn check_polarity(
    quantifier: ShellQuantifier,
    entry: &MappingEntry,
    reader: &mut PolicyReader<'_>,
) -> Option<()> {
    let is_partial = matches!(quantifier, ShellQuantifier::Any | ShellQuantifier::All);
    if !is_partial || reader.polarity != Polarity::Permitting || reader.is_negated || reader.in_definition {
        return Some(());
    }
    let message =
        format!("`{}` in a policy that permits: other commands of the text are permitted, too", entry.key);
    reader.report(
        Diagnostic::new(&MISSING_QUANTIFIER, entry.key_span, message)
            .with_help("write `every`, so that every command must pass one of the tests"),
    );
    None
}

fn read_wrappers(node: Option<&YamlNode>, reader: &mut PolicyReader<'_>) -> Option<Vec<Wrapper>> {
    let items = node.and_then(YamlNode::items).unwrap_or_default();
    let wrappers: Vec<Option<Wrapper>> = items.iter().map(|item| read_wrapper(item, reader)).collect();
    wrappers.into_iter().collect()
}

fn read_wrapper(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Wrapper> {
    let command = node.get("command")?;
    let operands = match node.get("operands") {
        Some(operands) => operands.as_number()?.as_i64().and_then(|count| usize::try_from(count).ok())?,
        None => 0,
    };
    let mut wrapper = match Wrapper::new(command.as_str()?, operands) {
        Ok(wrapper) => wrapper,
        Err(problem) => {
            reader.report(
                Diagnostic::new(&INVALID_OPERAND, command.span, problem.to_string())
                    .with_help("write for example `command: mycloud exec`"),
            );
            return None;
        }
    };
    let flags = node.get("flags_with_value").and_then(YamlNode::items).unwrap_or_default();
    wrapper =
        wrapper.with_flags_with_value(flags.iter().filter_map(YamlNode::as_str).map(str::to_owned).collect());
    let is_set = |key: &str| node.get(key).and_then(YamlNode::as_bool) == Some(true);
    if is_set("text") {
        wrapper = wrapper.with_text();
    }
    Some(if is_set("remote") { wrapper.with_remote() } else { wrapper })
}
