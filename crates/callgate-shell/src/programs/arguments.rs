//! The arguments of a command: flags with their values, and operands.

use super::flag_table::{FlagEntry, FlagValue};
use super::{Operands, Program};
use crate::command::Flag;
use crate::word::{Certainty, ShellWord};

/// Flags and operands of a command.
#[derive(Debug, Default)]
pub(crate) struct ParsedArguments {
    pub(crate) flags: Vec<Flag>,
    pub(crate) operands: Vec<ShellWord>,
    /// The positions of the operands among the arguments.
    pub(crate) positions: Vec<usize>,
    pub(crate) may_have_more_flags: bool,
    /// Whether a flag that is not in the table is before the first operand, which may be its value.
    pub(crate) is_first_ambiguous: bool,
    /// Whether there is a flag that is not in the table, and may have a value.
    pub(crate) has_unknown_flag: bool,
    /// The values of flags that are files, shell commands or code.
    pub(crate) values: Vec<(FlagValue, ShellWord)>,
}

impl ParsedArguments {
    /// Separates flags from operands. With `stops_at_operand`, everything behind the operand of this number, from 0, is one, too: of wrappers it
    /// belongs to the command that they run.
    pub(crate) fn new(
        program: Option<&Program>,
        arguments: &[ShellWord],
        stops_at_operand: Option<usize>,
    ) -> Self {
        let mut parsed = Self::default();
        let mut rest = arguments.iter().enumerate().peekable();
        let mut only_operands = false;
        let mut is_unknown_before = false;
        while let Some((position, word)) = rest.next() {
            let is_behind = stops_at_operand.is_some_and(|count| parsed.operands.len() > count);
            let is_flag = !only_operands
                && !is_behind
                && word.certainty != Certainty::Unknown
                && word.text.starts_with('-')
                && word.text != "-";
            if word.text == "--" && is_flag {
                only_operands = true;
                continue;
            }
            if !is_flag {
                if !only_operands && !is_behind && word.certainty != Certainty::Known && word.may_be_flag() {
                    parsed.may_have_more_flags = true;
                }
                if parsed.operands.is_empty() {
                    parsed.is_first_ambiguous = is_unknown_before;
                }
                parsed.operands.push(word.clone());
                parsed.positions.push(position);
                continue;
            }
            let needs_value = parsed.add_flag(program, word);
            match needs_value {
                Needs::Nothing => is_unknown_before = false,
                Needs::Maybe => {
                    is_unknown_before = true;
                    parsed.has_unknown_flag = true;
                }
                Needs::Value(kind) => {
                    is_unknown_before = false;
                    if let Some((_, value)) = rest.next() {
                        parsed.set_value(kind, value.clone());
                    }
                }
            }
        }
        parsed
    }

    fn set_value(&mut self, kind: FlagValue, value: ShellWord) {
        if let Some(flag) = self.flags.last_mut() {
            flag.value = Some(value.clone());
        }
        if !matches!(kind, FlagValue::None | FlagValue::Plain) {
            self.values.push((kind, value));
        }
    }

    fn push_flag(&mut self, entry: Option<&FlagEntry>, written: &str) {
        self.flags.push(Flag {
            name: entry.map_or_else(|| written.to_owned(), |entry| entry.name().to_owned()),
            written: written.to_owned(),
            names: entry.map(|entry| entry.names.clone()).unwrap_or_default(),
            value: None,
        });
    }

    fn add_flag(&mut self, program: Option<&Program>, word: &ShellWord) -> Needs {
        let text = word.text.as_str();
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let table = program.map(|program| &program.flags);
        let entry = table.and_then(|table| table.find(name).or_else(|| table.find_abbreviated(name)));
        if let Some(entry) = entry {
            self.push_flag(Some(entry), name);
            return match (attached, entry.value) {
                (Some(value), kind) => {
                    self.set_value(kind, ShellWord { text: value.to_owned(), ..word.clone() });
                    Needs::Nothing
                }
                (None, FlagValue::None) => Needs::Nothing,
                (None, kind) => Needs::Value(kind),
            };
        }
        if text.starts_with("--") || text.chars().count() == 2 {
            self.push_flag(None, name);
            if let Some(value) = attached {
                self.set_value(FlagValue::Plain, ShellWord { text: value.to_owned(), ..word.clone() });
                return Needs::Nothing;
            }
            return Needs::Maybe;
        }
        self.add_merged(program, word)
    }

