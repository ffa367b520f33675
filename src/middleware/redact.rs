//! `redact`: hides sensitive data in everything that is shown or recorded of a call.

use std::borrow::Cow;

use regex::Regex;

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape, meant};
use crate::detect::{Detector, Redactor, Style};
use crate::diagnostic::{Diagnostic, MISSING_KEY, UNKNOWN_VALUE};
use crate::seal::Keys;
use crate::source::Node;

pub(super) static KIND: KindEntry = KindEntry {
    name: "redact",
    doc: "Hides sensitive data: in the result that the model gets, and in the arguments wherever they are shown or recorded \
          (outcomes, approval requests, audit). The tool itself gets the arguments as they are; to change those, use `transform`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| true,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| Redact::read(node, reader).map(Kind::Redact),
};

static RECORD: Record = Record {
    name: "redact",
    doc: "What is hidden, where and how.",
    fields: &[
        Field::optional(
            "in",
            Shape::OneOrMany(&Shape::Word(&[
                ("input", "the arguments, as shown and recorded"),
                ("output", "the result, and the tool's error"),
            ])),
            "Where. Without it: both.",
        ),
        Field::optional(
            "detect",
            Shape::OneOrMany(&Shape::Text("a detector's name such as `email`")),
            "Typed detectors.",
        ),
        Field::optional(
            "patterns",
            Shape::OneOrMany(&Shape::Text("a regular expression")),
            "Patterns of your own.",
        ),
        WITH,
    ],
};

/// What stands in the place of what is hidden.
pub(super) static WITH: Field = Field::optional(
    "with",
    Shape::Either(&[
        Shape::Word(&[
            ("mask", "a label such as `[email]`"),
            (
                "hash",
                "a label with a keyed digest, `[email:hmac-0123456789ab]`: equal values stay recognisable as equal",
            ),
            ("remove", "nothing"),
        ]),
        Shape::Record(&KEEP_LAST),
    ]),
    "What stands in its place. Without it: `mask`.",
);

static KEEP_LAST: Record = Record {
    name: "keep_last",
    doc: "Stars, with the last characters kept.",
    fields: &[Field::required("keep_last", Shape::Integer(1, 32), "How many characters are kept.")],
};

/// A `redact` policy's own part.
#[derive(Debug)]
pub struct Redact {
    /// Whether the arguments are hidden where they are shown or recorded.
    pub input: bool,
    /// Whether the result and the error are hidden.
    pub output: bool,
    /// What hides them.
    pub redactor: Redactor,
}

impl Redact {
    /// What hides, with the server's keys.
    pub fn redactor(&self, keys: &Keys) -> Cow<'_, Redactor> {
        self.redactor.with_keys(keys)
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let places: Vec<&str> = texts(node.get("in")).filter_map(Node::as_str).collect();
        let reported = reader.reported();
        let redactor = read_redactor(node, "detect", reader);
        let keys = ["detect", "patterns"];
        if keys.iter().all(|key| node.get(key).is_none() && !RECORD.may_be_misspelled(node, key)) {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this says not what to redact")
                    .help("add `detect: [email, …]` or `patterns: [\"…\"]`"),
            );
        }
        (reader.reported() == reported).then(|| Self {
            input: places.is_empty() || places.contains(&"input"),
            output: places.is_empty() || places.contains(&"output"),
            redactor,
        })
    }
}

/// Reads what is hidden (detectors under the key `detect`, and `patterns`) and what stands in its place (`with`).
pub(super) fn read_redactor(node: &Node, detect: &str, reader: &mut Reader<'_>) -> Redactor {
    let detectors: Vec<Detector> =
        texts(node.get(detect)).filter_map(|name| read_detector(name, reader)).collect();
    let patterns: Vec<Regex> =
        texts(node.get("patterns")).filter_map(|pattern| reader.regex(pattern)).collect();
    Redactor::new(detectors, patterns, style(node.get("with")).unwrap_or(Style::Mask))
}

fn style(node: Option<&Node>) -> Option<Style> {
    let node = node?;
    match (node.as_str(), node.get("keep_last").and_then(Node::as_number)) {
        (Some("hash"), _) => Some(Style::Hash),
        (Some("remove"), _) => Some(Style::Remove),
        (_, Some(count)) => Some(Style::KeepLast(usize::try_from(count.as_u64()?).ok()?)),
        _ => None,
    }
}

pub(super) fn texts(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    node.map(|node| node.items().unwrap_or(std::slice::from_ref(node))).unwrap_or_default().iter()
}

fn read_detector(node: &Node, reader: &mut Reader<'_>) -> Option<Detector> {
    let name = node.as_str()?;
    let detector = Detector::from_name(name);
    if detector.is_none() {
        let known = || Detector::ALL.iter().map(|detector| detector.name());
        let help = match meant(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known detectors: {}", known().collect::<Vec<_>>().join(", ")),
        };
        reader.report(
            Diagnostic::new(&UNKNOWN_VALUE, node.span, format!("`{name}` is no detector")).help(help),
        );
    }
    detector
}
