//! The flags of a program: which have values, and which are the same.

/// What the value of a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagValue {
    /// It has none, except after `=`.
    None,
    /// Some text.
    Plain,
    /// A file that is read.
    Read,
    /// A file that is written.
    Write,
    /// Shell commands.
    Commands,
    /// Code of another language.
    Code,
}

/// A flag with its names.
#[derive(Debug)]
pub(crate) struct FlagEntry {
    pub(crate) names: Vec<&'static str>,
    pub(crate) value: FlagValue,
}

impl FlagEntry {
    /// The first name.
    pub(crate) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

/// The flags of a program.
#[derive(Debug)]
pub(crate) struct FlagTable(Vec<FlagEntry>);

impl FlagTable {
    /// Reads flags that are separated by spaces: `-n,--lines=` has two names and a value. What the value is follows `=`: `r` and `w` for files,
    /// `t` for shell commands, `c` for code.
    pub(crate) fn new(text: &'static str) -> Self {
        let entries = text.split_whitespace().map(|entry| {
            let (names, value) = match entry.split_once('=') {
                None => (entry, FlagValue::None),
                Some((names, "r")) => (names, FlagValue::Read),
                Some((names, "w")) => (names, FlagValue::Write),
                Some((names, "t")) => (names, FlagValue::Commands),
                Some((names, "c")) => (names, FlagValue::Code),
                Some((names, _)) => (names, FlagValue::Plain),
            };
            FlagEntry { names: names.split(',').collect(), value }
        });
        Self(entries.collect())
    }

    /// The flag of exactly this name.
    pub(crate) fn find(&self, name: &str) -> Option<&FlagEntry> {
        self.0.iter().find(|entry| entry.names.contains(&name))
    }

    /// The long flag that this one abbreviates, as GNU programs permit.
    pub(crate) fn find_abbreviated(&self, name: &str) -> Option<&FlagEntry> {
        if !name.starts_with("--") || name.len() < 4 {
            return None;
        }
        let mut candidates =
            self.0.iter().filter(|entry| entry.names.iter().any(|full| full.starts_with(name)));
        let first = candidates.next()?;
        candidates.next().is_none().then_some(first)
    }
}
