//! `detects`: whether a value contains sensitive data. Value → [`Truth`].

use super::truth::Truth;
use crate::call::NodeRef;
use crate::diagnostic::{Diagnostic, INVALID_OPERAND, closest_match};
use crate::redaction::{Detector, RedactionStyle, Redactor};
use crate::rules_schema::{FieldShape, PolicyReader, Shape};
use crate::source::YamlNode;
use crate::work_limit;

pub const DETECTS: FieldShape = FieldShape::optional(
    "detects",
    Shape::OneOrMany(&Shape::String("a detector such as `api_key`")),
    "One of these detectors finds something in the value: in a string, a key or a number, at any depth. The detectors are those of \
     `redact`.",
);

/// A compiled `detects`.
#[derive(Debug)]
pub struct Detection {
    redactor: Redactor,
    /// The names of the detectors.
    pub names: Vec<String>,
}

impl Detection {
    /// Reads the names of detectors.
    pub fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let (mut detectors, mut names) = (Vec::new(), Vec::new());
        let items = node.items().unwrap_or(std::slice::from_ref(node));
        for item in items {
            let name = item.as_str()?;
            match Detector::from_name(name) {
                Some(detector) => detectors.push(detector),
                None => {
                    let known: Vec<_> = Detector::ALL.iter().map(|detector| detector.name()).collect();
                    let meant = Detector::meant_by(name).map(Detector::name);
                    let help = match meant.or_else(|| closest_match(name, known.iter().copied())) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("known detectors: {}", known.join(", ")),
                    };
                    let message = format!("unknown detector `{name}`");
                    reader.report(Diagnostic::new(&INVALID_OPERAND, item.span, message).with_help(help));
                }
            }
            names.push(name.to_owned());
        }
        let is_valid = detectors.len() == names.len();
        is_valid.then(|| Self { redactor: Redactor::new(detectors, Vec::new(), RedactionStyle::Mask), names })
    }

    /// Whether a detector finds something in a value.
    pub fn eval(&self, node: NodeRef<'_>) -> Truth {
        let mut copy = node.to_value();
        match self.redactor.redact_value(&mut copy) {
            _ if work_limit::is_exceeded() => Truth::Undecided(work_limit::WorkLimitError.to_string()),
            Ok(is_changed) => is_changed.into(),
            Err(_) => Truth::Undecided("it is nested too deeply for `detects`".to_owned()),
        }
    }
}
