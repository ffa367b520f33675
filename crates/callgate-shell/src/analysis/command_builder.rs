//! Builds a command of its words: program, flags, operands and files.

use super::Analysis;
use super::simple_command::RedirectedFiles;
use super::state::{Flow, State};
use crate::command::{DoubtKind, ShellCommand};
use crate::programs::{Operands, ParsedArguments, Program, inline_code_is_harmless, powershell_reason};
use crate::word::{Certainty, ShellWord};

/// Shells, whose code this analysis can follow.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"];

/// A command that is being built.
pub(super) struct Invocation<'a> {
    pub(super) name: &'a str,
    /// The first name of the program in the table, or the name.
    pub(super) canonical: &'a str,
    pub(super) arguments: &'a [ShellWord],
    pub(super) parsed: ParsedArguments,
}

/// Programs that run commands of their input, or of a terminal.
const READERS_OF_COMMANDS: [&str; 5] = ["parallel", "tmux", "screen", "script", "expect"];

impl Analysis<'_> {
    /// Follows a command of expanded words.
    pub(super) fn run_command(&mut self, words: &[ShellWord], files: &RedirectedFiles, state: State) -> Flow {
        let Some((first, arguments)) = words.split_first() else { return Flow::same(state) };
        if !self.step() {
            return Flow::same(state);
        }
        let Some(path) = first.as_known().filter(|path| !path.is_empty()) else {
            let command = ShellCommand {
                program_path: first.text.clone(),
                arguments: arguments.to_vec(),
                operands: arguments.to_vec(),
                may_have_more_flags: true,
                ..self.empty_command(files, &state)
            };
            self.script.commands.push(command);
            self.doubt(DoubtKind::Dynamic, "a program is known only when it runs");
            return Flow::same(state);
        };
        let name = program_name(path);
        let program = Program::find(&name);
        let canonical = program.and_then(|program| program.names.first().copied()).unwrap_or(&name);
        let wrapper = self.wrapper_of(&name, canonical, arguments);
        let visible = self.arguments_without_commands(canonical, arguments);
        let stops_at = wrapper.as_ref().map(|wrapper| wrapper.operands_before());
        let parsed = ParsedArguments::new(program, &visible, stops_at);
        let index = self.script.commands.len();
        self.push_command(&name, path, program, arguments, &parsed, (files, &state));
        let invocation = Invocation { name: &name, canonical, arguments, parsed };
        let flow = self.run_builtin(&invocation, &state);
        self.follow_code(&invocation, program, &state);
        if canonical == "git" {
            self.follow_git_settings(&invocation.parsed, &state);
        }
        if let Some(reason) = powershell_reason(path, arguments) {
            self.doubt(DoubtKind::Dynamic, reason);
        }
        if canonical == "find" || canonical == "fd" {
            self.unfold_search(&invocation, index, &state);
        }
        if let Some(wrapper) = wrapper {
            return self.unfold(&wrapper, &invocation, files, flow.either());
        }
        if let Some((_, effects)) = self.functions.iter().rev().find(|(function, _)| *function == path) {
            let mut state = flow.either();
            state.forget(&effects.clone());
            return Flow::same(state);
        }
        flow
    }

    fn empty_command(&self, files: &RedirectedFiles, state: &State) -> ShellCommand {
        ShellCommand {
            reads: files.reads.clone(),
            writes: files.writes.clone(),
            input_from: self.input.programs.clone(),
            may_have_more_input: self.input.may_have_more,
            run_by: self.run_by.clone(),
            is_remote: self.is_remote,
            directories: state.directories.clone(),
            ..ShellCommand::default()
        }
    }

    fn push_command(
        &mut self,
        name: &str,
        path: &str,
        program: Option<&'static Program>,
        arguments: &[ShellWord],
        parsed: &ParsedArguments,
        (files, state): (&RedirectedFiles, &State),
    ) {
        let mut command = self.empty_command(files, state);
        let role = program.map_or(Operands::Other, |program| program.operands);
        let (mut reads, mut writes) = role.files(parsed);
        // `bzip2 -c` and the like print; `-` is the standard input or output.
        reads.retain(|file| file.text != "-");
        writes.retain(|file| file.text != "-");
        command.reads.append(&mut reads);
        command.writes.append(&mut writes);
        for word in arguments {
            for program in &word.input_from {
                if !command.input_from.contains(program) {
                    command.input_from.push(program.clone());
                }
            }
        }
        let skipped = usize::from(role == Operands::Subcommand);
        command.program = Some(name.to_owned());
        if let Some(program) = program {
            command.program_aliases =
                program.names.iter().copied().filter(|other| *other != name).take(1).collect();
        }
        command.program_path = path.to_owned();
        command.arguments = arguments.to_vec();
        command.flags.clone_from(&parsed.flags);
        command.may_have_more_flags = parsed.may_have_more_flags;
        command.operands = parsed.operands.iter().skip(skipped).cloned().collect();
        command.subcommand.clone_from(&parsed.operands);
        command.is_subcommand_ambiguous = parsed.is_first_ambiguous;
        self.script.commands.push(command);
    }

    /// Follows code in arguments, and doubts code that is not read.
    fn follow_code(&mut self, invocation: &Invocation<'_>, program: Option<&'static Program>, state: &State) {
        use crate::programs::FlagValue;
        let Invocation { name, canonical, parsed, .. } = invocation;
        for (kind, value) in &parsed.values {
            match kind {
                FlagValue::Commands => self.run_word(value, state),
                FlagValue::Code => self.check_code(canonical, value),
                _ => {}
            }
        }
        let has_code_flag = parsed.values.iter().any(|(kind, _)| *kind == FlagValue::Code);
        let first = parsed.operands.first();
        match program.map(|program| program.operands) {
            Some(Operands::Code) if !has_code_flag && !has_flag(parsed, "-f") => {
                if let Some(code) = first {
                    self.check_code(canonical, code);
                }
            }
            Some(Operands::Script) if SHELLS.contains(name) => self.follow_shell(parsed, state),
            Some(Operands::Script) if *name == "fish" => {
                self.doubt(DoubtKind::Dynamic, "it has commands of another shell");
            }
            Some(Operands::Script) if !has_code_flag => self.check_interpreter_input(parsed),
            Some(Operands::ProjectScripts) => {
                self.doubt(DoubtKind::Scripts, "it runs scripts that a project defines");
            }
            _ => {}
        }
        if runs_project_scripts(canonical, first.map(|word| word.text.as_str())) {
            self.doubt(DoubtKind::Scripts, "it runs scripts that a project defines");
        }
        if has_flag(parsed, "--checkpoint-action") || READERS_OF_COMMANDS.contains(canonical) {
            self.doubt(DoubtKind::Dynamic, "a program runs commands that are known only when it runs");
        }
    }

    fn check_code(&mut self, canonical: &str, code: &ShellWord) {
        let is_harmless = code.as_known().is_some_and(|code| inline_code_is_harmless(canonical, code));
        if !is_harmless {
            self.doubt(DoubtKind::Inline, "it has code of another language");
        }
    }

    /// Follows the commands of a shell: `sh -c TEXT`, `sh FILE`, or its input.
    fn follow_shell(&mut self, parsed: &ParsedArguments, state: &State) {
        let is_question = ["--version", "--help"].iter().any(|flag| has_flag(parsed, flag));
        match parsed.operands.first() {
            Some(text) if has_flag(parsed, "-c") || parsed.may_have_more_flags => {
                if !has_flag(parsed, "-c") {
                    self.doubt(DoubtKind::Dynamic, "a text with commands is known only when it runs");
                }
                let mut inner = state.clone();
                inner.forget_values();
                self.run_word(text, &inner);
            }
            Some(_) if !has_flag(parsed, "-s") => {
                self.doubt(DoubtKind::Files, "it runs shell code of a file");
            }
            None if is_question => {}
            _ => {
                let text = self.input.text.take();
                match text {
                    Some(text) if !self.input.may_have_more => {
                        let mut inner = state.clone();
                        inner.forget_values();
                        self.run_text(&text, inner);
                    }
                    _ => self
                        .doubt(DoubtKind::Dynamic, "a shell reads commands that are known only when it runs"),
                }
            }
        }
    }

    /// Doubts what an interpreter runs that reads its code from its input.
    fn check_interpreter_input(&mut self, parsed: &ParsedArguments) {
        let reads_input = match parsed.operands.first() {
            None => !["-m", "--version", "-V", "-v", "--help"].iter().any(|flag| has_flag(parsed, flag)),
            Some(first) => {
                first.text == "-" || first.certainty == Certainty::Unknown && !first.input_from.is_empty()
            }
        };
        if !reads_input {
            return;
        }
        match (&self.input.text, self.input.is_given) {
            (Some(_), _) => self.doubt(DoubtKind::Inline, "it has code of another language"),
            // Without a given input too: agents can write to programs that run.
            (None, _) => {
                self.doubt(DoubtKind::Dynamic, "an interpreter reads code that is known only when it runs")
            }
        }
    }
}

