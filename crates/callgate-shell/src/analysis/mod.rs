//! Analysis: syntax tree → commands. It follows the text as a shell would, with what is known of directories and variables, through all branches.

mod assignments;
mod braces;
mod builtins;
mod command_builder;
mod control_flow;
mod effects;
mod expansion;
mod simple_command;
mod state;
mod text_output;
mod unfolding;
mod git_settings;

#[cfg(test)]
mod tests;

use crate::command::{Doubt, DoubtKind, ShellScript};
use crate::parser;
use crate::programs::Wrapper;
use crate::syntax::Word;
use crate::word::ShellWord;
use simple_command::RedirectedFiles;
use state::{Flow, State};

/// The maximum number of commands of a text.
pub const MAX_COMMANDS: usize = 2_000;
/// How deep texts may nest: `sh -c` in `sh -c`.
const MAX_TEXT_DEPTH: usize = 8;
/// How often commands may be followed, over all texts.
const MAX_STEPS: usize = 20_000;

/// The analyzer of texts, with the wrappers it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analyzer {
    wrappers: Vec<Wrapper>,
}

impl Analyzer {
    /// An analyzer that knows further wrappers.
    pub fn new(wrappers: Vec<Wrapper>) -> Self {
        Self { wrappers }
    }

    /// Returns the commands of a text that is executed in a directory, which must be absolute.
    pub fn analyze(&self, text: &str, directory: Option<&str>) -> ShellScript {
        let mut analysis = Analysis::new(&self.wrappers);
        analysis.run_text(text, State::new(directory));
        analysis.finish()
    }
}

impl Analyzer {
    /// Returns the commands of a program and its arguments, which no shell expands.
    pub fn analyze_arguments(&self, words: &[&str], directory: Option<&str>) -> ShellScript {
        let mut analysis = Analysis::new(&self.wrappers);
        let words: Vec<ShellWord> = words.iter().map(|word| ShellWord::known(*word)).collect();
        analysis.run_command(&words, &RedirectedFiles::default(), State::new(directory));
        analysis.finish()
    }
}

/// What is known of the input of a command.
#[derive(Clone, Debug, Default)]
struct Input {
    /// The programs whose output it is.
    programs: Vec<String>,
    /// The text, if it is known.
    text: Option<String>,
    /// Whether there is an input at all.
    is_given: bool,
    /// Whether it may also be the output of other programs.
    may_have_more: bool,
}

/// The analysis of one text.
struct Analysis<'w> {
    wrappers: &'w [Wrapper],
    script: ShellScript,
    /// The here-documents of the text that is followed.
    documents: Vec<Word>,
    /// The functions of the text, with what they change.
    functions: Vec<(String, effects::Effects)>,
    /// The wrappers around the command that is followed.
    run_by: Vec<String>,
    is_remote: bool,
    input: Input,
    text_depth: usize,
    steps: usize,
    /// What expansions set: `${X:=…}`, `$((x = 1))`.
    assigned: effects::Effects,
    /// Whether a quoted string looks like code, which an evaluation could run.
    has_quoted_code: bool,
    /// Whether values of variables are evaluated: by arithmetic and the like.
    has_evaluation: bool,
}

impl<'w> Analysis<'w> {
    fn new(wrappers: &'w [Wrapper]) -> Self {
        Self {
            wrappers,
            script: ShellScript::default(),
            documents: Vec::new(),
            functions: Vec::new(),
            run_by: Vec::new(),
            is_remote: false,
            input: Input::default(),
            text_depth: 0,
            steps: 0,
            assigned: effects::Effects::default(),
            has_quoted_code: false,
            has_evaluation: false,
        }
    }

    fn finish(mut self) -> ShellScript {
        if self.has_quoted_code && self.has_evaluation {
            self.doubt(DoubtKind::Dynamic, "a quoted string has code that an evaluation can run");
        }
        self.script
    }

    fn doubt(&mut self, kind: DoubtKind, reason: &'static str) {
        let doubt = Doubt { kind, reason };
        if !self.script.doubts.contains(&doubt) {
            self.script.doubts.push(doubt);
        }
    }

    /// Counts a step. Returns `false`, with a doubt, if there were too many.
    fn step(&mut self) -> bool {
        self.steps += 1;
        let is_within = self.steps <= MAX_STEPS && self.script.commands.len() < MAX_COMMANDS;
        if !is_within {
            self.doubt(DoubtKind::Dynamic, "it has too many commands");
        }
        is_within
    }

    /// Follows a text that the shell runs itself, as `eval` does.
    fn run_text(&mut self, text: &str, state: State) -> Flow {
        if self.text_depth >= MAX_TEXT_DEPTH {
            self.doubt(DoubtKind::Dynamic, "texts with commands are nested too deep");
            return Flow::same(state);
        }
        let tree = match parser::parse(text) {
            Ok(tree) => tree,
            Err(error) => {
                self.doubt(DoubtKind::Dynamic, error.0);
                return Flow::same(state);
            }
        };
        self.text_depth += 1;
        let outer = std::mem::replace(&mut self.documents, tree.documents);
        let flow = self.follow_list(&tree.list, state);
        self.documents = outer;
        self.text_depth -= 1;
        flow
    }

    /// Follows a word that is a text with commands, in a shell of its own.
    fn run_word(&mut self, word: &ShellWord, state: &State) {
        match word.as_known() {
            Some(text) => {
                self.run_text(text, state.clone());
            }
            None => self.doubt(DoubtKind::Dynamic, "a text with commands is known only when it runs"),
        }
    }

    /// The programs of the commands from this one on, and whether they are all known.
    fn programs_since(&self, first: usize) -> (Vec<String>, bool) {
        let mut programs = Vec::new();
        let mut are_known = true;
        for command in self.script.commands.iter().skip(first) {
            are_known &= command.program.is_some();
            for name in command.program_names() {
                if !name.is_empty() && !programs.iter().any(|known| known == name) {
                    programs.push(name.to_owned());
                }
            }
        }
        (programs, are_known)
    }
}
