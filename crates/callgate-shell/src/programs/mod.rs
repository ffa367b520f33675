//! What is known of programs: their names, flags, and what they do with their operands.

mod arguments;
mod code;
mod flag_table;
mod program_table;
mod wrapper;
mod wrapper_table;

pub(crate) use arguments::ParsedArguments;
pub(crate) use code::{inline_code_is_harmless, powershell_reason};
pub(crate) use flag_table::FlagValue;
pub(crate) use wrapper::Runs;
pub use wrapper::{Wrapper, WrapperError};
pub(crate) use wrapper_table::find_wrapper;

use std::collections::HashMap;
use std::sync::LazyLock;

use flag_table::FlagTable;
use program_table::PROGRAMS;

/// What a program does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Nothing that is known.
    Other,
    /// It reads these files.
    Reads,
    /// It writes or removes these files.
    Writes,
    /// It reads all but the last one, which it writes.
    ReadsThenWrites,
    /// It removes all but the last one, which it writes.
    Moves,
    /// The first one is a mode, an owner or a pattern; the others are written.
    SkipThenWrites,
    /// The first one is a pattern, the others are read.
    SkipThenReads,
    /// The first one is a subcommand.
    Subcommand,
    /// The first one is code of its language, the others are read.
    Code,
    /// The first one is a file with code.
    Script,
    /// It runs scripts of the project.
    ProjectScripts,
    /// `dd`: operands of the form `if=FILE`, `of=FILE`.
    Assignments,
}

/// A program.
#[derive(Debug)]
pub(crate) struct Program {
    /// All its names.
    pub(crate) names: Vec<&'static str>,
    pub(crate) operands: Operands,
    pub(crate) flags: FlagTable,
}

static BY_NAME: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
    let mut programs = HashMap::new();
    for (names, operands, flags) in PROGRAMS {
        for names in names.split(' ') {
            let names: Vec<&'static str> = names.split('/').collect();
            for name in &names {
                let program =
                    Program { names: names.clone(), operands: *operands, flags: FlagTable::new(flags) };
                programs.insert(*name, program);
            }
        }
    }
    programs
});

impl Program {
    /// The program of this name, without its directory. A version at its end does not count: `python3.12` is `python`.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        BY_NAME.get(name).or_else(|| BY_NAME.get(unversioned).filter(|_| !unversioned.is_empty()))
    }
}
