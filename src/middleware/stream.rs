//! `stream`: hides, drops and replaces in what the model streams.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;

use super::redact::{WITH, read_redactor, texts};
use super::transform::{REPLACE, replacement};
use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape};
use crate::detect::{Reach, Redactor, Replacement, Style};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE, INVALID_REGEX, MISSING_KEY};
use crate::seal::Keys;
use crate::source::Node;

pub(super) static KIND: KindEntry = KindEntry {
    name: "stream",
    doc: "Filters what the model streams, also what is cut into several chunks: first it drops, then it replaces, then it redacts. \
          Text is held back only as long as it can still be part of something that is to go.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: true,
    read: |node, reader| Stream::read(node, reader).map(Kind::Stream),
};

static RECORD: Record = Record {
    name: "stream",
    doc: "What is taken out of what the model streams.",
    fields: &[
        Field::optional(
            "in",
            Shape::OneOrMany(&Shape::Word(&[
                ("text", "what people read"),
                ("reasoning", "what the model thinks aloud"),
            ])),
            "Where. Without it: both.",
        ),
        Field::optional(
            "drop",
            Shape::Either(&[DROPPED, Shape::List(&DROPPED), Shape::Record(&DROP)]),
            "What is dropped: words, or regular expressions such as `/profanity/`, also hidden by look-alikes and escapes.",
        ),
        Field::optional(
            "replace",
            Shape::OneOrMany(&Shape::Record(&REPLACE)),
            "What is replaced by what, one after the other.",
        ),
        Field::optional(
            "redact",
            Shape::OneOrMany(&Shape::Text("a detector's name such as `email`")),
            "Typed detectors of what is redacted.",
        ),
        Field::optional(
            "patterns",
            Shape::OneOrMany(&Shape::Text("a regular expression")),
            "Patterns of your own of what is redacted.",
        ),
        WITH,
    ],
};

const DROPPED: Shape = Shape::Text("a word, or a regular expression such as `/profanity/`");

static DROP: Record = Record {
    name: "drop",
    doc: "What is dropped, and how much with it.",
    fields: &[
        Field::required(
            "patterns",
            Shape::OneOrMany(&DROPPED),
            "Words, in any case, or regular expressions such as `/profanity/`.",
        ),
        Field::optional(
            "unit",
            Shape::Word(&[
                ("match", "what matches, and nothing else"),
                ("line", "the whole line; lines are passed on when they are complete"),
                ("chunk", "the chunk as the host streams it; what is cut into two chunks is not seen"),
            ]),
            "What is dropped where something matches. Without it: `match`.",
        ),
    ],
};

/// How much is dropped where something matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropUnit {
    /// What matches.
    Match,
    /// The line.
    Line,
    /// The chunk.
    Chunk,
}

/// A `stream` policy's own part.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Whether it filters what people read.
    pub text: bool,
    /// Whether it filters what the model thinks aloud.
    pub reasoning: bool,
    /// What is dropped first.
    pub drop: Option<(DropUnit, Arc<Redactor>)>,
    /// What is replaced then, one after the other.
    pub replace: Vec<Arc<Replacement>>,
    /// What is hidden in what is left.
    pub redact: Option<Arc<Redactor>>,
}

impl Stream {
    /// The same with the server's keys, for what is hidden by a digest.
    pub fn with_keys(&self, keys: &Keys) -> Self {
        let redact = self.redact.as_ref().map(|redactor| match redactor.with_keys(keys) {
            Cow::Owned(keyed) => Arc::new(keyed),
            Cow::Borrowed(_) => Arc::clone(redactor),
        });
        Self { redact, ..self.clone() }
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let reported = reader.reported();
        let keys = ["drop", "replace", "redact", "patterns"];
        if keys.iter().all(|key| node.get(key).is_none() && !RECORD.may_be_misspelled(node, key)) {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this says not what to take out").help(
                    "add `redact: [email, …]`, `patterns: [\"…\"]`, `drop: [\"…\"]` or `replace: [ … ]`",
                ),
            );
        }
        let hides = node.get("redact").is_some() || node.get("patterns").is_some();
        if let Some(with) = node.get("with").filter(|_| !hides && node.get("drop").is_some()) {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    with.span,
                    "nothing stands in the place of what is dropped",
                )
                .help("leave `with` out, or say with `redact` or `patterns` what it stands for"),
            );
        }
        let redactor = read_redactor(node, "redact", reader);
        for (pattern, node) in redactor.patterns().iter().zip(texts(node.get("patterns"))) {
            check_reach(pattern, node, reader);
        }
        let replace: Vec<Arc<Replacement>> = texts(node.get("replace"))
            .filter_map(|node| {
                let (pattern, with) = replacement(node, reader)?;
                check_reach(&pattern, node.get("pattern")?, reader);
                Some(Arc::new(Replacement::new(pattern, with)))
            })
            .collect();
        let drop = node.get("drop").map(|node| read_drop(node, reader));
        let places: Vec<&str> = texts(node.get("in")).filter_map(Node::as_str).collect();
        (reader.reported() == reported).then(|| Self {
            text: places.is_empty() || places.contains(&"text"),
            reasoning: places.is_empty() || places.contains(&"reasoning"),
            drop,
            replace,
            redact: hides.then(|| Arc::new(redactor)),
        })
    }
}

fn read_drop(node: &Node, reader: &mut Reader<'_>) -> (DropUnit, Arc<Redactor>) {
    let unit = match node.get("unit").and_then(Node::as_str) {
        Some("line") => DropUnit::Line,
        Some("chunk") => DropUnit::Chunk,
        _ => DropUnit::Match,
    };
    let listed = if node.entries().is_some() { node.get("patterns") } else { Some(node) };
    let mut patterns = Vec::new();
    for node in texts(listed) {
        let Some(pattern) = read_dropped(node, reader) else { continue };
        // A line and a chunk are whole texts.
        if unit == DropUnit::Match {
            check_reach(&pattern, node, reader);
        }
        patterns.push(pattern);
    }
    (unit, Arc::new(Redactor::new(Vec::new(), patterns, Style::Remove)))
}

/// `/…/` is a regular expression, all else words that stand alone, in any case.
fn read_dropped(node: &Node, reader: &mut Reader<'_>) -> Option<Regex> {
    let text = node.as_str()?;
    if let Some(pattern) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        return reader.regex_in(node, pattern);
    }
    if text.trim().is_empty() {
        reader.report(
            Diagnostic::new(&EMPTY_VALUE, node.span, "this drops nothing")
                .help("write a word, or a regular expression such as `/profanity/`"),
        );
        return None;
    }
    let word = |c: Option<char>| if c.is_some_and(|c| c.is_alphanumeric() || c == '_') { r"\b" } else { "" };
    let (first, last) = (word(text.chars().next()), word(text.chars().next_back()));
    reader.regex_in(node, &format!("(?i){first}{}{last}", regex::escape(text)))
}

/// Reports a pattern of which it could never be known whether a match has ended.
fn check_reach(pattern: &Regex, node: &Node, reader: &mut Reader<'_>) {
    if Reach::of(pattern).is_none() {
        reader.report(
            Diagnostic::new(&INVALID_REGEX, node.span, "what this finds may go on over lines without end")
                .help("a stream can't be held back for ever: say how often something repeats, as in `\\s{1,5}`, or use what ends with the line, as `[^\\n]*`"),
        );
    }
}
