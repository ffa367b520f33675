//! `allow`: permits calls that `defaults.unmatched` would not. It never overrides a stricter decision.

use super::{KindDefinition, PolicyKind};
use crate::rules_schema::{Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "allow",
    doc: "Permits matching calls that `defaults.unmatched` would deny or suspend. It never overrides a `deny`, `halt` or `approval`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |_, _| Some(PolicyKind::Allow(Allow)),
};

static RECORD: RecordShape =
    RecordShape { name: "allow", doc: "An `allow` policy has no settings: write `allow: {}`.", fields: &[] };

/// Settings of an `allow` policy. It has none.
#[derive(Debug)]
pub struct Allow;
