//! Expansion of words: what a shell makes of a word, as far as it is known.

use super::Analysis;
use super::braces::expand_braces;
use super::state::State;
use crate::command::DoubtKind;
use crate::syntax::{Parameter, Part, Word};
use crate::word::{Certainty, ShellWord};

/// A word that is being expanded.
#[derive(Default)]
struct Expanded {
    text: String,
    is_unknown: bool,
    is_pattern: bool,
    is_several: bool,
    /// Whether something is quoted, so that the word remains if it is empty.
    is_quoted: bool,
}

impl Analysis<'_> {
    /// Expands words to the words of a command.
    pub(super) fn expand_words(&mut self, words: &[Word], state: &State) -> Vec<ShellWord> {
        let mut expanded = Vec::new();
        for word in words {
            let input_from = self.follow_parts(word, state);
            let first = expanded.len();
            match expand_braces(word) {
                Some(alternatives) => {
                    expanded
                        .extend(alternatives.iter().filter_map(|word| self.expand_plain(word, state, true)));
                }
                None => expanded.push(ShellWord::unknown_words("{…}")),
            }
            for word in expanded.iter_mut().skip(first) {
                word.input_from.clone_from(&input_from);
            }
        }
        expanded
    }

    /// Expands a word that stays one: the target of a redirection, the value of a variable.
    pub(super) fn expand_word(&mut self, word: &Word, state: &State) -> ShellWord {
        let input_from = self.follow_parts(word, state);
        let expanded = self.expand_plain(word, state, false).unwrap_or_else(|| ShellWord::known(""));
        ShellWord { input_from, ..expanded }
    }

    /// Follows the commands in a word, and returns the programs that they run.
    fn follow_parts(&mut self, word: &Word, state: &State) -> Vec<String> {
        let first = self.script.commands.len();
        for part in &word.parts {
            match part {
                Part::Bare(_) => {}
                Part::Quoted(text) => self.has_quoted_code |= text.contains("$(") || text.contains('`'),
                Part::Parameter(parameter) => self.follow_parameter(parameter, state),
                Part::Substitution { list, .. } | Part::Process { list, .. } => {
                    self.follow_list(list, state.clone());
                }
                Part::Arithmetic(expression) => {
                    self.has_evaluation = true;
                    self.assigned.is_any |= assigns(expression);
                    self.follow_parts(expression, state);
                }
            }
        }
        self.programs_since(first).0
    }

    fn follow_parameter(&mut self, parameter: &Parameter, state: &State) {
        if !parameter.is_plain {
            self.has_evaluation = true;
        }
        if parameter.assigns {
            self.assigned.names.push(parameter.name.clone());
        }
        // `${x@P}` runs the commands in a value.
        let evaluates =
            |part: &Part| matches!(part, Part::Bare(text) | Part::Quoted(text) if text.contains('P'));
        if parameter.is_indirect && parameter.argument.parts.iter().any(evaluates) {
            self.doubt(DoubtKind::Dynamic, "a value is expanded as a prompt");
        }
        self.follow_parts(&parameter.argument, state);
    }

    /// Expands a word without braces and without following its commands. `None` if nothing remains of it.
    fn expand_plain(&mut self, word: &Word, state: &State, is_split: bool) -> Option<ShellWord> {
        let mut expanded = Expanded::default();
        for (index, part) in word.parts.iter().enumerate() {
            match part {
                Part::Bare(text) => {
                    if index == 0 && text.starts_with('=') && text.len() > 1 && is_split {
                        self.doubt(DoubtKind::Dynamic, "some shells replace a word that begins with `=`");
                    }
                    expanded.is_pattern |= is_split && has_pattern(text);
                    expanded.text.push_str(text);
                }
                Part::Quoted(text) => {
                    expanded.is_quoted = true;
                    expanded.text.push_str(text);
                }
                Part::Parameter(parameter) => expanded.add_parameter(parameter, state, is_split),
                Part::Substitution { is_quoted, .. } => {
                    expanded.add_unknown("$(…)", is_split && !is_quoted);
                    expanded.is_quoted |= is_quoted;
                }
                Part::Arithmetic(_) => expanded.add_unknown("$((…))", false),
                Part::Process { is_input, .. } => {
                    expanded.add_unknown(if *is_input { "<(…)" } else { ">(…)" }, false);
                }
            }
        }
        let has_tilde = matches!(word.parts.first(), Some(Part::Bare(text)) if text.starts_with('~'));
        if has_tilde && state.is_set("HOME") {
            expanded.is_unknown = true;
        }
        if expanded.text.is_empty() && !expanded.is_quoted && is_split {
            return None;
        }
        let certainty = match (expanded.is_unknown, expanded.is_pattern) {
            (true, _) => Certainty::Unknown,
            (false, true) => Certainty::Pattern,
            (false, false) => Certainty::Known,
        };
        Some(ShellWord {
            is_several: expanded.is_several || certainty == Certainty::Pattern,
            certainty,
            text: expanded.text,
            input_from: Vec::new(),
        })
    }
}

impl Expanded {
    fn add_unknown(&mut self, text: &str, is_several: bool) {
        self.text.push_str(text);
        self.is_unknown = true;
        self.is_several |= is_several;
    }

    fn add_parameter(&mut self, parameter: &Parameter, state: &State, is_split: bool) {
        self.is_quoted |= parameter.is_quoted;
        let name = parameter.name.as_str();
        if parameter.is_plain && !parameter.is_indirect {
            if name == "HOME" && self.text.is_empty() && !state.is_set("HOME") {
                self.text.push('~');
                return;
            }
            let value = match name {
                "PWD" if !state.is_set("PWD") => state.directories.single(),
                _ => state.value(name),
            };
            if let Some(value) = value {
                let is_split_again = is_split && !parameter.is_quoted;
                // The shell splits an unquoted value at blanks, and replaces patterns in it.
                let is_one = !is_split_again
                    || !state.is_set("IFS")
                        && !value.is_empty()
                        && !value.contains(|c: char| c.is_whitespace() || "*?[\\".contains(c));
                if is_one {
                    self.text.push_str(value);
                    return;
                }
            }
        }
        let is_list = name == "@" || name == "*" || !parameter.is_plain;
        self.add_unknown(&format!("${name}"), is_split && (!parameter.is_quoted || is_list));
    }
}

/// Whether unquoted text has a pattern of file names.
fn has_pattern(text: &str) -> bool {
    text.contains(['*', '?']) || text.contains('[') && text.contains(']')
}

/// Whether an arithmetic expression sets a variable.
fn assigns(expression: &Word) -> bool {
    let text: String = expression
        .parts
        .iter()
        .map(|part| match part {
            Part::Bare(text) | Part::Quoted(text) => text.as_str(),
            _ => "x",
        })
        .collect();
    let compared = ["==", "!=", "<=", ">="].iter().fold(text, |text, operator| text.replace(operator, " "));
    compared.contains('=') || compared.contains("++") || compared.contains("--")
}
