//! Counts branches: events of the kernel → [`BranchCounts`].

use std::sync::PoisonError;

use super::Coverage;
use super::branch_kind::BranchKind;
use super::coverage_points::{CoveragePoints, PolicyPoints};
use crate::call::{CallView, Outcome, OutcomeKind, Root, Verdict, reason_code};
use crate::kernel::{
    Decision, Effect, ErrorMatched, Event, EventListener, LimitChecked, MatchStatus, PolicyEvaluated,
};
use crate::matcher::Truth;
use crate::middleware::{PolicyKind, Redact, TransformStep, apply_steps};
use crate::policy::Policy;
use crate::rules_schema::Polarity;

/// How often each branch was taken, and how often each coverage point was undecided.
#[derive(Debug)]
pub(super) struct BranchCounts {
    pub(super) sides: Vec<[u64; 2]>,
    pub(super) undecided: Vec<u64>,
}

impl BranchCounts {
    pub(super) fn new(places: &CoveragePoints) -> Self {
        Self { sides: vec![[0; 2]; places.all.len()], undecided: vec![0; places.all.len()] }
    }
}

impl EventListener for Coverage {
    fn on_event(&self, event: &Event<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = BranchCounter { places: &self.points, counts: &mut counts };
        // The remaining events concern policies outside the bundle, or no branch.
        let _ = match event {
            Event::PolicyEvaluated(asking) if asking.layer == 0 && asking.phase.is_some() => {
                count.asked(asking)
            }
            Event::PolicyEvaluated(asking) if asking.layer == 0 => count.budget(asking),
            Event::Decided(decision) => count.decided(decision),
            Event::LimitChecked(limit) if limit.layer == 0 => count.limit(limit),
            Event::ErrorMatched(asked) if asked.layer == 0 => count.error(asked),
            Event::Ended(outcome) if !outcome.replayed => count.ended(outcome),
            _ => None,
        };
    }
}

struct BranchCounter<'c> {
    places: &'c CoveragePoints,
    counts: &'c mut BranchCounts,
}

impl<'c> BranchCounter<'c> {
    /// Counts a branch of a point. Returns `None` if the point does not have it.
    fn note(&mut self, place: usize, side: BranchKind) -> Option<()> {
        let sides = &self.places.all.get(place)?.sides;
        let index = sides.iter().position(|other| *other == side)?;
        let times = self.counts.sides.get_mut(place)?.get_mut(index)?;
        *times = times.saturating_add(1);
        Some(())
    }

    fn count_truth(&mut self, place: usize, truth: &Truth, policy: &Policy) {
        let restricts = policy.kind.definition().polarity == Polarity::Restricting;
        match truth {
            Truth::Yes => self.note(place, BranchKind::True),
            Truth::Absent if restricts => self.note(place, BranchKind::True),
            Truth::No | Truth::Absent => self.note(place, BranchKind::False),
            Truth::Undecided(_) => self.counts.undecided.get_mut(place).map(|times| *times += 1),
        };
    }

