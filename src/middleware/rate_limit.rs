//! `rate_limit`: how often, or how much, in a span of time, a run or a conversation.

use std::time::Duration;

use super::limit::{self, Common, Cost, Counted, Limit, Rule, read_amount};
use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape, meant};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, INVALID_DURATION, INVALID_PATH, OUT_OF_RANGE};
use crate::host::{Allowance, Amount};
use crate::source::{Node, NodeValue};

pub(super) static KIND: KindEntry = KindEntry {
    name: "rate_limit",
    doc: "Limits how often matching calls run, or how much they use up, exactly and over all sessions. Nothing is taken by a \
          call that something stricter stops.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| read(node, reader).map(Kind::RateLimit),
};

static RECORD: Record = Record {
    name: "rate_limit",
    doc: "How much, in what time, for whom.",
    fields: &[
        Field::required("limit", Shape::Number, "How much in one `per`: of calls, or of what `cost` counts."),
        Field::required(
            "per",
            Shape::Text("a span of time such as `1m`, or `run` or `conversation`"),
            "The time: a span such as `1m` or `1d`; `run` for one session; `conversation` for all sessions with the same \
             `session.conversationId`, remembered for 30 days.",
        ),
        Field::optional(
            "burst",
            Shape::Number,
            "For `gcra`: how much can be taken at once. Without it: as much as `limit`.",
        ),
        limit::KEY,
        Field::optional(
            "cost",
            Shape::Either(&[Shape::Number, Shape::Text("a JSONPath such as `$.input.amount`")]),
            "How much one call takes: a number, or a place in the call. Decimals are exact. Without it: 1.",
        ),
        Field::optional(
            "algorithm",
            Shape::Word(&[
                ("gcra", "`burst` at once, and what was taken flows back evenly"),
                ("fixed_window", "`limit` in each window of the clock, one after the other"),
                ("sliding_window", "`limit` in any span of that length; exact, and keeps every call of it"),
            ]),
            "How it is counted. Without it: `gcra`.",
        ),
        Field::optional(
            "count",
            Shape::Word(&[
                ("executions", "calls that nothing else stops; a cached answer is one"),
                ("attempts", "every call that matches, denied and suspended ones too"),
            ]),
            "Which calls are counted. Without it: `executions`.",
        ),
        limit::ON_EXCEED,
        limit::MAX_WAIT,
        limit::MESSAGE,
        limit::ON_STORE_ERROR,
    ],
};

/// How long the count of a conversation is remembered after its last call.
const CONVERSATION_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A sliding window keeps each call, so it has no room for more.
const LARGEST_SLIDING: Amount = Amount::whole(100_000);

fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Limit> {
    let reported = reader.reported();
    let common = Common::read(node, reader);
    let limit = node.get("limit").and_then(|node| read_amount(node, reader));
    let burst = node.get("burst").and_then(|node| read_amount(node, reader));
    let cost = node.get("cost").map_or(Some(Cost::Fixed(Amount::whole(1))), |node| read_cost(node, reader));
    let counted = match node.get("count").and_then(Node::as_str) {
        Some("attempts") => Counted::Attempts,
        _ => Counted::Executions,
    };
    let per = node.get("per").and_then(|node| Some((node, node.as_str()?)));
    let algorithm = node.get("algorithm").and_then(Node::as_str);
    let (rule, identity) = match per? {
        (per, word @ ("run" | "conversation")) => {
            for key in ["algorithm", "burst"] {
                if let Some(said) = node.get(key) {
                    reader.report(
                        Diagnostic::new(
                            &CONFLICTING_KEYS,
                            said.span,
                            format!(
                                "`{key}` means nothing with `per: {word}`, where nothing ever flows back"
                            ),
                        )
                        .label(per.span, "counted to the end")
                        .help(format!("leave `{key}` out, or give a span of time")),
                    );
                }
            }
            let limit = limit?;
            let rule = match word {
                "run" => Rule::Run(limit),
                _ => Rule::Conversation(Allowance::Total { limit, keep: CONVERSATION_KEPT }),
            };
            (rule, word)
        }
        (node_of_per, text) => {
            if let Some(word) = meant_word(text) {
                reader.report(
                    Diagnostic::new(
                        &INVALID_DURATION,
                        node_of_per.span,
                        format!("`{text}` is no span of time"),
                    )
                    .help(format!("did you mean `{word}`?")),
                );
                return None;
            }
            let per = reader.duration(node_of_per)?;
            let algorithm = algorithm.unwrap_or("gcra");
            refuse_burst(node, algorithm, reader);
            let limit = limit?;
            let allowance = match algorithm {
                "fixed_window" => Allowance::FixedWindow { limit, per },
                "sliding_window" => Allowance::SlidingWindow { limit, per },
                _ => Allowance::Gcra { limit, per, burst: burst.unwrap_or(limit) },
            };
            if algorithm == "sliding_window" && limit > LARGEST_SLIDING {
                reader.report(
                    Diagnostic::new(
                        &OUT_OF_RANGE,
                        node.get("limit")?.span,
                        "`limit` is at most 100000 with `algorithm: sliding_window`, which keeps every call",
                    )
                    .help("`gcra` and `fixed_window` count any number in one"),
                );
            }
            (Rule::Store(allowance), algorithm)
        }
    };
    let words = format!("{} per {}", node.get("limit")?.as_number()?, per?.1);
    let (common, cost) = (common?, cost?);
    (reader.reported() == reported).then(|| common.limit(rule, cost, counted, identity, words))
}

/// The word that was meant in place of a span of time.
fn meant_word(text: &str) -> Option<&'static str> {
    match text {
        "session" | "agent_run" => Some("run"),
        "thread" | "chat" => Some("conversation"),
        _ => meant(text, ["run", "conversation"].into_iter()),
    }
}

fn refuse_burst(node: &Node, algorithm: &str, reader: &mut Reader<'_>) {
    let Some(burst) = node.get("burst").filter(|_| algorithm != "gcra") else { return };
    reader.report(
        Diagnostic::new(
            &CONFLICTING_KEYS,
            burst.span,
            format!("`burst` means nothing with `algorithm: {algorithm}`, where all of `limit` can be taken at once"),
        )
        .help("leave `burst` out, or write `algorithm: gcra`"),
    );
}

fn read_cost(node: &Node, reader: &mut Reader<'_>) -> Option<Cost> {
    if let NodeValue::Number(_) = node.value {
        return read_amount(node, reader).map(Cost::Fixed);
    }
    let path = reader.path(node)?;
    if !path.is_singular() {
        reader.report(
            Diagnostic::new(
                &INVALID_PATH,
                node.span,
                "`cost` must name one place, this path may find several",
            )
            .help("name one number, as in `$.input.amount`"),
        );
        return None;
    }
    Some(Cost::At(path))
}
