//! The shape of a rules file: its sections, and the keys of a policy of any kind.

use std::sync::LazyLock;

use super::{defaults, definitions, reload_settings};
use crate::matcher;
use crate::middleware::KINDS;
use crate::rules_schema::{FieldShape, RecordShape, Shape};

const COMMON_FIELDS: [FieldShape; 5] = [
    FieldShape::required(
        "id",
        Shape::String("a name"),
        "The policy's name, unique in the bundle. Outcomes refer to the policy by it.",
    ),
    FieldShape::optional("description", Shape::String("a string"), "The purpose of the policy."),
    FieldShape::optional(
        "mode",
        Shape::Word(&[
            ("enforce", "the policy takes effect"),
            ("shadow", "shadow mode: the policy records what it would have done, and changes nothing"),
            ("off", "the policy is validated and ignored"),
        ]),
        "Whether the policy takes effect. Default: `enforce`.",
    ),
    FieldShape::optional(
        "priority",
        Shape::Integer(-1_000_000, 1_000_000),
        "Policies with a higher priority are evaluated first within a phase. Default: 0.",
    ),
    FieldShape::optional(
        "match",
        matcher::MATCH_SHAPE,
        "The calls that the policy applies to: a tool pattern, a list of tool patterns, or a mapping with `tool`, `server` and `where`.",
    ),
];

pub(super) static POLICY_RECORD: LazyLock<RecordShape> = LazyLock::new(|| {
    let kinds = KINDS.iter().map(|kind| FieldShape::optional(kind.name, kind.shape, kind.doc));
    RecordShape {
        name: "policy",
        doc: "One policy, with the calls that it applies to (`match`), and exactly one kind key that says what it does.",
        fields: Vec::leak(COMMON_FIELDS.into_iter().chain(kinds).collect()),
    }
});

static RULES_RECORD: LazyLock<RecordShape> = LazyLock::new(|| {
    let policies: &'static Shape = Box::leak(Box::new(Shape::Record(&POLICY_RECORD)));
    RecordShape {
        name: "rules",
        doc: "A rules file.",
        fields: Vec::leak(vec![
            FieldShape::optional("callgate", Shape::Number, "The version of the format: 1."),
            FieldShape::optional(
                "defaults",
                Shape::Record(&defaults::RECORD),
                "Settings of the whole bundle.",
            ),
            FieldShape::optional(
                "reload",
                Shape::Record(&reload_settings::RECORD),
                "Conditions that changed rules must meet before a hot reload activates them.",
            ),
            definitions::GROUPS,
            definitions::DATA,
            definitions::LETS,
            definitions::FUNCTIONS,
            definitions::RESULTS,
            definitions::TOOLS,
            FieldShape::optional(
                "policies",
                Shape::List(policies),
                "The policies. A file that only defines names needs none.",
            ),
        ]),
    }
});

/// Returns the schema of a rules file.
pub fn rules_record() -> &'static RecordShape {
    &RULES_RECORD
}
