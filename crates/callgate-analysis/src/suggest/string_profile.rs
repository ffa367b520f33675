//! What the strings at one path have in common: their lengths, values, hosts, mail domains, directories and shapes.

use callgate::address::{Directory, parse_address_domains, url_host};

use super::string_shape::{ShapeLevel, StringShape};
use super::support::{Evidence, Support, UsualMaximum, ValueCounts};

/// The most distinct values, hosts and the like that are counted.
const MAX_VALUES: usize = 512;
/// The most directories that are counted.
const MAX_DIRECTORIES: usize = 4_096;
/// The most bytes of a value that is counted by itself.
const MAX_VALUE_BYTES: usize = 200;
/// The most bytes of a string that is read as an address or a path.
const MAX_ADDRESS_BYTES: usize = 2_000;
/// The deepest directory that is counted.
const MAX_DIRECTORY_DEPTH: usize = 12;

/// What a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StringClass {
    Url,
    MailAddresses,
    AbsolutePath,
    RelativePath,
    Identifier,
    Text,
}

/// The strings at one path.
#[derive(Clone, Debug)]
pub(super) struct StringProfile {
    pub(super) calls: Support,
    pub(super) lengths: UsualMaximum<u64>,
    pub(super) values: ValueCounts<String>,
    pub(super) classes: ValueCounts<StringClass>,
    pub(super) hosts: ValueCounts<String>,
    /// URLs with another scheme than https.
    pub(super) unencrypted: Support,
    pub(super) domains: ValueCounts<String>,
    pub(super) directories: DirectoryCounts,
    pub(super) shapes: [ValueCounts<StringShape>; 3],
    pub(super) shape_lengths: std::collections::BTreeMap<StringShape, RunLengths>,
}

/// The usual lengths of the runs of a shape.
#[derive(Clone, Debug, Default)]
pub(super) struct RunLengths {
    pub(super) longest: Vec<UsualMaximum<u64>>,
    pub(super) shortest: Vec<UsualMaximum<std::cmp::Reverse<u64>>>,
}

/// The directories of paths.
#[derive(Clone, Debug)]
pub(super) struct DirectoryCounts {
    /// Directories with a path at any depth below them.
    pub(super) above: ValueCounts<Vec<String>>,
    /// Directories with a path directly in them.
    pub(super) direct: ValueCounts<Vec<String>>,
}

impl Default for StringProfile {
    fn default() -> Self {
        Self {
            calls: Support::default(),
            lengths: UsualMaximum::default(),
            values: ValueCounts::with_capacity(MAX_VALUES),
            classes: ValueCounts::with_capacity(MAX_VALUES),
            hosts: ValueCounts::with_capacity(MAX_VALUES),
            unencrypted: Support::default(),
            domains: ValueCounts::with_capacity(MAX_VALUES),
            directories: DirectoryCounts {
                above: ValueCounts::with_capacity(MAX_DIRECTORIES),
                direct: ValueCounts::with_capacity(MAX_DIRECTORIES),
            },
            shapes: [(); 3].map(|()| ValueCounts::with_capacity(MAX_VALUES)),
            shape_lengths: std::collections::BTreeMap::new(),
        }
    }
}

impl StringProfile {
    pub(super) fn add(&mut self, text: &str, evidence: &Evidence<'_>) {
        self.calls.add(evidence);
        let length = text.chars().count() as u64;
        self.lengths.add(&length, evidence.session, evidence);
        let value = if text.len() <= MAX_VALUE_BYTES { text } else { LONG_VALUE };
        self.values.add(value.to_owned(), evidence);
        let class = self.add_address(text, evidence).unwrap_or_else(|| self.add_shapes(text, evidence));
        self.classes.add(class, evidence);
    }

    /// Adds the parts of a URL, a list of mail addresses or a path. Returns `None` if it is none.
    fn add_address(&mut self, text: &str, evidence: &Evidence<'_>) -> Option<StringClass> {
        if text.len() > MAX_ADDRESS_BYTES {
            return None;
        }
        if text.contains("://") {
            let host = url_host(text).ok()?;
            self.hosts.add(host, evidence);
            if !text.starts_with("https://") {
                self.unencrypted.add(evidence);
            }
            return Some(StringClass::Url);
        }
        if text.contains('@')
            && let Ok(domains) = parse_address_domains(text)
        {
            domains.into_iter().for_each(|domain| self.domains.add(domain, evidence));
            return Some(StringClass::MailAddresses);
        }
        if !text.contains('/') || text.contains(char::is_whitespace) {
            return None;
        }
        let class = if text.starts_with('/') { StringClass::AbsolutePath } else { StringClass::RelativePath };
        let root = Directory::parse("/", Some("/")).ok()?;
        (root.contains(text) == Ok(true)).then(|| self.directories.add(text, evidence))?;
        Some(class)
    }

    fn add_shapes(&mut self, text: &str, evidence: &Evidence<'_>) -> StringClass {
        for (counts, level) in self.shapes.iter_mut().zip(ShapeLevel::ALL) {
            let Some((shape, lengths)) = StringShape::read(text, level) else { return StringClass::Text };
            if counts.get(&shape).is_some() || counts.iter().count() < MAX_VALUES {
                self.shape_lengths.entry(shape.clone()).or_default().add(&lengths, evidence);
            }
            counts.add(shape, evidence);
        }
        StringClass::Identifier
    }
}

/// Stands for all values that are too long to be counted by themselves; no enumeration contains it.
pub(super) const LONG_VALUE: &str = "\u{0}long";

impl RunLengths {
    fn add(&mut self, lengths: &[u64], evidence: &Evidence<'_>) {
        self.longest.resize_with(lengths.len(), UsualMaximum::default);
        self.shortest.resize_with(lengths.len(), UsualMaximum::default);
        for ((longest, shortest), length) in self.longest.iter_mut().zip(&mut self.shortest).zip(lengths) {
            longest.add(length, evidence.session, evidence);
            shortest.add(&std::cmp::Reverse(*length), evidence.session, evidence);
        }
    }
}

impl DirectoryCounts {
    fn add(&mut self, path: &str, evidence: &Evidence<'_>) {
        let mut segments: Vec<String> = Vec::new();
        for segment in path.split('/') {
            match segment {
                "" | "." => {}
                ".." => drop(segments.pop()),
                name => segments.push(name.to_owned()),
            }
        }
        segments.pop();
        segments.truncate(MAX_DIRECTORY_DEPTH);
        self.direct.add(segments.clone(), evidence);
        loop {
            self.above.add(segments.clone(), evidence);
            if segments.pop().is_none() {
                break;
            }
        }
    }
}
