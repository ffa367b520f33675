//! `stream`: drops, replaces and redacts text in the model's stream.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;

use super::redact::{WITH, read_redactor, scalar_or_items};
use super::transform::{REPLACE, read_replacement};
use super::{KindDefinition, PolicyKind};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE, INVALID_REGEX, MISSING_KEY};
use crate::pattern_analysis::MatchExtent;
use crate::redaction::{RedactionStyle, Redactor, Replacement};
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::seal::Keys;
use crate::source::YamlNode;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "stream",
    doc: "Filters the text that the model streams, even if a match is split across chunks. It first drops, then replaces, then redacts. \
          Text is held back only while it can still be part of a match.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: true,
    read: |node, reader| Stream::read(node, reader).map(|stream| PolicyKind::Stream(Box::new(stream))),
};

static RECORD: RecordShape = RecordShape {
    name: "stream",
    doc: "What is removed from the stream.",
    fields: &[
        FieldShape::optional(
            "in",
            Shape::OneOrMany(&Shape::Word(&[
                ("text", "the text that people read"),
                ("reasoning", "the model's reasoning"),
            ])),
            "Where to filter. Default: both.",
        ),
        FieldShape::optional(
            "drop",
            Shape::Either(&[DROPPED, Shape::NonEmptyList(&DROPPED), Shape::Record(&DROP)]),
            "What is dropped: words, or regular expressions such as `/profanity/`. Look-alike characters and escapes are matched, too.",
        ),
        FieldShape::optional(
            "replace",
            Shape::OneOrMany(&Shape::Record(&REPLACE)),
            "Replacements, applied in order.",
        ),
        FieldShape::optional(
            "redact",
            Shape::OneOrMany(&Shape::String("a detector's name such as `email`")),
            "Built-in detectors for redaction.",
        ),
        FieldShape::optional(
            "patterns",
            Shape::OneOrMany(&Shape::String("a regular expression")),
            "Your own patterns for redaction.",
        ),
        WITH,
    ],
};

const DROPPED: Shape = Shape::String("a word, or a regular expression such as `/profanity/`");

static DROP: RecordShape = RecordShape {
    name: "drop",
    doc: "What is dropped, and how much of the text around it.",
    fields: &[
        FieldShape::required(
            "patterns",
            Shape::OneOrMany(&DROPPED),
            "Words, case-insensitive, or regular expressions such as `/profanity/`.",
        ),
        FieldShape::optional(
            "unit",
            Shape::Word(&[
                ("match", "only the match"),
                ("line", "the whole line; lines are passed on when they are complete"),
                (
                    "chunk",
                    "the chunk as the host streams it; a match that is split across chunks is not found",
                ),
            ]),
            "What is dropped for a match. Default: `match`.",
        ),
    ],
};

/// What is dropped for a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropUnit {
    /// The match.
    Match,
    /// The line.
    Line,
    /// The chunk.
    Chunk,
}

/// Settings of a `stream` policy.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Whether it filters the text that people read.
    pub text: bool,
    /// Whether it filters the model's reasoning.
    pub reasoning: bool,
    /// The patterns that are dropped, first.
    pub drop: Option<(DropUnit, Arc<Redactor>)>,
    /// The replacements, applied second and in order.
    pub replace: Vec<Arc<Replacement>>,
    /// The redaction, applied last.
    pub redact: Option<Arc<Redactor>>,
}

