//! What a text runs: [`ShellScript`], its commands, and what is not known of it.

use crate::directories::Directories;
use crate::word::ShellWord;

/// The commands of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellScript {
    /// Every command that can run, in the order of the text: also those of branches, functions and substitutions, and those that
    /// wrappers such as `sudo` run.
    pub commands: Vec<ShellCommand>,
    /// Why further commands can run, or other ones than these. Empty if none can.
    pub doubts: Vec<Doubt>,
}

/// A reason why a text can run commands that are not among its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// What kind of code it is about.
    pub kind: DoubtKind,
    /// The reason, without parts of the text.
    pub reason: &'static str,
}

/// The kinds of code that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtKind {
    /// Commands that are known only when the text runs, or a text that is not understood.
    Dynamic,
    /// Code of another language in the text: `python -c`, `awk`.
    Inline,
    /// Scripts that a project defines: `npm run`, `make`.
    Scripts,
    /// Shell code in files: `sh FILE`, `source FILE`.
    Files,
}

impl DoubtKind {
    /// The kinds that can be trusted, by their names.
    pub const NAMED: [(&str, Self); 4] = [
        ("inline", Self::Inline),
        ("scripts", Self::Scripts),
        ("files", Self::Files),
        ("dynamic", Self::Dynamic),
    ];
}

/// A command of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The program's name without its directory. Empty for a redirection without a command. `None` if it is known only when it runs.
    pub program: Option<String>,
    /// Other names of the program: `nodejs` is `node`.
    pub program_aliases: Vec<&'static str>,
    /// The program as written, with its directory.
    pub program_path: String,
    /// The words behind the program.
    pub arguments: Vec<ShellWord>,
    /// The flags, in the form of the table of programs.
    pub flags: Vec<Flag>,
    /// Whether there can be other flags, because a word is known only when the command runs.
    pub may_have_more_flags: bool,
    /// The arguments that are neither flags nor values of flags. For programs with subcommands, those behind the first one.
    pub operands: Vec<ShellWord>,
    /// The words from the first subcommand on, without flags.
    pub subcommand: Vec<ShellWord>,
    /// Whether a flag that is not in the table is before the subcommand, so that the subcommand may be its value.
    pub is_subcommand_ambiguous: bool,
    /// The files that it reads.
    pub reads: Vec<ShellWord>,
    /// The files that it writes, creates or removes.
    pub writes: Vec<ShellWord>,
    /// Programs whose output it reads, by a pipe or a substitution.
    pub input_from: Vec<String>,
    /// Whether it may read the output of other programs.
    pub may_have_more_input: bool,
    /// Wrappers that run it, the outermost first: `sudo`, `xargs`.
    pub run_by: Vec<String>,
    /// Whether it runs on another machine or in another file system: by `ssh`, `docker exec`.
    pub is_remote: bool,
    /// The directories in which it can run.
    pub directories: Directories,
}

/// A flag of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The name: the first one of the table of programs, or as written.
    pub name: String,
    /// The name as written.
    pub written: String,
    /// All its names in the table of programs.
    pub names: Vec<&'static str>,
    /// The value, if it has one.
    pub value: Option<ShellWord>,
}

impl Flag {
    /// All names: that of the table, as written, and other ones.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        [self.name.as_str(), self.written.as_str()].into_iter().chain(self.names.iter().copied())
    }
}

impl ShellCommand {
    /// The program's names.
    pub fn program_names(&self) -> impl Iterator<Item = &str> {
        self.program.as_deref().into_iter().chain(self.program_aliases.iter().copied())
    }

    /// The command in one line, for people. Unknown words stand as written.
    pub fn describe(&self) -> String {
        let mut words = vec![self.program_path.clone()];
        words.extend(self.arguments.iter().map(|word| word.text.clone()));
        words.retain(|word| !word.is_empty());
        for (mark, files) in [("<", &self.reads), (">", &self.writes)] {
            let is_argument =
                |file: &&ShellWord| self.arguments.iter().any(|argument| argument.text == file.text);
            words.extend(
                files.iter().filter(|file| !is_argument(file)).map(|file| format!("{mark}{}", file.text)),
            );
        }
        words.join(" ")
    }
}
