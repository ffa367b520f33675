//! A test of one shell command: its program, subcommand, flags and words. Command → [`Truth`].

use callgate_shell::{Certainty, ShellCommand, ShellWord};

use super::shell_words_test::{WordsKey, WordsTest};
use crate::call::CallView;
use crate::diagnostic::{Diagnostic, EMPTY_VALUE, INVALID_PATTERN};
use crate::matcher::condition_shape::COMMAND_RECORD;
use crate::matcher::pattern_list::{PatternList, read_name};
use crate::matcher::truth::Truth;
use crate::matcher::value_source::ValueSource;
use crate::name_pattern::NamePattern;
use crate::rules_schema::{PolicyReader, head_span};
use crate::source::{MappingEntry, YamlNode};
use crate::work_limit;

/// The name of a redirection without a program.
const NO_PROGRAM: &str = "(none)";

/// A compiled test of a command.
#[derive(Debug)]
pub(super) struct CommandTest(Vec<CommandPart>);

/// A part of a test, all of which must hold.
#[derive(Debug)]
enum CommandPart {
    Program(Vec<NamePattern>),
    /// Sequences of words, one of which the subcommand begins with.
    Subcommand(Vec<Vec<NamePattern>>),
    Flag(FlagPattern),
    OnlyFlags(Vec<NamePattern>),
    InputFrom(Vec<NamePattern>),
    RunBy(Vec<NamePattern>),
    Remote(bool),
    Words(Box<WordsTest>),
    All(Vec<CommandTest>),
    Any(Vec<CommandTest>),
    Not(Box<CommandTest>),
}

/// A flag, with its value if that matters.
#[derive(Debug)]
struct FlagPattern {
    name: NamePattern,
    value: Option<NamePattern>,
}

impl CommandTest {
    /// Reads a test of a command. `source` is where the shell text is read.
    pub(super) fn read(node: &YamlNode, source: &ValueSource, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let entries = node.entries()?;
        if entries.is_empty() {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, head_span(node), "this test of a command is empty")
                    .with_help("write for example `{ program: rm, flags: [-r] }`"),
            );
            return None;
        }
        let is_known =
            |entry: &&MappingEntry| COMMAND_RECORD.fields.iter().any(|field| field.name == entry.key);
        let mut parts: Vec<Option<CommandPart>> = Vec::new();
        for entry in entries.iter().filter(is_known) {
            parts.extend(CommandPart::read_all(&entry.key, &entry.value, source, reader));
        }
        parts.into_iter().collect::<Option<_>>().map(Self)
    }

    /// Reads a list of tests.
    pub(super) fn read_list(
        node: &YamlNode,
        source: &ValueSource,
        reader: &mut PolicyReader<'_>,
    ) -> Option<Vec<Self>> {
        let tests: Vec<Option<Self>> =
            node.items()?.iter().map(|item| Self::read(item, source, reader)).collect();
        tests.into_iter().collect()
    }

    /// Evaluates the test for a command.
    pub(super) fn eval(&self, command: &ShellCommand, view: &CallView<'_>) -> Truth {
        Truth::all(self.0.iter().map(|part| part.eval(command, view)))
    }
}

impl CommandPart {
    fn read_all(
        key: &str,
        node: &YamlNode,
        source: &ValueSource,
        reader: &mut PolicyReader<'_>,
    ) -> Vec<Option<Self>> {
        if let Some(key) = WordsKey::from_name(key) {
            return vec![WordsTest::read(key, node, source, reader).map(|test| Self::Words(Box::new(test)))];
        }
        let items = || node.items().unwrap_or(std::slice::from_ref(node)).iter();
        match key {
            "program" => vec![Some(Self::Program(PatternList::read(node, reader).patterns))],
            "input_from" => vec![Some(Self::InputFrom(PatternList::read(node, reader).patterns))],
            "run_by" => vec![Some(Self::RunBy(PatternList::read(node, reader).patterns))],
            "subcommand" => {
                let sequences: Vec<Option<Vec<NamePattern>>> =
                    items().map(|item| read_words(item, reader)).collect();
                vec![sequences.into_iter().collect::<Option<_>>().map(Self::Subcommand)]
            }
            "flags" => items().map(|item| FlagPattern::read(item, reader).map(Self::Flag)).collect(),
            "only_flags" => {
                let flags: Vec<Option<FlagPattern>> =
                    items().map(|item| FlagPattern::read(item, reader)).collect();
                let flags = flags.into_iter().map(|flag| flag.map(|flag| flag.name));
                vec![flags.collect::<Option<_>>().map(Self::OnlyFlags)]
            }
            "remote" => vec![node.as_bool().map(Self::Remote)],
            "all" => vec![CommandTest::read_list(node, source, reader).map(Self::All)],
            "any" => vec![CommandTest::read_list(node, source, reader).map(Self::Any)],
            "not" => {
                reader.is_negated = !reader.is_negated;
                let inner = CommandTest::read(node, source, reader);
                reader.is_negated = !reader.is_negated;
                vec![inner.map(|inner| Self::Not(Box::new(inner)))]
            }
            _ => Vec::new(),
        }
    }