impl Stream {
    /// Returns a copy with the server's keys, which replacements with a digest need.
    pub fn with_keys(&self, keys: &Keys) -> Self {
        let redact = self.redact.as_ref().map(|redactor| match redactor.with_keys(keys) {
            Cow::Owned(keyed) => Arc::new(keyed),
            Cow::Borrowed(_) => Arc::clone(redactor),
        });
        Self { redact, ..self.clone() }
    }

    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let reported = reader.problem_count();
        let keys = ["drop", "replace", "redact", "patterns"];
        if keys.iter().all(|key| node.get(key).is_none() && !RECORD.has_misspelling_of(node, key)) {
            reader.report(Diagnostic::new(&MISSING_KEY, node.span, "this policy filters nothing").with_help(
                "add `redact: [email, …]`, `patterns: [\"…\"]`, `drop: [\"…\"]` or `replace: [ … ]`",
            ));
        }
        let hides = node.get("redact").is_some() || node.get("patterns").is_some();
        if let Some(with) = node.get("with").filter(|_| !hides && node.get("drop").is_some()) {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    with.span,
                    "`with` has no effect: dropped text has no replacement",
                )
                .with_help("remove `with`, or add `redact` or `patterns`, to which it applies"),
            );
        }
        let redactor = read_redactor(node, "redact", reader);
        for (pattern, node) in redactor.patterns().iter().zip(scalar_or_items(node.get("patterns"))) {
            check_match_length(pattern, node, reader);
        }
        let replace: Vec<Arc<Replacement>> = scalar_or_items(node.get("replace"))
            .filter_map(|node| {
                let (pattern, with) = read_replacement(node, reader)?;
                check_match_length(&pattern, node.get("pattern")?, reader);
                Some(Arc::new(Replacement::new(pattern, with)))
            })
            .collect();
        let drop = node.get("drop").map(|node| read_drop(node, reader));
        let targets: Vec<&str> = scalar_or_items(node.get("in")).filter_map(YamlNode::as_str).collect();
        (reader.problem_count() == reported).then(|| Self {
            text: targets.is_empty() || targets.contains(&"text"),
            reasoning: targets.is_empty() || targets.contains(&"reasoning"),
            drop,
            replace,
            redact: hides.then(|| Arc::new(redactor)),
        })
    }
}

fn read_drop(node: &YamlNode, reader: &mut PolicyReader<'_>) -> (DropUnit, Arc<Redactor>) {
    let unit = match node.get("unit").and_then(YamlNode::as_str) {
        Some("line") => DropUnit::Line,
        Some("chunk") => DropUnit::Chunk,
        _ => DropUnit::Match,
    };
    let listed = if node.entries().is_some() { node.get("patterns") } else { Some(node) };
    let mut patterns = Vec::new();
    for node in scalar_or_items(listed) {
        let Some(pattern) = read_dropped(node, reader) else { continue };
        // Lines and chunks are matched as a whole.
        if unit == DropUnit::Match {
            check_match_length(&pattern, node, reader);
        }
        patterns.push(pattern);
    }
    (unit, Arc::new(Redactor::new(Vec::new(), patterns, RedactionStyle::Remove)))
}

/// Reads a pattern: `/…/` is a regular expression, everything else whole words, case-insensitive.
fn read_dropped(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Regex> {
    let text = node.as_str()?;
    if let Some(pattern) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        return reader.read_regex_in(node, pattern);
    }
    if text.trim().is_empty() {
        reader.report(
            Diagnostic::new(&EMPTY_VALUE, node.span, "the pattern is empty and drops nothing")
                .with_help("write a word, or a regular expression such as `/profanity/`"),
        );
        return None;
    }
    let word = |c: Option<char>| if c.is_some_and(|c| c.is_alphanumeric() || c == '_') { r"\b" } else { "" };
    let (first, last) = (word(text.chars().next()), word(text.chars().next_back()));
    reader.read_regex_in(node, &format!("(?i){first}{}{last}", regex::escape(text)))
}

/// Reports a pattern whose matches have no maximum length, so that it is never known whether a match has ended.
fn check_match_length(pattern: &Regex, node: &YamlNode, reader: &mut PolicyReader<'_>) {
    if MatchExtent::from_pattern(pattern).is_none() {
        reader.report(
            Diagnostic::new(&INVALID_REGEX, node.span, "a match of this pattern can span lines and has no maximum length")
                .with_help("bound the repetition, as in `\\s{1,5}`, or match within a line, as in `[^\\n]*`, so that the stream is not held back for ever"),
        );
    }
}
