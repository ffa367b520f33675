//! A test of words of a shell command: operands, arguments, files. Command → [`Truth`].

use std::sync::Arc;

use callgate_shell::{Certainty, Directories, ShellCommand, ShellWord};

use super::shell_element::ShellElement;
use super::{Condition, ITEM};
use crate::call::{CallView, ElementMemo, ElementScope, NodeRef};
use crate::diagnostic::{Diagnostic, MISSING_KEY, MISSING_QUANTIFIER, OUT_OF_RANGE};
use crate::matcher::condition_shape::{EACH, PATTERNS, UNKNOWN};
use crate::matcher::field_test::Quantifier;
use crate::matcher::truth::Truth;
use crate::matcher::value_source::ValueSource;
use crate::path::MAX_ELEMENT_NESTING;
use crate::rules_schema::{Polarity, PolicyReader, head_span};
use crate::source::{MappingEntry, YamlNode, YamlValue};
use crate::work_limit;

/// Which words of a command a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordsKey {
    Arguments,
    Operands,
    Reads,
    Writes,
}

impl WordsKey {
    const ALL: [Self; 4] = [Self::Arguments, Self::Operands, Self::Reads, Self::Writes];

    /// The key in rules files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Operands => "operands",
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }

    /// The words of this key.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    fn one(self) -> &'static str {
        match self {
            Self::Arguments => "an argument",
            Self::Operands => "an operand",
            Self::Reads => "a file that it reads",
            Self::Writes => "a file that it writes",
        }
    }

    fn words(self, command: &ShellCommand) -> &[ShellWord] {
        match self {
            Self::Arguments => &command.arguments,
            Self::Operands => &command.operands,
            Self::Reads => &command.reads,
            Self::Writes => &command.writes,
        }
    }

    fn is_files(self) -> bool {
        matches!(self, Self::Reads | Self::Writes)
    }
}

/// A compiled test of words.
#[derive(Debug)]
pub(super) struct WordsTest {
    key: WordsKey,
    each: Quantifier,
    /// Whether patterns of file names are tested as they are written.
    takes_patterns: bool,
    /// Whether words that are known only when the command runs are left out.
    skips_unknown: bool,
    condition: Condition,
}

impl WordsTest {
    /// Reads the value of `operands` and the like. `source` is where the shell text is read.
    pub(super) fn read(
        key: WordsKey,
        node: &YamlNode,
        source: &ValueSource,
        reader: &mut PolicyReader<'_>,
    ) -> Option<Self> {
        let each = match node.get("each").and_then(YamlNode::as_str) {
            Some("every") => Quantifier::Every,
            Some("none") => Quantifier::None,
            Some(_) => Quantifier::Any,
            None if reader.polarity != Polarity::Permitting && !reader.in_definition => Quantifier::Any,
            None => {
                let message = format!("`{}` may be several words, and this needs `each`", key.name());
                reader.report(Diagnostic::new(&MISSING_QUANTIFIER, head_span(node), message).with_help(
                    "add `each: any`, `each: every` or `each: none` to say how many of them must pass",
                ));
                return None;
            }
        };
        let takes_patterns = node.get(PATTERNS).is_some();
        let skips_unknown = node.get(UNKNOWN).is_some();
        let entries = node.entries()?.iter();
        let entries: Vec<MappingEntry> = entries
            .filter(|entry| ![EACH.name, PATTERNS, UNKNOWN].contains(&entry.key.as_str()))
            .cloned()
            .collect();
        if entries.is_empty() {
            let message = format!("`{}` has no condition on the words", key.name());
            reader.report(
                Diagnostic::new(&MISSING_KEY, head_span(node), message)
                    .with_help("add a test such as `matches: '^/etc/'` or `not: { inside: /work }`"),
            );
            return None;
        }
        let node = YamlNode { value: YamlValue::Mapping(entries), span: node.span };
        let condition = read_condition(each, &node, source, reader)?;
        Some(Self { key, each, takes_patterns, skips_unknown, condition })
    }

    /// Evaluates the test for a command.
    pub(super) fn eval(&self, command: &ShellCommand, view: &CallView<'_>) -> Truth {
        let memo = ElementMemo::default();
        let is_tested = |word: &&ShellWord| {
            let is_known = word.certainty != Certainty::Unknown
                && (!self.key.is_files() || command.directories.paths(&word.text).is_some());
            !self.skips_unknown || is_known
        };
        let words = self.key.words(command).iter().filter(is_tested);
        self.each.combine(words.map(|word| self.eval_word(word, &command.directories, (&memo, view))))
    }

    fn eval_word(
        &self,
        word: &ShellWord,
        directories: &Directories,
        (memo, view): (&ElementMemo, &CallView<'_>),
    ) -> Truth {
        let one = self.key.one();
        if let Err(exceeded) = work_limit::spend(2) {
            return Truth::Undecided(exceeded.to_string());
        }
        if word.certainty == Certainty::Unknown {
            return Truth::Undecided(format!("{one} is known only when it runs"));
        }
        if word.certainty == Certainty::Pattern
            && !self.takes_patterns
            && self.condition.has_other_than_tests()
        {
            return Truth::Undecided(format!("{one} is a pattern of file names"));
        }
        let mut element = match self.key.is_files() {
            true => ShellElement::file(word, directories),
            false => ShellElement::word(word, directories),
        };
        if element.texts.is_empty() {
            return Truth::Undecided(format!("{one} is in a directory that is known only when it runs"));
        }
        if self.takes_patterns {
            element.forms.is_pattern = false;
        }
        let truths = element.texts.iter().map(|text| {
            let scope = ElementScope {
                element: NodeRef::Text(text),
                memo,
                word: Some(&element.forms),
                outer: view.elements,
            };
            self.condition.eval(&CallView { elements: Some(&scope), ..*view })
        });
        let truths: Vec<Truth> = truths.collect();
        let same = truths.first().filter(|first| truths.iter().all(|truth| truth == *first)).cloned();
        match same.unwrap_or_else(|| Truth::Undecided("it runs in one of several directories".to_owned())) {
            Truth::Undecided(why) => Truth::Undecided(format!("{one}: {why}")),
            decided => decided,
        }
    }
}

/// Reads the condition with the word as the innermost element.
fn read_condition(
    each: Quantifier,
    node: &YamlNode,
    source: &ValueSource,
    reader: &mut PolicyReader<'_>,
) -> Option<Condition> {
    if reader.names.elements().len() >= MAX_ELEMENT_NESTING {
        let message = format!("conditions on elements nest deeper than {MAX_ELEMENT_NESTING}");
        reader.report(
            Diagnostic::new(&OUT_OF_RANGE, head_span(node), message).with_help("simplify the condition"),
        );
        return None;
    }
    let outer = Arc::clone(&reader.names);
    let name = source.element_name(ITEM.to_owned(), outer.elements());
    Arc::make_mut(&mut reader.names).add_element(name);
    let is_negation = each == Quantifier::None;
    reader.is_negated ^= is_negation;
    let condition = Condition::read(node, reader);
    reader.is_negated ^= is_negation;
    reader.names = outer;
    condition
}
