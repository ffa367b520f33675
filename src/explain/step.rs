//! One policy in one phase of a call.

use std::cmp::Reverse;

use serde::Serialize;

use super::condition::{Condition, Telling};
use super::veil::{Veil, WITHHELD, bounded, counterpart};
use crate::call::{Amount, Masks, Phase, Root, Verdict};
use crate::diagnostic::{Location, SourceMap};
use crate::json::{self, Number, Value};
use crate::kernel::{Asking, Change, Layers, Said, Unasked, measure};
use crate::matcher::{ExaminedPattern, Truth};
use crate::middleware::{Kind, Measure, Rule};
use crate::policy::{Mode, Policy};

/// More places of one change are not listed.
const LISTED_CHANGES: usize = 40;

/// What a policy's matcher said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// It matches.
    Matched,
    /// It can't be decided whether it matches.
    Undecided,
    /// What it reads is absent, and that counts as matching (`absent: match`).
    Absent,
    /// Its conditions do not hold.
    NoMatch,
    /// It is for other tools.
    OtherTool,
    /// It is for other servers.
    OtherServer,
    /// It was not asked.
    NotAsked,
}

/// One policy in one phase.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Its id.
    pub policy: String,
    /// Its kind key.
    pub kind: &'static str,
    /// The phase; nothing where the run around the calls is meant.
    pub phase: Option<Phase>,
    /// Its layer: 0 is the bundle, then the prompt's and the call's.
    pub layer: u32,
    /// Whether it only watches (`mode: shadow`).
    pub shadow: bool,
    /// Where it stands.
    pub at: Option<Location>,
    /// What its matcher said.
    pub heard: Heard,
    /// What it said of the call, of a shadow: would have said; nothing where it took no part.
    pub verdict: Option<Verdict>,
    /// Whether it gave the reason for what became of the call.
    pub decisive: bool,
    /// What it did, or why it did nothing, in words.
    pub words: String,
    /// The patterns for names that do not fit, of a policy for other tools or servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
    /// Its conditions, where it has some and was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// What it changed in arguments or result, of a shadow: would have changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// What it has against the call beyond that it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What the call took of it, where it is a limit and was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitTaken>,
    #[serde(skip)]
    pub(super) unasked: Option<Unasked>,
    #[serde(skip)]
    pub(super) place: (u32, u32),
    #[serde(skip)]
    pub(super) order: Order,
}

/// Where a step comes in its phase.
pub(super) type Order = (u32, Reverse<i64>, u8, u32);

/// A pattern for names.
#[derive(Clone, Debug, Serialize)]
pub struct Pattern {
    /// `tool` or `server`.
    pub of: &'static str,
    /// As it was written, without the slashes of a regular expression.
    pub text: String,
    /// Where it stands.
    pub at: Option<Location>,
}

/// One place that a policy changed.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    /// The place.
    pub path: String,
    /// What stood there; null where nothing did. Redacted.
    pub before: Value,
    /// What stands there now; null where nothing does. Redacted.
    pub after: Value,
    /// `added`, `removed` or `changed`.
    pub how: &'static str,
}

/// What a call took of a limit.
#[derive(Clone, Debug, Serialize)]
pub struct LimitTaken {
    /// The limit in words: `5 per 1m`.
    pub limit: String,
    /// How much the call takes.
    pub cost: Value,
    /// Whether there was enough.
    pub enough: bool,
    /// Whether it was taken: where one of several has not enough, of those that count executions none is taken of.
    pub taken: bool,
    /// How much is left after that, where that can be said.
    pub left: Option<Value>,
    /// In how many milliseconds there may be enough, where there is not and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Step {
    /// A step of which nothing is known but that it was not asked.
    pub(super) fn unasked(
        policy: &Policy,
        place: (u32, u32),
        phase: Option<Phase>,
        why: Unasked,
        sources: Option<&SourceMap>,
    ) -> Self {
        let (layer, _) = place;
        // Files are known of the bundle alone.
        let sources = sources.filter(|_| layer == 0);
        Self {
            policy: policy.id.clone(),
            kind: policy.kind.entry().name,
            phase,
            layer,
            shadow: policy.mode == Mode::Shadow,
            at: sources.and_then(|sources| sources.locate(policy.span)),
            heard: Heard::NotAsked,
            verdict: None,
            decisive: false,
            words: String::new(),
            patterns: Vec::new(),
            condition: None,
            changes: Vec::new(),
            problem: None,
            limit: None,
            unasked: Some(why),
            place,
            order: order(policy, place, phase),
        }
    }

