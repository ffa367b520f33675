//! Understands shell commands: text → the commands that it can run ([`ShellScript`]).
//!
//! The text is parsed as bash parses it, and nothing is executed. Each command has its program, flags, operands, the files it reads and writes,
//! and the directories in which it can run. Wrappers (`sudo`, `xargs`, `sh -c`, `ssh`) are unfolded: the commands they run are reported,
//! too. What is known only when the text runs is reported as unknown: words such as `$X`, and, as [doubts](Doubt), commands that are not
//! in the text. Without doubts, no other command can run.
//!
//! ```
//! use callgate_shell::Analyzer;
//! let script = Analyzer::default().analyze("cd /tmp && sudo rm -rf -- *.log", Some("/work"));
//! let rm = script.commands.iter().find(|command| command.program.as_deref() == Some("rm")).unwrap();
//! assert_eq!(rm.flags.iter().map(|flag| flag.name.as_str()).collect::<Vec<_>>(), ["-r", "-f"]);
//! assert_eq!(rm.run_by, ["sudo"]);
//! assert_eq!(rm.directories.single(), Some("/tmp"));
//! ```
//!
//! # Limits
//!
//! A program is known by its name: that `PATH` or a link leads this name to another program is not seen, except that a text that changes
//! `PATH` has a doubt. What a program does with its arguments is known for the programs of a table only.

mod syntax;
mod parser;
mod word;
mod directories;
mod command;
mod programs;
mod analysis;

pub use analysis::{Analyzer, MAX_COMMANDS};
pub use command::{Doubt, DoubtKind, Flag, ShellCommand, ShellScript};
pub use directories::Directories;
pub use parser::MAX_BYTES;
pub use programs::{Wrapper, WrapperError};
pub use word::{Certainty, ShellWord};