    fn policy_points(&self, id: &str) -> Option<&'c PolicyPoints> {
        self.places.by_policy.get(id)
    }

    fn count_kind(&mut self, id: &str, side: BranchKind) -> Option<()> {
        self.note(self.policy_points(id)?.kind?, side)
    }

    fn asked(&mut self, asking: &PolicyEvaluated<'_>) -> Option<()> {
        let policy = asking.policy;
        let places = self.policy_points(&policy.id)?;
        if let MatchStatus::Skipped(_) = asking.status {
            return None;
        }
        let matches = asking.matches();
        self.note(places.policy, if matches { BranchKind::Matched } else { BranchKind::NotMatched });
        let examined = asking.examine();
        let truth = |fits| if fits { BranchKind::True } else { BranchKind::False };
        for (place, pattern) in (places.tools..).zip(&examined.tools) {
            self.note(place, truth(pattern.matches));
        }
        if examined.matches_tool() {
            for (place, pattern) in (places.servers..).zip(&examined.servers) {
                self.note(place, truth(pattern.matches));
            }
        }
        if let (Some(condition), true) =
            (&examined.condition, examined.matches_tool() && examined.matches_server())
        {
            let mut ids = places.conditions.iter();
            condition.visit(&mut |part| {
                if let (Some(Some(place)), true) = (ids.next(), part.reached) {
                    self.count_truth(*place, &part.truth, policy);
                }
            });
        }
        match &policy.kind {
            PolicyKind::Transform(transform) if matches => {
                let [input, output] = places.steps;
                match asking.view.output {
                    None => self.steps(&transform.input, input, Root::Input, &asking.view),
                    Some(_) => self.steps(&transform.output, output, Root::Output, &asking.view),
                }
            }
            PolicyKind::Redact(redact) if matches => self.finds(redact, places, &asking.view),
            _ => self.note(places.kind?, verdict_branch(asking)?)?,
        }
        Some(())
    }

    /// Applies the steps of a transform one by one, to see which of them change something.
    fn steps(&mut self, steps: &[TransformStep], start: usize, root: Root, view: &CallView<'_>) {
        let Some(before) = (if root == Root::Output { view.output } else { Some(view.input) }) else {
            return;
        };
        let mut value = before.clone();
        for (place, step) in (start..).zip(steps) {
            if apply_steps(std::slice::from_ref(step), view, view, &mut value) == Ok(true) {
                self.note(place, BranchKind::Changed);
            }
        }
    }

    fn finds(&mut self, redact: &Redact, places: &PolicyPoints, view: &CallView<'_>) {
        let input = Some(view.input).filter(|_| redact.input);
        let output = view.output.filter(|_| redact.output);
        let error = view.error.filter(|_| redact.output);
        for (finder, place) in &places.finders {
            let in_value = |value: &crate::json::Value| finder.redact_value(&mut value.clone()) == Ok(true);
            if input.is_some_and(in_value)
                || output.is_some_and(in_value)
                || error.is_some_and(|error| finder.has_match(error))
            {
                self.note(*place, BranchKind::Found);
            }
        }
    }

    fn decided(&mut self, decision: &Decision<'_>) -> Option<()> {
        let reason = decision.reason();
        if let Some(place) = self.places.unmatched {
            let stops = matches!(decision.effect(), Effect::Deny | Effect::Suspend);
            match reason.code.as_str() {
                reason_code::UNMATCHED if stops => self.note(place, BranchKind::Applied),
                _ if decision.effect() <= Effect::Suspend && reason.policy.is_some() => {
                    self.note(place, BranchKind::Lifted)
                }
                _ => None,
            };
        }
        self.count_kind(&reason.policy?, BranchKind::Reason)
    }

    fn limit(&mut self, asked: &LimitChecked<'_>) -> Option<()> {
        self.count_kind(
            &asked.policy.id,
            if asked.is_enough { BranchKind::Enough } else { BranchKind::UsedUp },
        )
    }

    fn budget(&mut self, asking: &PolicyEvaluated<'_>) -> Option<()> {
        let bounds = matches!(asking.policy.kind, PolicyKind::Budget(_)) && asking.matches();
        self.note(self.policy_points(&asking.policy.id).filter(|_| bounds)?.policy, BranchKind::Matched)
    }

    fn error(&mut self, asked: &ErrorMatched<'_>) -> Option<()> {
        let places = self.policy_points(&asked.policy.id)?;
        let on = match &asked.policy.kind {
            PolicyKind::Retry(retry) => &retry.on,
            PolicyKind::Recover(recover) => &recover.on,
            _ => return None,
        };
        for (place, concerns) in (places.errors..).zip(on.matches_each(asked.error)) {
            self.note(place, if concerns { BranchKind::True } else { BranchKind::False });
        }
        let repeats = matches!(asked.policy.kind, PolicyKind::Retry(_)) && on.matches(asked.error);
        self.note(places.kind.filter(|_| repeats)?, BranchKind::Repeated)
    }

    fn ended(&mut self, outcome: &Outcome) -> Option<()> {
        for id in outcome.approval.iter().flat_map(|request| &request.policies) {
            self.count_kind(id, BranchKind::Asked);
        }
        for took_part in &outcome.policies {
            let side = match (took_part.kind.as_str(), took_part.verdict) {
                ("cache", Verdict::Answer) => BranchKind::Kept,
                ("timeout", Verdict::Deny) => BranchKind::GivenUp,
                ("around", Verdict::Pass | Verdict::Rewrite) if outcome.outcome != OutcomeKind::Cached => {
                    BranchKind::Ran
                }
                _ => continue,
            };
            self.count_kind(&took_part.id, side);
        }
        let side = match (outcome.outcome, outcome.reason.code.as_str()) {
            (OutcomeKind::Answered, _) => BranchKind::Answered,
            (_, reason_code::BUDGET_EXCEEDED) => BranchKind::UsedUp,
            _ => return None,
        };
        self.count_kind(outcome.reason.policy.as_ref()?, side)
    }
}

/// The branch of its kind that the evaluation of a policy takes.
fn verdict_branch(asking: &PolicyEvaluated<'_>) -> Option<BranchKind> {
    match (&asking.policy.kind, asking.verdict?) {
        (PolicyKind::Validate(_), _) if asking.problem.is_some() => Some(BranchKind::Misfits),
        (PolicyKind::Validate(_), _) => Some(BranchKind::Fits),
        (PolicyKind::RateLimit(_), Verdict::Deny | Verdict::Halt) => Some(BranchKind::UsedUp),
        (PolicyKind::Recover(_), _) => Some(BranchKind::Recovered),
        _ => None,
    }
}
