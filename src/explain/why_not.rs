//! Explains why one policy had no effect on a call: [`Explanation`] + policy id → [`WhyNot`].

use serde::Serialize;

use super::condition_phrases::explain_condition;
use super::effect_phrases::layer_name;
use super::explanation::Explanation;
use super::step::{MatchResult, PolicyStep};
use crate::call::{Verdict, reason_code};
use crate::diagnostic::Location;
use crate::kernel::SkipReason;

/// The reason why a policy had no effect, or that it had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNotReason {
    /// It had an effect: it gave the reason for the outcome.
    ItDecided,
    /// It had an effect: it took part.
    ItActed,
    /// It matched, but a stricter policy, or an equally strict earlier one, decided.
    Stricter,
    /// It matched, but is in shadow mode.
    Shadow,
    /// It is off (`mode: off`).
    Off,
    /// It is for other tools.
    OtherTool,
    /// It is for other servers.
    OtherServer,
    /// Its conditions do not hold.
    NoMatch,
    /// Its match is undecided, and it applies only if it certainly matches.
    Undecided,
    /// It was not evaluated for the call.
    NotAsked,
    /// It acts on the run, not on single calls.
    OfRun,
}

/// Why a policy had no effect.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WhyNot {
    /// The policy.
    pub policy: String,
    /// Its layer: 0 is the bundle, then the prompt's and the call's; `None` for a policy that is off.
    pub layer: Option<u32>,
    /// The reason.
    pub because: WhyNotReason,
    /// The reason as text.
    pub words: String,
    /// The location of the reason in the rules: the failed operator or the patterns, or else the policy.
    pub at: Option<Location>,
}

impl Explanation {
    /// Why a policy had no effect on the call, or that it had one. Returns `None` if there is no such policy.
    pub fn why_not(&self, policy: &str) -> Option<WhyNot> {
        // A policy of two phases had an effect if it had one in either.
        let rank = |step: &&PolicyStep| match self.reason_of(step).0 {
            WhyNotReason::ItDecided => 0,
            WhyNotReason::ItActed => 1,
            WhyNotReason::Stricter | WhyNotReason::Shadow => 2,
            WhyNotReason::NotAsked => 4,
            _ => 3,
        };
        let decisive = self.decisive().filter(|step| step.policy == policy);
        let Some(step) = decisive.or_else(|| self.steps_of(policy).min_by_key(rank)) else {
            self.off.iter().find(|off| *off == policy)?;
            return Some(WhyNot {
                policy: policy.to_owned(),
                layer: None,
                because: WhyNotReason::Off,
                words: "it is disabled by `mode: off`".to_owned(),
                at: None,
            });
        };
        let (because, words) = self.reason_of(step);
        let words = match step.layer {
            0 => words,
            layer => format!("{words} (it is one of {})", layer_name(layer)),
        };
        let at = step.decisive_location().or(step.at.as_ref()).cloned();
        Some(WhyNot { policy: policy.to_owned(), layer: Some(step.layer), because, words, at })
    }

