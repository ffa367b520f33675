//! `require`: refuses a call while values that it needs are missing.

use super::refusal::{Refusal, RefusalCode};
use super::{KindDefinition, PolicyKind};
use crate::call::{CallView, NodeRef, reason_code};
use crate::json::Value;
use crate::matcher::{Truth, ValueSource};
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "require",
    doc: "Denies matching calls while one of these values is missing, with a message that says which. A value that cannot be evaluated denies, \
          too.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: true,
    applies_to_run: false,
    read: |node, reader| {
        let refusal = Refusal::read(node, reader, &CODE)?;
        let nodes = node.get("values")?.items().unwrap_or_default();
        let values: Vec<Option<ValueSource>> =
            nodes.iter().map(|node| ValueSource::read(node, reader)).collect();
        Some(PolicyKind::Require(Box::new(Require {
            values: values.into_iter().collect::<Option<_>>()?,
            refusal,
        })))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "require",
    doc: "The values that a call needs.",
    fields: &[
        FieldShape::required(
            "values",
            Shape::NonEmptyList(&Shape::String(
                "a JSONPath such as `$.session.facts.order`, or an expression",
            )),
            "The values, each of which must exist and not be null.",
        ),
        FieldShape::optional(
            "message",
            Shape::String("a template"),
            "The message to the agent, such as \"Look the order up first.\" Default: the policy's `description`, or the missing values.",
        ),
        FieldShape::optional(
            "code",
            Shape::String("a reason code"),
            "Your own reason code, for programs. Default: `missing`.",
        ),
    ],
};

const CODE: RefusalCode = RefusalCode { default: reason_code::MISSING, example: "not_looked_up" };

/// Settings of a `require` policy.
#[derive(Debug)]
pub struct Require {
    /// The values that a call needs.
    pub values: Vec<ValueSource>,
    /// The message and the reason code.
    pub refusal: Refusal,
}

/// What a call lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing.
    Nothing,
    /// These values, as written.
    Values(Vec<String>),
    /// It is unknown, for this reason.
    Undecided(String),
}

impl Require {
    /// Looks for each of the values in a call: whether it exists and is not null, or why that is undecided.
    pub fn presence<'r>(&'r self, view: &'r CallView<'_>) -> impl Iterator<Item = (&'r ValueSource, Truth)> {
        self.values.iter().map(|source| {
            let presence = source.with_values(view, |values| match values {
                Ok(values) => Truth::from(values.iter().any(|value| !is_null(*value))),
                Err(Truth::Undecided(why)) => Truth::Undecided(why),
                Err(_) => Truth::No,
            });
            (source, presence)
        })
    }

    /// Looks for the values in a call. A missing value counts before one that cannot be evaluated.
    pub fn find_missing(&self, view: &CallView<'_>) -> Missing {
        let (mut missing, mut undecided) = (Vec::new(), None);
        for (source, presence) in self.presence(view) {
            match presence {
                Truth::Yes => {}
                Truth::No | Truth::Absent => missing.push(source.text().to_owned()),
                Truth::Undecided(why) => {
                    undecided.get_or_insert(why);
                }
            }
        }
        match (missing.is_empty(), undecided) {
            (true, None) => Missing::Nothing,
            (true, Some(why)) => Missing::Undecided(why),
            (false, _) => Missing::Values(missing),
        }
    }
}

fn is_null(node: NodeRef<'_>) -> bool {
    matches!(node, NodeRef::Json(Value::Null))
}

/// The missing values in words.
pub fn describe_missing(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    match values.as_slice() {
        [only] => format!("{only} is missing"),
        several => format!("{} are missing", several.join(", ")),
    }
}
