//! `rate_limit`: limits the number or the cost of calls per duration, run or conversation.

use std::time::Duration;

use super::approval::LIMIT_APPROVAL;
use super::limit::{self, CallCost, CommonLimitSettings, CountedCalls, Limit, LimitRule, read_amount};
use super::{KindDefinition, PolicyKind};
use crate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, INVALID_DURATION, INVALID_PATH, MISSING_KEY, OUT_OF_RANGE,
};
use crate::host::{Allowance, Amount};
use crate::matcher::ValueSource;
use crate::rules_schema::{CONSTANT, FieldShape, Polarity, PolicyReader, RecordShape, Shape, did_you_mean};
use crate::source::{YamlNode, YamlValue};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "rate_limit",
    doc: "Limits the number of matching calls, or their total cost, exactly and across all sessions. A call that a stricter policy stops \
          is not counted.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| read(node, reader).map(Box::new).map(PolicyKind::RateLimit),
};

static RECORD: RecordShape = RecordShape {
    name: "rate_limit",
    doc: "The limit, its period, and whose calls it counts together.",
    fields: &[
        FieldShape::required(
            "limit",
            Shape::Either(&[Shape::Number, CONSTANT]),
            "Maximum number of calls, or maximum total `cost`, in one period (`per`).",
        ),
        FieldShape::required(
            "per",
            Shape::Either(&[Shape::String("a duration such as `1m`, or `run` or `conversation`"), CONSTANT]),
            "The period: a duration such as `1m` or `1d`; `run` for one session; `conversation` for all sessions with the same \
             `session.conversationId`, stored for 30 days.",
        ),
        FieldShape::optional(
            "burst",
            Shape::Either(&[Shape::Number, CONSTANT]),
            "For `gcra`: how much can be used at once. Default: the value of `limit`.",
        ),
        limit::KEY,
        FieldShape::optional(
            "cost",
            Shape::Either(&[
                Shape::Number,
                Shape::String("a JSONPath such as `$.input.amount`, or an expression"),
                CONSTANT,
            ]),
            "The cost of one call: a number, or a path to a number in the call. Decimals are exact. Default: 1.",
        ),
        FieldShape::optional(
            "cost_after",
            Shape::String("a JSONPath such as `$.result.usd`, or an expression"),
            "The real cost of a call that has succeeded, read from its result: it corrects `cost`, which is then required as an estimate. An \
             overshoot is debt: no call is admitted until it has flowed back. If it is absent or cannot be read, the call takes all that is left.",
        ),
        FieldShape::optional(
            "algorithm",
            Shape::Word(&[
                ("gcra", "leaky bucket (GCRA): `burst` at once, replenished at a steady rate"),
                ("fixed_window", "`limit` in each of consecutive, clock-aligned windows"),
                (
                    "sliding_window",
                    "`limit` in any window of that length; exact, but stores every call of the window",
                ),
            ]),
            "The rate-limiting algorithm. Default: `gcra`.",
        ),
        FieldShape::optional(
            "count",
            Shape::Word(&[
                ("executions", "calls that no other policy stops, including cache hits"),
                ("attempts", "every matching call, including denied and suspended ones"),
            ]),
            "The calls that are counted. Default: `executions`.",
        ),
        limit::ON_EXCEED_OR_APPROVAL,
        FieldShape::optional(
            "approval",
            Shape::Record(&LIMIT_APPROVAL),
            "For `on_exceed: approval`: the request to the approver. Default: everyone whom the host permits can approve.",
        ),
        limit::MAX_WAIT,
        limit::MESSAGE,
        limit::ON_STORE_ERROR,
    ],
};

/// How long the count of a conversation is stored after its last call.
const CONVERSATION_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Maximum `limit` of a sliding window, which stores every call.
const MAX_SLIDING_WINDOW_LIMIT: Amount = Amount::from_whole(100_000);

fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Limit> {
    let reported = reader.problem_count();
    let common = CommonLimitSettings::read(node, reader);
    let limit = node.get("limit").and_then(|node| read_amount(node, reader));
    let burst = node.get("burst").and_then(|node| read_amount(node, reader));
    let cost =
        node.get("cost").map_or(Some(CallCost::Fixed(Amount::from_whole(1))), |node| read_cost(node, reader));
    let counted = match node.get("count").and_then(YamlNode::as_str) {
        Some("attempts") => CountedCalls::Attempts,
        _ => CountedCalls::Executions,
    };
    let cost_after = match node.get("cost_after") {
        Some(cost_after) => Some(read_cost_after(node, cost_after, reader)?),
        None => None,
    };
    let per = node.get("per").and_then(|node| Some((node, node.as_str()?)));
    let algorithm = node.get("algorithm").and_then(YamlNode::as_str);
    let (rule, identity) = match per? {
        (per, word @ ("run" | "conversation")) => {
            for key in ["algorithm", "burst"] {
                if let Some(setting) = node.get(key) {
                    reader.report(
                        Diagnostic::new(
                            &CONFLICTING_KEYS,
                            setting.span,
                            format!("`{key}` has no effect with `per: {word}`, where nothing is replenished"),
                        )
                        .with_label(per.span, "the count never decreases")
                        .with_help(format!("remove `{key}`, or set `per` to a duration")),
                    );
                }
            }
            let limit = limit?;
            let rule = match word {
                "run" => LimitRule::Run(limit),
                _ => LimitRule::Conversation(Allowance::Total { limit, keep: CONVERSATION_RETENTION }),
            };
            (rule, word)
        }
        (node_of_per, text) => {
            if let Some(word) = suggest_period(text) {
                reader.report(
                    Diagnostic::new(
                        &INVALID_DURATION,
                        node_of_per.span,
                        format!("`{text}` is not a duration"),
                    )
                    .with_help(format!("did you mean `{word}`?")),
                );
                return None;
            }
            let per = reader.read_duration(node_of_per)?;
            let algorithm = algorithm.unwrap_or("gcra");
            report_unused_burst(node, algorithm, reader);
            let limit = limit?;
            let allowance = match algorithm {
                "fixed_window" => Allowance::FixedWindow { limit, per },
                "sliding_window" => Allowance::SlidingWindow { limit, per },
                _ => Allowance::Gcra { limit, per, burst: burst.unwrap_or(limit) },
            };
            if algorithm == "sliding_window" && limit > MAX_SLIDING_WINDOW_LIMIT {
                reader.report(
                    Diagnostic::new(
                        &OUT_OF_RANGE,
                        node.get("limit")?.span,
                        "`limit` is at most 100000 with `algorithm: sliding_window`, which stores every call",
                    )
                    .with_help("use `gcra` or `fixed_window`, which store a single count"),
                );
            }
            (LimitRule::Store(allowance), algorithm)
        }
    };
    let words = format!("{} per {}", node.get("limit")?.as_number()?, per?.1);
    let (common, cost) = (common?, cost?);
    (reader.problem_count() == reported)
        .then(|| common.into_limit(rule, cost, counted, identity, words).with_cost_after(cost_after))
}

/// Returns the value of `per` that was probably meant, if the text is not a duration.
fn suggest_period(text: &str) -> Option<&'static str> {
    match text {
        "session" | "agent_run" => Some("run"),
        "thread" | "chat" => Some("conversation"),
        _ => did_you_mean(text, ["run", "conversation"].into_iter()),
    }
}

fn report_unused_burst(node: &YamlNode, algorithm: &str, reader: &mut PolicyReader<'_>) {
    let Some(burst) = node.get("burst").filter(|_| algorithm != "gcra") else { return };
    reader.report(
        Diagnostic::new(
            &CONFLICTING_KEYS,
            burst.span,
            format!("`burst` has no effect with `algorithm: {algorithm}`, where all of `limit` can be used at once"),
        )
        .with_help("remove `burst`, or write `algorithm: gcra`"),
    );
}

fn read_cost(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<CallCost> {
    if let YamlValue::Number(_) = node.value {
        return read_amount(node, reader).map(CallCost::Fixed);
    }
    read_amount_source("cost", "$.input.amount", node, reader).map(CallCost::Read)
}

/// Reads the real cost, which corrects an estimate.
fn read_cost_after(
    node: &YamlNode,
    cost_after: &YamlNode,
    reader: &mut PolicyReader<'_>,
) -> Option<ValueSource> {
    if node.get("cost").is_none() {
        reader.report(
            Diagnostic::new(
                &MISSING_KEY,
                cost_after.span,
                "`cost_after` needs `cost`: what a call acquires before it runs",
            )
            .with_help("add an estimate, for example `cost: 0.5`"),
        );
    }
    if let Some(count) = node.get("count").filter(|count| count.as_str() == Some("attempts")) {
        reader.report(
            Diagnostic::new(
                &CONFLICTING_KEYS,
                cost_after.span,
                "`cost_after` needs `count: executions`: most attempts have no result",
            )
            .with_label(count.span, "this counts every attempt")
            .with_help("remove `count: attempts`, or write a limit of its own for attempts"),
        );
    }
    let before = std::mem::replace(&mut reader.after_tool, true);
    let source = read_amount_source("cost_after", "$.result.usd", cost_after, reader);
    reader.after_tool = before;
    source
}

fn read_amount_source(
    key: &str,
    example: &str,
    node: &YamlNode,
    reader: &mut PolicyReader<'_>,
) -> Option<ValueSource> {
    let source = ValueSource::read(node, reader)?;
    if !source.is_singular() {
        let message = format!("`{key}` needs a path to a single number; this path may return several values");
        reader.report(
            Diagnostic::new(&INVALID_PATH, node.span, message)
                .with_help(format!("name one number, as in `{example}`")),
        );
        return None;
    }
    Some(source)
}