    fn reason_of(&self, step: &PolicyStep) -> (WhyNotReason, String) {
        let words = step.words.clone();
        match (step.heard, step.verdict) {
            _ if step.decisive => (WhyNotReason::ItDecided, format!("it decided the call: it {words}")),
            (MatchResult::OtherTool, _) => (
                WhyNotReason::OtherTool,
                format!("the tool is `{}`, and the policy is {words}", self.call.tool),
            ),
            (MatchResult::OtherServer, _) => {
                let server = self.call.server.as_deref();
                let server = server
                    .map_or("the call has no server".to_owned(), |name| format!("the server is `{name}`"));
                (WhyNotReason::OtherServer, format!("{server}, and the policy is {words}"))
            }
            (MatchResult::NotAsked, _) if step.phase.is_none() => {
                (WhyNotReason::OfRun, "it acts on the run, not on single calls".to_owned())
            }
            (MatchResult::NotAsked, _) if self.reason.code == reason_code::SESSION_HALTED => (
                WhyNotReason::NotAsked,
                "the session is already halted, so no policy was evaluated".to_owned(),
            ),
            (MatchResult::NotAsked, _) => {
                let stopped =
                    matches!(step.skip_reason, Some(SkipReason::InvalidArguments | SkipReason::NotRun));
                let why = if stopped { format!(": {}", self.why) } else { String::new() };
                (WhyNotReason::NotAsked, format!("{words}{why}"))
            }
            (MatchResult::NoMatch, _) => (WhyNotReason::NoMatch, words),
            (MatchResult::Undecided, None) => (WhyNotReason::Undecided, words),
            (_, None) => (WhyNotReason::NoMatch, words),
            (_, Some(verdict)) if step.shadow => (WhyNotReason::Shadow, describe_shadow(verdict, step)),
            // Every `approval` policy that matches is part of the same request.
            (_, Some(Verdict::Suspend)) if self.decision == "suspend" => {
                (WhyNotReason::ItActed, format!("it did apply: it {words}"))
            }
            (_, Some(verdict @ (Verdict::Deny | Verdict::Halt | Verdict::Suspend))) => {
                (WhyNotReason::Stricter, format!("it matched, but {}", self.decided_by(verdict)))
            }
            (_, Some(verdict @ Verdict::Answer)) if self.decision != "answer" && step.kind == "respond" => {
                (WhyNotReason::Stricter, format!("it matched, but {}", self.decided_by(verdict)))
            }
            (_, Some(verdict @ Verdict::Pass)) if step.kind == "allow" && self.decision != "run" => {
                (WhyNotReason::Stricter, format!("it permits the call, but {}", self.decided_by(verdict)))
            }
            // Its script found nothing.
            (_, Some(Verdict::Pass)) if step.problem.is_some() && is_scripted(step.kind) => {
                (WhyNotReason::NoMatch, format!("it matched, but it {words}"))
            }
            (_, Some(_)) => (WhyNotReason::ItActed, format!("it did apply: it {words}")),
        }
    }

    /// What decided the call instead of a policy with this verdict.
    fn decided_by(&self, verdict: Verdict) -> String {
        match self.decisive() {
            Some(step) if step.verdict == Some(verdict) => {
                format!("`{}` is as strict and comes first: it {}", step.policy, step.words)
            }
            Some(step) => format!("`{}` is stricter: it {}", step.policy, step.words),
            None => self.why.clone(),
        }
    }
}

fn describe_shadow(verdict: Verdict, step: &PolicyStep) -> String {
    let would = match verdict {
        Verdict::Deny => "would have denied the call",
        Verdict::Halt => "would have halted the run",
        Verdict::Suspend => "would have required approval",
        Verdict::Answer => "would have answered",
        Verdict::Rewrite => "would have changed the call",
        Verdict::Pass => "would have let the call pass",
    };
    let why = step.condition.as_ref().map(explain_condition).filter(|why| !why.is_empty());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("it is in shadow mode (`mode: shadow`): it {would}{why}")
}

impl PolicyStep {
    /// The location of the pattern or operator that decides whether it matches.
    pub(super) fn decisive_location(&self) -> Option<&Location> {
        if let Some(pattern) = self.patterns.first() {
            return pattern.at.as_ref();
        }
        let leaf = self.condition.as_ref()?.decisive_parts().into_iter().next()?;
        let operators = leaf.test.iter().flat_map(|test| &test.operators);
        let decisive = operators.filter(|operator| operator.truth == Some(leaf.truth));
        decisive.filter_map(|operator| operator.at.as_ref()).next().or(leaf.at.as_ref())
    }
}

/// Whether a script can decide for a policy of this kind.
fn is_scripted(kind: &str) -> bool {
    matches!(kind, "deny" | "halt" | "approval")
}
