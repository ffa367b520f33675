//! Follows simple commands: assignments, words and redirections.

use super::state::{Flow, State};
use super::{Analysis, Input};
use crate::command::ShellCommand;
use crate::syntax::{Redirection, RedirectionKind, SimpleCommand};
use crate::word::ShellWord;

/// The files and the input of redirections.
#[derive(Clone, Debug, Default)]
pub(super) struct RedirectedFiles {
    pub(super) reads: Vec<ShellWord>,
    pub(super) writes: Vec<ShellWord>,
    pub(super) input: Input,
}

impl Analysis<'_> {
    pub(super) fn follow_simple(&mut self, command: &SimpleCommand, state: State) -> Flow {
        let mut state = state;
        self.follow_assignments(&command.assignments, &mut state, command.words.is_empty());
        let words = self.expand_words(&command.words, &state);
        let files = self.follow_redirections(&command.redirections, &state);
        if command.words.is_empty() {
            self.add_redirection_command(files, &state);
            return Flow::same(state);
        }
        if words.is_empty() {
            // `$EMPTY`, where it is known to be empty.
            return Flow::same(state);
        }
        let outer = self.input.clone();
        if files.input.is_given {
            self.input = files.input.clone();
        }
        let flow = self.run_command(&words, &files, state);
        self.input = outer;
        flow
    }

    /// Reports the files of redirections that belong to no program.
    pub(super) fn add_redirection_command(&mut self, files: RedirectedFiles, state: &State) {
        if files.reads.is_empty() && files.writes.is_empty() {
            return;
        }
        let command = ShellCommand {
            program: Some(String::new()),
            reads: files.reads,
            writes: files.writes,
            run_by: self.run_by.clone(),
            is_remote: self.is_remote,
            directories: state.directories.clone(),
            ..ShellCommand::default()
        };
        self.script.commands.push(command);
    }

    pub(super) fn follow_redirections(
        &mut self,
        redirections: &[Redirection],
        state: &State,
    ) -> RedirectedFiles {
        let mut files = RedirectedFiles::default();
        for redirection in redirections {
            let target = match redirection.kind {
                RedirectionKind::HereDocument(_) => ShellWord::known(""),
                _ => self.expand_word(&redirection.target, state),
            };
            let is_process = matches!(target.text.as_str(), "<(…)" | ">(…)");
            match redirection.kind {
                RedirectionKind::Read | RedirectionKind::ReadWrite if is_process => {
                    files.input = Input { programs: target.input_from, is_given: true, ..Input::default() };
                }
                RedirectionKind::Read => {
                    files.input = Input { is_given: true, ..Input::default() };
                    files.reads.push(target);
                }
                RedirectionKind::Write if is_process => {}
                RedirectionKind::Write => files.writes.push(target),
                RedirectionKind::ReadWrite => {
                    files.input = Input { is_given: true, ..Input::default() };
                    files.reads.push(target.clone());
                    files.writes.push(target);
                }
                RedirectionKind::Duplicate => {
                    let is_descriptor = target
                        .as_known()
                        .is_some_and(|text| text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()));
                    if !is_descriptor {
                        files.writes.push(target);
                    }
                }
                RedirectionKind::HereString | RedirectionKind::HereDocument(_) => {
                    files.input = Input {
                        text: self.redirected_text(redirection, state),
                        programs: target.input_from,
                        is_given: true,
                        may_have_more: false,
                    };
                }
            }
        }
        files
    }

    /// The text of a here-document or here-string, if it is known.
    pub(super) fn redirected_text(&mut self, redirection: &Redirection, state: &State) -> Option<String> {
        let word = match redirection.kind {
            RedirectionKind::HereString => redirection.target.clone(),
            RedirectionKind::HereDocument(number) => self.documents.get(number)?.clone(),
            _ => return None,
        };
        let RedirectionKind::HereDocument(number) = redirection.kind else {
            return self.expand_plain_text(&word, state);
        };
        // The document itself has the commands in it; a copy has none.
        let document = self.documents.get_mut(number).map(std::mem::take)?;
        let text = self.expand_word(&document, state);
        if let Some(slot) = self.documents.get_mut(number) {
            *slot = document;
        }
        text.as_known().map(str::to_owned)
    }

    fn expand_plain_text(&mut self, word: &crate::syntax::Word, state: &State) -> Option<String> {
        self.expand_word(word, state).as_known().map(str::to_owned)
    }
}