/// Whether there is a flag of this name.
pub(super) fn has_flag(parsed: &ParsedArguments, name: &str) -> bool {
    parsed.flags.iter().any(|flag| flag.name == name)
}

/// The name of a program without its directory. Some systems ignore the case of names.
fn program_name(path: &str) -> String {
    let name = path.rsplit('/').find(|name| !name.is_empty()).unwrap_or(path).to_lowercase();
    name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)
}

/// Whether a subcommand runs scripts that the project's files define.
fn runs_project_scripts(canonical: &str, subcommand: Option<&str>) -> bool {
    let Some(subcommand) = subcommand else { return canonical == "yarn" };
    match canonical {
        "npm" | "pnpm" => matches!(
            subcommand,
            "run"
                | "run-script"
                | "test"
                | "t"
                | "tst"
                | "start"
                | "stop"
                | "restart"
                | "init"
                | "create"
                | "exec"
                | "x"
        ),
        "yarn" => !matches!(
            subcommand,
            "add"
                | "remove"
                | "install"
                | "info"
                | "why"
                | "list"
                | "outdated"
                | "cache"
                | "config"
                | "version"
                | "--version"
        ),
        "bun" | "deno" => matches!(subcommand, "run" | "task" | "x" | "test"),
        "composer" | "dart" => matches!(subcommand, "run" | "run-script" | "exec"),
        "go" => subcommand == "generate",
        "cargo" => matches!(subcommand, "make" | "xtask" | "run-script"),
        "uv" | "hatch" | "pdm" => subcommand == "run",
        _ => false,
    }
}
