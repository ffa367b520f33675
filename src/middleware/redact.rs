//! `redact`: redacts sensitive data (PII, secrets) in what is shown and recorded of a call.

use std::borrow::Cow;

use regex::Regex;

use super::{KindDefinition, PolicyKind};
use crate::diagnostic::{Diagnostic, MISSING_KEY, UNKNOWN_VALUE};
use crate::redaction::{Detector, RedactionStyle, Redactor};
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape, did_you_mean};
use crate::seal::Keys;
use crate::source::YamlNode;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "redact",
    doc: "Redacts sensitive data such as PII and secrets: in the result that the model gets, and in the arguments wherever they are shown \
          or recorded (outcomes, approval requests, audit log). The tool gets the original arguments; use `transform` to change those.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| true,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| Redact::read(node, reader).map(|redact| PolicyKind::Redact(Box::new(redact))),
};

static RECORD: RecordShape = RecordShape {
    name: "redact",
    doc: "What is redacted, where and how.",
    fields: &[
        FieldShape::optional(
            "in",
            Shape::OneOrMany(&Shape::Word(&[
                ("input", "the arguments, as shown and recorded"),
                ("output", "the result and the tool's error"),
            ])),
            "Where to redact. Default: both.",
        ),
        FieldShape::optional(
            "detect",
            Shape::OneOrMany(&Shape::String("a detector's name such as `email`")),
            "Built-in detectors.",
        ),
        FieldShape::optional(
            "patterns",
            Shape::OneOrMany(&Shape::String("a regular expression")),
            "Your own patterns.",
        ),
        WITH,
    ],
};

/// The replacement for redacted data.
pub(super) static WITH: FieldShape = FieldShape::optional(
    "with",
    Shape::Either(&[
        Shape::Word(&[
            ("mask", "a label such as `[email]`"),
            (
                "hash",
                "a label with a keyed digest, such as `[email:hmac-0123456789ab]`: equal values have equal replacements",
            ),
            ("remove", "nothing: the data is deleted"),
        ]),
        Shape::Record(&KEEP_LAST),
    ]),
    "The replacement for redacted data. Default: `mask`.",
);

static KEEP_LAST: RecordShape = RecordShape {
    name: "keep_last",
    doc: "Replaces all but the last characters with asterisks.",
    fields: &[FieldShape::required(
        "keep_last",
        Shape::Integer(1, 32),
        "Number of characters that stay readable.",
    )],
};

/// Settings of a `redact` policy.
#[derive(Debug)]
pub struct Redact {
    /// Whether the arguments are redacted where they are shown or recorded.
    pub input: bool,
    /// Whether the result and the error are redacted.
    pub output: bool,
    /// The detectors and patterns, without keys.
    pub redactor: Redactor,
}

impl Redact {
    /// Returns the redactor with the server's keys.
    pub fn redactor(&self, keys: &Keys) -> Cow<'_, Redactor> {
        self.redactor.with_keys(keys)
    }

    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let targets: Vec<&str> = scalar_or_items(node.get("in")).filter_map(YamlNode::as_str).collect();
        let reported = reader.problem_count();
        let redactor = read_redactor(node, "detect", reader);
        let keys = ["detect", "patterns"];
        if keys.iter().all(|key| node.get(key).is_none() && !RECORD.has_misspelling_of(node, key)) {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this policy redacts nothing")
                    .with_help("add `detect: [email, …]` or `patterns: [\"…\"]`"),
            );
        }
        (reader.problem_count() == reported).then(|| Self {
            input: targets.is_empty() || targets.contains(&"input"),
            output: targets.is_empty() || targets.contains(&"output"),
            redactor,
        })
    }
}

/// Reads detectors (under the key `detect`), `patterns` and the replacement (`with`).
pub(super) fn read_redactor(node: &YamlNode, detect: &str, reader: &mut PolicyReader<'_>) -> Redactor {
    let detectors: Vec<Detector> =
        scalar_or_items(node.get(detect)).filter_map(|name| read_detector(name, reader)).collect();
    let patterns: Vec<Regex> =
        scalar_or_items(node.get("patterns")).filter_map(|pattern| reader.read_regex(pattern)).collect();
    Redactor::new(detectors, patterns, read_style(node.get("with")).unwrap_or(RedactionStyle::Mask))
}

fn read_style(node: Option<&YamlNode>) -> Option<RedactionStyle> {
    let node = node?;
    match (node.as_str(), node.get("keep_last").and_then(YamlNode::as_number)) {
        (Some("hash"), _) => Some(RedactionStyle::Hash),
        (Some("remove"), _) => Some(RedactionStyle::Remove),
        (_, Some(count)) => Some(RedactionStyle::KeepLast(usize::try_from(count.as_u64()?).ok()?)),
        _ => None,
    }
}

pub(super) fn scalar_or_items(node: Option<&YamlNode>) -> impl Iterator<Item = &YamlNode> {
    node.map(|node| node.items().unwrap_or(std::slice::from_ref(node))).unwrap_or_default().iter()
}

fn read_detector(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Detector> {
    let name = node.as_str()?;
    let detector = Detector::from_name(name);
    if detector.is_none() {
        let known = || Detector::ALL.iter().map(|detector| detector.name());
        let meant = Detector::meant_by(name).map(Detector::name);
        let help = match meant.or_else(|| did_you_mean(name, known())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known detectors: {}", known().collect::<Vec<_>>().join(", ")),
        };
        reader.report(
            Diagnostic::new(&UNKNOWN_VALUE, node.span, format!("unknown detector `{name}`")).with_help(help),
        );
    }
    detector
}