    /// Adds `-rf` as `-r` and `-f`, and also as it is written if not all letters are known: some programs have long flags with one dash.
    fn add_merged(&mut self, program: Option<&Program>, word: &ShellWord) -> Needs {
        let mut are_known = program.is_some();
        let letters: Vec<char> = word.text.chars().skip(1).collect();
        for (index, letter) in letters.iter().enumerate() {
            let name = format!("-{letter}");
            let entry = program.and_then(|program| program.flags.find(&name));
            are_known &= entry.is_some();
            self.push_flag(entry, &name);
            let Some(kind) = entry.map(|entry| entry.value).filter(|kind| *kind != FlagValue::None) else {
                continue;
            };
            let value: String = letters.iter().skip(index + 1).collect();
            if value.is_empty() {
                return Needs::Value(kind);
            }
            self.set_value(kind, ShellWord { text: value, ..word.clone() });
            return Needs::Nothing;
        }
        if are_known {
            return Needs::Nothing;
        }
        let name = word.text.split('=').next().unwrap_or_default();
        self.push_flag(None, name);
        if let Some((_, value)) = word.text.split_once('=') {
            self.set_value(FlagValue::Plain, ShellWord { text: value.to_owned(), ..word.clone() });
            return Needs::Nothing;
        }
        Needs::Maybe
    }
}

/// Whether the next word is the value of a flag.
enum Needs {
    Nothing,
    Maybe,
    Value(FlagValue),
}

impl Operands {
    /// The operands that are read and those that are written, with this program's flags.
    pub(crate) fn files(self, parsed: &ParsedArguments) -> (Vec<ShellWord>, Vec<ShellWord>) {
        let operands = &parsed.operands;
        let has = |name: &str| parsed.flags.iter().any(|flag| flag.name == name);
        let all = || operands.clone();
        let behind_first = || operands.iter().skip(1).cloned().collect::<Vec<_>>();
        let (mut reads, mut writes) = match self {
            Self::Other | Self::Subcommand | Self::ProjectScripts => (Vec::new(), Vec::new()),
            Self::Reads => (all(), Vec::new()),
            Self::Writes => (Vec::new(), all()),
            Self::ReadsThenWrites if has("-t") => (all(), Vec::new()),
            Self::ReadsThenWrites | Self::Moves => match operands.split_last() {
                Some((last, others)) => {
                    let moved = if self == Self::Moves { others.to_vec() } else { Vec::new() };
                    let written = std::iter::once(last.clone()).chain(moved).collect();
                    (others.to_vec(), written)
                }
                None => (Vec::new(), Vec::new()),
            },
            Self::SkipThenWrites => (Vec::new(), behind_first()),
            // With `-e`, no operand is the pattern or the script.
            Self::SkipThenReads | Self::Code if has("-e") || has("-f") => (all(), Vec::new()),
            Self::SkipThenReads | Self::Code => (behind_first(), Vec::new()),
            Self::Script => (operands.iter().take(1).cloned().collect(), Vec::new()),
            Self::Assignments => {
                let behind = |start: &str| {
                    let words = operands.iter().filter_map(|word| {
                        let value = word.text.strip_prefix(start)?;
                        Some(ShellWord { text: value.to_owned(), ..word.clone() })
                    });
                    words.collect::<Vec<_>>()
                };
                (behind("if="), behind("of="))
            }
        };
        // `sed -i` and `perl -i` write the files that they read.
        if matches!(self, Self::Code) && has("-i") {
            writes.append(&mut reads.clone());
        }
        for (kind, value) in &parsed.values {
            match kind {
                FlagValue::Read => reads.push(value.clone()),
                FlagValue::Write => writes.push(value.clone()),
                _ => {}
            }
        }
        (reads, writes)
    }
}
