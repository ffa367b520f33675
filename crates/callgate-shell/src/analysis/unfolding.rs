//! Wrappers: the commands that `sudo`, `xargs`, `ssh`, `find -exec` and others run.

use super::command_builder::Invocation;
use super::simple_command::RedirectedFiles;
use super::state::{Flow, State};
use super::{Analysis, Input};
use crate::command::DoubtKind;
use crate::directories::Directories;
use crate::programs::{ParsedArguments, Program, Runs, find_wrapper};
use crate::word::{Certainty, ShellWord};

/// The flags of `find` and `fd` behind which a command begins.
const COMMAND_FLAGS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Wrappers that start a shell if they are given no command.
const SHELL_STARTERS: [&str; 4] = ["ssh", "mosh", "chroot", "nsenter"];

/// A wrapper that a command is.
pub(super) struct FoundWrapper {
    /// The number of subcommands.
    subcommands: usize,
    /// The number of operands before the command that it runs.
    operands: usize,
    runs: Runs,
    is_remote: bool,
    flags_with_value: Vec<String>,
}

impl FoundWrapper {
    /// The number of operands before the command, with subcommands.
    pub(super) fn operands_before(&self) -> usize {
        self.subcommands + self.operands
    }
}

impl Analysis<'_> {
    /// The wrapper that a program is with these arguments.
    pub(super) fn wrapper_of(
        &self,
        name: &str,
        canonical: &str,
        arguments: &[ShellWord],
    ) -> Option<FoundWrapper> {
        let parsed = ParsedArguments::new(Program::find(name), arguments, None);
        let operand = |index: usize| parsed.operands.get(index).and_then(ShellWord::as_known);
        let defined = self.wrappers.iter().find(|wrapper| {
            let mut words = wrapper.words.iter();
            words.next().is_some_and(|program| program == name || program == canonical)
                && words.enumerate().all(|(index, word)| operand(index) == Some(word))
        });
        if let Some(wrapper) = defined {
            return Some(FoundWrapper {
                subcommands: wrapper.words.len().saturating_sub(1),
                operands: wrapper.operands,
                runs: wrapper.runs,
                is_remote: wrapper.is_remote,
                flags_with_value: wrapper.flags_with_value.clone(),
            });
        }
        if matches!(name, "command")
            && arguments.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V"))
        {
            return None;
        }
        let entry = find_wrapper(name, operand).or_else(|| find_wrapper(canonical, operand))?;
        Some(FoundWrapper {
            subcommands: entry.words.split(' ').count().saturating_sub(1),
            operands: entry.operands,
            runs: entry.runs,
            is_remote: entry.is_remote,
            flags_with_value: Vec::new(),
        })
    }

    /// The arguments without the commands that `find -exec` runs, whose flags are not those of `find`.
    pub(super) fn arguments_without_commands(
        &self,
        canonical: &str,
        arguments: &[ShellWord],
    ) -> Vec<ShellWord> {
        if canonical != "find" && canonical != "fd" {
            return arguments.to_vec();
        }
        let mut visible = Vec::new();
        let mut is_inside = false;
        for word in arguments {
            let is_end = matches!(word.text.as_str(), ";" | "+");
            if !is_inside {
                visible.push(word.clone());
            }
            is_inside = (is_inside && !is_end) || COMMAND_FLAGS.contains(&word.text.as_str());
        }
        visible
    }

    /// Follows the commands of `find -exec` and `fd -x`, and reports what `find -delete` removes.
    pub(super) fn unfold_search(&mut self, invocation: &Invocation<'_>, index: usize, state: &State) {
        let is_start = |word: &&ShellWord| !word.text.starts_with(['-', '(', '!']);
        let mut starts: Vec<ShellWord> = match invocation.canonical {
            "find" => invocation.arguments.iter().take_while(is_start).cloned().collect(),
            _ => invocation.parsed.operands.iter().skip(1).cloned().collect(),
        };
        if starts.is_empty() {
            starts.push(ShellWord::known("."));
        }
        let found: Vec<ShellWord> = starts
            .iter()
            .map(|start| match start.certainty {
                Certainty::Unknown => ShellWord::unknown_words(start.text.clone()),
                _ => ShellWord {
                    text: format!("{}/**", start.text.trim_end_matches('/')),
                    certainty: Certainty::Pattern,
                    is_several: true,
                    input_from: Vec::new(),
                },
            })
            .collect();
        let deletes = invocation.arguments.iter().any(|word| word.text == "-delete");
        if let Some(command) = self.script.commands.get_mut(index) {
            command.reads.append(&mut starts);
            if deletes {
                command.writes.extend(found.iter().cloned());
            }
        }
        if invocation
            .arguments
            .iter()
            .any(|word| word.certainty == Certainty::Unknown && word.is_several && word.may_be_flag())
        {
            self.doubt(DoubtKind::Dynamic, "the arguments of a search are known only when it runs");
        }
        let mut rest = invocation.arguments.iter();
        while rest.any(|word| COMMAND_FLAGS.contains(&word.text.as_str())) {
            let mut words = Vec::new();
            for word in rest.by_ref().take_while(|word| !matches!(word.text.as_str(), ";" | "+")) {
                match word.text.as_str() {
                    "{}" | "{/}" | "{//}" | "{.}" | "{/.}" => words.extend(found.iter().cloned()),
                    text if text.contains("{}") => words.push(ShellWord::unknown(text)),
                    _ => words.push(word.clone()),
                }
            }
            if invocation.canonical == "fd"
                && !invocation.arguments.iter().any(|word| word.text.contains('{'))
            {
                words.extend(found.iter().cloned());
            }
            self.run_inside(invocation.name, false, |analysis| {
                analysis.run_command(&words, &RedirectedFiles::default(), state.clone());
            });
        }
    }

    /// Follows the command that a wrapper runs.
    pub(super) fn unfold(
        &mut self,
        wrapper: &FoundWrapper,
        invocation: &Invocation<'_>,
        files: &RedirectedFiles,
        state: State,
    ) -> Flow {
        let arguments = self.without_defined_flags(wrapper, invocation.arguments);
        let program = Program::find(invocation.name);
        let parsed = ParsedArguments::new(program, &arguments, Some(wrapper.operands_before()));
        let Some(begin) = self.command_begin(wrapper, &parsed, &arguments, &state) else {
            let has_shell_flag = parsed.flags.iter().any(|flag| matches!(flag.written.as_str(), "-s" | "-i"));
            let is_sudo = matches!(invocation.canonical, "sudo" | "doas");
            if SHELL_STARTERS.contains(&invocation.canonical) || is_sudo && has_shell_flag {
                self.doubt(DoubtKind::Dynamic, "a shell reads commands that are known only when it runs");
            }
            return Flow::same(state);
        };
        let own = arguments.get(..begin).unwrap_or_default();
        let may_move =
            |word: &ShellWord| word.certainty != Certainty::Known && (word.is_several || word.may_be_flag());
        if own.iter().any(may_move) || parsed.has_unknown_flag {
            self.doubt(DoubtKind::Dynamic, "where the command of a wrapper begins is not known");
        }
        let mut words = arguments.get(begin..).unwrap_or_default().to_vec();
        if words.is_empty() {
            return Flow::same(state);
        }
        let mut inner = state.clone();
        if wrapper.is_remote {
            inner = State::new(None);
        }
        for flag in &parsed.flags {
            if matches!(flag.written.as_str(), "-C" | "--chdir" | "-D")
                && matches!(invocation.canonical, "env" | "sudo" | "doas")
            {
                inner.directories = match flag.value.as_ref().and_then(ShellWord::as_known) {
                    Some(path) => inner.directories.change(path),
                    None => Directories::Unknown,
                };
            }
        }
        let is_shell_state = matches!(invocation.name, "eval" | "command" | "builtin" | "exec");
        let mut flow = Flow::same(state.clone());
        self.run_inside(invocation.name, wrapper.is_remote, |analysis| match wrapper.runs {
            Runs::Command | Runs::CommandWithMore => {
                if wrapper.runs == Runs::CommandWithMore {
                    analysis.add_read_arguments(&parsed, &mut words);
                }
                let after = analysis.run_command(&words, files, inner);
                if is_shell_state {
                    flow = after;
                }
            }
            Runs::Text => {
                let known: Option<Vec<&str>> = words.iter().map(ShellWord::as_known).collect();
                match known {
                    Some(known) => {
                        let after = analysis.run_text(&known.join(" "), inner);
                        if is_shell_state {
                            flow = after;
                        }
                    }
                    None => {
                        analysis.doubt(DoubtKind::Dynamic, "a text with commands is known only when it runs");
                        if is_shell_state {
                            flow.succeeded.directories = Directories::Unknown;
                            flow.succeeded.is_any_set = true;
                            flow.failed = flow.succeeded.clone();
                        }
                    }
                }
            }
            Runs::Texts => words.iter().for_each(|word| analysis.run_word(word, &inner)),
        });
        flow
    }

    /// Where the command begins among the arguments: behind the wrapper's operands, variables and `--`.
    fn command_begin(
        &mut self,
        wrapper: &FoundWrapper,
        parsed: &ParsedArguments,
        arguments: &[ShellWord],
        state: &State,
    ) -> Option<usize> {
        let count = wrapper.operands_before();
        let mut begin = parsed.positions.get(count).copied()?;
        while let Some(word) = arguments.get(begin) {
            if word.text == "--" {
                begin += 1;
            } else if count > 0 && word.text.starts_with('-') && wrapper.runs == Runs::Command {
                // Flags behind the operands: `kubectl exec POD -c CONTAINER -- COMMAND`.
                let rest = arguments.get(begin..)?;
                let dashes = rest.iter().position(|word| word.text == "--");
                if dashes.is_none() {
                    self.doubt(DoubtKind::Dynamic, "where the command of a wrapper begins is not known");
                }
                begin += dashes.unwrap_or(0) + 1;
            } else if wrapper.runs == Runs::Command
                && count == 0
                && self.follow_argument_assignment(word, state).is_some()
            {
                begin += 1;
            } else {
                break;
            }
        }
        (begin < arguments.len()).then_some(begin)
    }

    /// The arguments without the flags that the rules define for a wrapper.
    fn without_defined_flags(&self, wrapper: &FoundWrapper, arguments: &[ShellWord]) -> Vec<ShellWord> {
        let mut kept = Vec::new();
        let mut rest = arguments.iter();
        let mut operands = 0;
        while let Some(word) = rest.next() {
            if operands <= wrapper.operands_before() && wrapper.flags_with_value.contains(&word.text) {
                rest.next();
                continue;
            }
            operands += usize::from(!word.text.starts_with('-'));
            kept.push(word.clone());
        }
        kept
    }

    /// Adds the arguments that `xargs` reads.
    fn add_read_arguments(&mut self, parsed: &ParsedArguments, words: &mut Vec<ShellWord>) {
        let replaced = parsed.flags.iter().find(|flag| flag.name == "-I" || flag.name == "-J");
        match replaced.map(|flag| flag.value.as_ref().and_then(ShellWord::as_known)) {
            Some(Some(mark)) if !mark.is_empty() => {
                for word in words.iter_mut().filter(|word| word.text.contains(mark)) {
                    *word = ShellWord::unknown(word.text.clone());
                }
            }
            Some(_) => *words = vec![ShellWord::unknown_words("{}")],
            None => words.push(ShellWord::unknown_words("(input)")),
        }
    }

    /// Follows commands that a wrapper runs.
    fn run_inside(&mut self, name: &str, is_remote: bool, follow: impl FnOnce(&mut Self)) {
        let was_remote = self.is_remote;
        let input = self.input.clone();
        self.run_by.push(name.to_owned());
        self.is_remote |= is_remote;
        if self.run_by.len() > 16 {
            self.doubt(DoubtKind::Dynamic, "wrappers are nested too deep");
        } else {
            follow(self);
        }
        self.run_by.pop();
        self.is_remote = was_remote;
        self.input = Input { ..input };
    }
}