    fn eval(&self, command: &ShellCommand, view: &CallView<'_>) -> Truth {
        if let Err(exceeded) = work_limit::spend(1) {
            return Truth::Undecided(exceeded.to_string());
        }
        match self {
            Self::Program(patterns) => match &command.program {
                None => Truth::Undecided("the program is known only when it runs".to_owned()),
                Some(name) if name.is_empty() => matches_any(patterns, NO_PROGRAM).into(),
                Some(_) => command.program_names().any(|name| matches_any(patterns, name)).into(),
            },
            Self::Subcommand(sequences) => {
                Truth::any(sequences.iter().map(|words| eval_subcommand(words, command)))
            }
            Self::Flag(flag) => flag.eval(command),
            Self::OnlyFlags(flags) => eval_only_flags(flags, command),
            Self::InputFrom(patterns) => {
                match command.input_from.iter().any(|name| matches_any(patterns, name)) {
                    true => Truth::Yes,
                    false if command.may_have_more_input => {
                        Truth::Undecided("what its input comes from is known only when it runs".to_owned())
                    }
                    false => Truth::No,
                }
            }
            Self::RunBy(patterns) => command.run_by.iter().any(|name| matches_any(patterns, name)).into(),
            Self::Remote(is_remote) => (command.is_remote == *is_remote).into(),
            Self::Words(test) => test.eval(command, view),
            Self::All(tests) => Truth::all(tests.iter().map(|test| test.eval(command, view))),
            Self::Any(tests) => Truth::any(tests.iter().map(|test| test.eval(command, view))),
            Self::Not(test) => !test.eval(command, view),
        }
    }
}

impl FlagPattern {
    /// Reads `-f`, `--force*` or `-X=DELETE`.
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let text = node.as_str()?;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if !name.starts_with(['-', '+']) || name.len() < 2 {
            let message = format!("`{}` is not a flag", text.escape_debug());
            reader.report(Diagnostic::new(&INVALID_PATTERN, node.span, message).with_help(
                "a flag begins with `-`, as in `-f` or `--force`; write other words in `operands`",
            ));
            return None;
        }
        let name = read_name(name, node, reader)?;
        let value = match value {
            Some(value) => Some(read_name(value, node, reader)?),
            None => None,
        };
        Some(Self { name, value })
    }

    fn eval(&self, command: &ShellCommand) -> Truth {
        let mut undecided = command
            .may_have_more_flags
            .then(|| Truth::Undecided("its flags are known only when it runs".to_owned()));
        for flag in &command.flags {
            if self.may_be_abbreviated(&flag.written) && flag.name == flag.written {
                undecided = Some(Truth::Undecided("one of its flags may be an abbreviation".to_owned()));
            }
            if !flag.all_names().any(|name| self.name.matches(name)) {
                continue;
            }
            let Some(value) = &self.value else { return Truth::Yes };
            match &flag.value {
                Some(word) if word.certainty != Certainty::Known => {
                    undecided =
                        Some(Truth::Undecided("the value of a flag is known only when it runs".to_owned()));
                }
                Some(word) if value.matches(&word.text) => return Truth::Yes,
                Some(_) | None => {}
            }
        }
        undecided.unwrap_or(Truth::No)
    }

    /// Whether a long flag as written can be the beginning of the name, as many programs accept it.
    fn may_be_abbreviated(&self, written: &str) -> bool {
        let NamePattern::Exact(name) = &self.name else { return false };
        written.len() > 3
            && written.starts_with("--")
            && name.len() > written.len()
            && name.starts_with(written)
    }
}

/// Whether the command has no other flags.
fn eval_only_flags(flags: &[NamePattern], command: &ShellCommand) -> Truth {
    let is_permitted = |flag: &callgate_shell::Flag| flag.all_names().any(|name| matches_any(flags, name));
    match command.flags.iter().all(is_permitted) {
        false => Truth::No,
        true if command.may_have_more_flags => {
            Truth::Undecided("its flags are known only when it runs".to_owned())
        }
        true => Truth::Yes,
    }
}

/// Whether the subcommand begins with these words.
fn eval_subcommand(patterns: &[NamePattern], command: &ShellCommand) -> Truth {
    let truth = begins_with(patterns, &command.subcommand);
    if !command.is_subcommand_ambiguous || truth.is_undetermined() {
        return truth;
    }
    // The first word may be the value of a flag that is not known.
    let shifted = begins_with(patterns, command.subcommand.get(1..).unwrap_or_default());
    match truth == shifted {
        true => truth,
        false => Truth::Undecided("a flag that is not known is before the subcommand".to_owned()),
    }
}

fn begins_with(patterns: &[NamePattern], words: &[ShellWord]) -> Truth {
    let mut words = words.iter();
    for pattern in patterns {
        match words.next() {
            None => return Truth::No,
            Some(word) if word.certainty == Certainty::Known && !word.is_several => {
                if !pattern.matches(&word.text) {
                    return Truth::No;
                }
            }
            Some(_) => return Truth::Undecided("the subcommand is known only when it runs".to_owned()),
        }
    }
    Truth::Yes
}

fn read_words(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Vec<NamePattern>> {
    let text = node.as_str()?;
    let words: Vec<Option<NamePattern>> =
        text.split_whitespace().map(|word| read_name(word, node, reader)).collect();
    if words.is_empty() {
        reader.report(
            Diagnostic::new(&EMPTY_VALUE, node.span, "this subcommand is empty")
                .with_help("write for example `push` or `remote add`"),
        );
        return None;
    }
    words.into_iter().collect()
}

fn matches_any(patterns: &[NamePattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}