    /// What is told of an asking.
    pub(super) fn of(asking: &Asking<'_>, layers: &Layers, sources: Option<&SourceMap>) -> Self {
        let place = (asking.layer, asking.place);
        let sources = sources.filter(|_| asking.layer == 0);
        let mut step = Self::unasked(asking.policy, place, asking.phase, Unasked::NotRun, sources);
        step.unasked = None;
        step.verdict = asking.verdict;
        let examined = match asking.said {
            Said::Unasked(why) => {
                step.unasked = Some(why);
                return step;
            }
            _ => asking.examine(),
        };
        let veil = Veil::of(layers, asking.view);
        let telling = Telling { veil: &veil, sources };
        if let Said::Elsewhere = asking.said {
            let (of, heard, patterns) = match examined.fits_tool() {
                false => ("tool", Heard::OtherTool, &examined.tools),
                true => ("server", Heard::OtherServer, &examined.servers),
            };
            step.heard = heard;
            step.patterns = patterns.iter().map(|pattern| told_pattern(of, pattern, &telling)).collect();
            return step;
        }
        step.heard = match examined.truth() {
            Truth::Yes => Heard::Matched,
            Truth::No => Heard::NoMatch,
            Truth::Absent => Heard::Absent,
            Truth::Undecided(_) => Heard::Undecided,
        };
        step.condition = examined.condition.as_ref().map(|condition| telling.condition(condition));
        step.problem = asking.problem.map(|problem| veil.text(problem));
        step.refused_by_gate(asking, &veil);
        if let Some(change) = asking.change {
            let root = if asking.phase == Some(Phase::Settle) { Root::Output } else { Root::Input };
            step.changes = changes(change, root, &veil);
        }
        step
    }
}

impl Step {
    /// What a limit that gate itself refuses has against the call: what counts by run is known there, and a key or a cost may be missing.
    fn refused_by_gate(&mut self, asking: &Asking<'_>, veil: &Veil<'_>) {
        let Asking { policy, layer, view, .. } = *asking;
        let Some(limit) = policy.kind.as_limit() else { return };
        if !matches!(asking.verdict, Some(Verdict::Deny | Verdict::Halt)) {
            return;
        }
        match (measure(layer, policy, limit, &view), limit.rule) {
            (Err(why), _) => self.problem = Some(veil.text(&why)),
            (Ok(Measure { key, cost }), Rule::Run(allowed)) => {
                self.limit = Some(LimitTaken {
                    limit: limit.words.clone(),
                    cost: number(cost),
                    enough: false,
                    taken: false,
                    left: Some(number(allowed.minus(view.session.taken(&key)))),
                    retry_after_ms: None,
                });
            }
            (Ok(_), Rule::Store(_) | Rule::Conversation(_)) => {}
        }
    }
}

/// An amount as it is written.
pub(super) fn number(amount: Amount) -> Value {
    let (whole, rest) = (amount.millionths() / 1_000_000, amount.millionths() % 1_000_000);
    if rest == 0 {
        return whole.into();
    }
    let text = format!("{whole}.{rest:06}");
    text.trim_end_matches('0').parse::<Number>().map_or(Value::Null, Value::Number)
}

fn told_pattern(of: &'static str, pattern: &ExaminedPattern<'_>, telling: &Telling<'_>) -> Pattern {
    let at = pattern.span.and_then(|span| telling.locate(span));
    Pattern { of, text: pattern.text.to_owned(), at }
}

/// Where arguments or result differ, told by what may be shown of both.
fn changes(change: Change<'_>, root: Root, veil: &Veil<'_>) -> Vec<Changed> {
    let Change { before, after } = change;
    let (hidden_before, hidden_after) = (veil.document(root, before), veil.document(root, after));
    // A path is made of keys, which may be redacted as much as values.
    let mut masks = Masks::new();
    masks.add_changes(before, &hidden_before);
    masks.add_changes(after, &hidden_after);
    let is_withheld = [&hidden_before, &hidden_after].iter().any(|hidden| hidden.as_str() == Some(WITHHELD));
    let shown = |document: &Value, hidden: &Value, value: Option<&Value>| {
        let Some(value) = value else { return Value::Null };
        bounded(
            counterpart(document, hidden, value, json::MAX_DEPTH).cloned().unwrap_or_else(|| WITHHELD.into()),
        )
    };
    let place = format!("$.{}", root.name());
    let found = json::differences(&place, before, after, LISTED_CHANGES).into_iter();
    found
        .map(|difference| Changed {
            how: match (difference.before, difference.after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            },
            path: match is_withheld {
                true => place.clone(),
                false => masks.text(&veil.text(&difference.path)).into_owned(),
            },
            before: shown(before, &hidden_before, difference.before),
            after: shown(after, &hidden_after, difference.after),
        })
        .collect()
}

/// Its place among all of its phase, by what the kernel does in which order.
fn order(policy: &Policy, (layer, place): (u32, u32), phase: Option<Phase>) -> Order {
    match phase {
        Some(Phase::Execute) => (layer, Reverse(policy.priority), policy.kind.nesting(), place),
        Some(Phase::Settle) => {
            let group = match policy.kind {
                Kind::Recover(_) => 0,
                Kind::Transform(_) => 1,
                Kind::Redact(_) => 2,
                Kind::Label(_) | Kind::Fact(_) => 3,
                _ => 4,
            };
            // Settle goes through all layers for each of its parts.
            (group, Reverse(0), u8::try_from(layer).unwrap_or(u8::MAX), place)
        }
        _ => (layer, Reverse(0), 0, place),
    }
}
