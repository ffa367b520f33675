//! `concurrency`: limits how many calls run at the same time.

use super::limit::{self, CallCost, CommonLimitSettings, CountedCalls, LimitRule};
use super::{KindDefinition, PolicyKind};
use crate::host::{Allowance, Amount};
use crate::rules_schema::{CONSTANT, FieldShape, Polarity, RecordShape, Shape};
use crate::source::YamlNode;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "concurrency",
    doc: "Limits how many matching calls run at the same time, across all sessions.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        let max = node.get("max").and_then(YamlNode::as_number).and_then(crate::json::Number::as_u64);
        let max = max.and_then(|max| u32::try_from(max).ok());
        let common = CommonLimitSettings::read(node, reader)?;
        let (rule, cost) =
            (LimitRule::Store(Allowance::Slots { max: max? }), CallCost::Fixed(Amount::from_whole(1)));
        let words = format!("{} at the same time", max?);
        let limit = common.into_limit(rule, cost, CountedCalls::Executions, "slots", words);
        Some(PolicyKind::Concurrency(Box::new(limit)))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "concurrency",
    doc: "The limit, and whose calls it counts together.",
    fields: &[
        FieldShape::required(
            "max",
            Shape::Either(&[Shape::Integer(1, 1_000_000), CONSTANT]),
            "Maximum number of calls that run at the same time.",
        ),
        limit::KEY,
        limit::ON_EXCEED,
        limit::MAX_WAIT,
        limit::MESSAGE,
        limit::ON_STORE_ERROR,
    ],
};
