//! Counts branches: events of the kernel → [`BranchCounts`].

use std::sync::PoisonError;

use super::Coverage;
use super::branch_kind::BranchKind;
use super::coverage_points::{CoveragePoints, PolicyPoints};
use callgate::call::{CallView, LetMemo, NamedResult, Outcome, OutcomeKind, Root, Verdict, reason_code};
use callgate::json::Value;
use callgate::kernel::{
    Decision, Effect, ErrorMatched, Event, EventListener, LimitChecked, MatchStatus, PolicyEvaluated,
};
use callgate::matcher::{ExaminedPattern, Truth};
use callgate::middleware::{PolicyKind, Redact, TransformStep, apply_steps};
use callgate::policy::Policy;
use callgate::rules_schema::Polarity;
use callgate::script;

/// How often each branch was taken, and how often each coverage point was undecided.
#[derive(Debug)]
pub(super) struct BranchCounts {
    pub(super) branches: Vec<[u64; 2]>,
    pub(super) undecided: Vec<u64>,
}

impl BranchCounts {
    pub(super) fn new(points: &CoveragePoints) -> Self {
        Self { branches: vec![[0; 2]; points.all.len()], undecided: vec![0; points.all.len()] }
    }
}

impl EventListener for Coverage {
    fn on_event(&self, event: &Event<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = BranchCounter { points: &self.points, counts: &mut counts };
        match event {
            // Cases run on the thread on which their events happen.
            Event::DecisionStarted(_) => script::record_branches(),
            _ => count.count_code(),
        }
        // The remaining events concern policies outside the bundle, or no branch.
        let _ = match event {
            Event::PolicyEvaluated(evaluation) if evaluation.layer == 0 && evaluation.phase.is_some() => {
                count.count_evaluation(evaluation)
            }
            Event::PolicyEvaluated(evaluation) if evaluation.layer == 0 => count.count_budget(evaluation),
            Event::Decided(decision) => count.count_decision(decision),
            Event::FactStored(stored) if stored.layer == 0 && stored.change.lacks_room => {
                count.count_kind(&stored.policy.id, BranchKind::Full)
            }
            Event::LimitChecked(limit) if limit.layer == 0 => count.count_limit(limit),
            Event::ErrorMatched(matched) if matched.layer == 0 => count.count_error(matched),
            Event::Ended(outcome) if !outcome.replayed => count.count_outcome(outcome),
            _ => None,
        };
        // What counting evaluated again does not count.
        script::take_branches();
    }
}

struct BranchCounter<'c> {
    points: &'c CoveragePoints,
    counts: &'c mut BranchCounts,
}

impl<'c> BranchCounter<'c> {
    /// Counts a branch of a point. Returns `None` if the point does not have it.
    fn count(&mut self, point: usize, side: BranchKind) -> Option<()> {
        let sides = &self.points.all.get(point)?.branches;
        let index = sides.iter().position(|other| *other == side)?;
        let times = self.counts.branches.get_mut(point)?.get_mut(index)?;
        *times = times.saturating_add(1);
        Some(())
    }

    fn count_truth(&mut self, point: usize, truth: &Truth, policy: &Policy) {
        let restricts = policy.kind.definition().polarity == Polarity::Restricting;
        match truth {
            Truth::Yes => self.count(point, BranchKind::True),
            Truth::Absent if restricts => self.count(point, BranchKind::True),
            Truth::No | Truth::Absent => self.count(point, BranchKind::False),
            Truth::Undecided(_) => self.count_undecided(point),
        };
    }

    fn count_undecided(&mut self, point: usize) -> Option<()> {
        let times = self.counts.undecided.get_mut(point)?;
        *times = times.saturating_add(1);
        Some(())
    }

    /// Counts the boolean named values that a policy reaches, as far as the decision has evaluated them.
    fn count_lets(&mut self, policy: &Policy, memo: Option<&LetMemo>) {
        let Some(memo) = memo.filter(|_| !policy.definitions.is_empty()) else { return };
        let points = self.points;
        for (value, point) in &points.lets {
            match value.known_result(memo) {
                Some(NamedResult::Value(Value::Bool(true))) => self.count(*point, BranchKind::True),
                Some(NamedResult::Value(Value::Bool(false))) => self.count(*point, BranchKind::False),
                Some(_) => self.count_undecided(*point),
                None => None,
            };
        }
    }

    /// Counts the functions and the arms of `switch` that have run since the last event.
    fn count_code(&mut self) {
        for (branch, times) in script::take_branches() {
            let Some(point) = self.points.code.get(&branch) else { continue };
            if let Some([count, _]) = self.counts.branches.get_mut(*point) {
                *count = count.saturating_add(times);
            }
        }
    }

    /// Counts patterns. Several patterns with the same point are those of a group.
    fn count_patterns(&mut self, points: &[usize], patterns: &[ExaminedPattern<'_>]) {
        let pairs: Vec<(usize, &ExaminedPattern<'_>)> = points.iter().copied().zip(patterns).collect();
        for of_one_point in pairs.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((point, _)) = of_one_point.first() else { continue };
            let is_match = of_one_point.iter().any(|(_, pattern)| pattern.matches);
            self.count(*point, if is_match { BranchKind::True } else { BranchKind::False });
        }
        let all = self.points;
        for pattern in patterns.iter().filter(|pattern| pattern.matches) {
            for point in all.group_patterns.get(pattern.text).into_iter().flatten() {
                self.count(*point, BranchKind::True);
            }
        }
    }

    fn policy_points(&self, id: &str) -> Option<&'c PolicyPoints> {
        self.points.by_policy.get(id)
    }

    fn count_kind(&mut self, id: &str, side: BranchKind) -> Option<()> {
        self.count(self.policy_points(id)?.kind?, side)
    }

    fn count_evaluation(&mut self, evaluation: &PolicyEvaluated<'_>) -> Option<()> {
        let policy = evaluation.policy;
        let points = self.policy_points(&policy.id)?;
        if let MatchStatus::Skipped(_) = evaluation.status {
            return None;
        }
        self.count_lets(policy, evaluation.view.lets);
        let matches = evaluation.matches();
        self.count(points.policy, if matches { BranchKind::Matched } else { BranchKind::NotMatched });
        // The examination evaluates every part. Its results must not count as those of the decision.
        let memo = LetMemo::default();
        let view = CallView { lets: Some(&memo), ..evaluation.view };
        let examined = policy.matcher.examine(&view);
        self.count_patterns(&points.tools, &examined.tools);
        if examined.matches_tool() {
            self.count_patterns(&points.servers, &examined.servers);
        }
        if let (Some(condition), true) =
            (&examined.condition, examined.matches_tool() && examined.matches_server())
        {
            let mut ids = points.conditions.iter();
            condition.visit(&mut |part| {
                if let (Some(Some(point)), true) = (ids.next(), part.reached) {
                    self.count_truth(*point, &part.truth, policy);
                }
            });
        }
        match &policy.kind {
            PolicyKind::Transform(transform) if matches => {
                let [input, output] = points.steps;
                match evaluation.view.output {
                    None => self.count_steps(&transform.input, input, Root::Input, &evaluation.view),
                    Some(_) if transform.changes_result() => {
                        self.count_steps(&transform.output, output, Root::Result, &evaluation.view)
                    }
                    Some(_) => self.count_steps(&transform.output, output, Root::Output, &evaluation.view),
                }
            }
            PolicyKind::Require(require) if matches => {
                for (point, (_, presence)) in (points.required..).zip(require.presence(&view)) {
                    match presence {
                        Truth::Yes => self.count(point, BranchKind::Present),
                        Truth::No | Truth::Absent => self.count(point, BranchKind::Missing),
                        Truth::Undecided(_) => self.count_undecided(point),
                    };
                }
            }
            PolicyKind::Redact(redact) if matches => self.count_detections(redact, points, &evaluation.view),
            _ => self.count(points.kind?, verdict_branch(evaluation)?)?,
        }
        Some(())
    }

    /// Applies the steps of a transform one by one, to see which of them change something.
    fn count_steps(&mut self, steps: &[TransformStep], start: usize, root: Root, view: &CallView<'_>) {
        let Some(before) = view.member(root) else { return };
        let mut value = before.to_value();
        for (point, step) in (start..).zip(steps) {
            if apply_steps(std::slice::from_ref(step), view, view, &mut value) == Ok(true) {
                self.count(point, BranchKind::Changed);
            }
        }
    }

    fn count_detections(&mut self, redact: &Redact, points: &PolicyPoints, view: &CallView<'_>) {
        let input = Some(view.input).filter(|_| redact.input);
        let output = view.output.filter(|_| redact.output);
        let error = view.error.filter(|_| redact.output);
        for (finder, point) in &points.detectors {
            let in_value = |value: &Value| finder.redact_value(&mut value.clone()) == Ok(true);
            if input.is_some_and(in_value)
                || output.is_some_and(in_value)
                || error.is_some_and(|error| finder.has_match(error))
            {
                self.count(*point, BranchKind::Found);
            }
        }
    }

    fn count_decision(&mut self, decision: &Decision<'_>) -> Option<()> {
        let reason = decision.reason();
        if let Some(point) = self.points.unmatched.filter(|_| decision.call().method().is_none()) {
            let stops = matches!(decision.effect(), Effect::Deny | Effect::Suspend);
            match reason.code.as_str() {
                reason_code::UNMATCHED if stops => self.count(point, BranchKind::Applied),
                _ if decision.effect() <= Effect::Suspend && reason.policy.is_some() => {
                    self.count(point, BranchKind::Lifted)
                }
                _ => None,
            };
        }
        self.count_kind(&reason.policy?, BranchKind::Reason)
    }

    fn count_limit(&mut self, limit: &LimitChecked<'_>) -> Option<()> {
        self.count_kind(
            &limit.policy.id,
            if limit.is_enough { BranchKind::Enough } else { BranchKind::UsedUp },
        )
    }

    fn count_budget(&mut self, evaluation: &PolicyEvaluated<'_>) -> Option<()> {
        let bounds = matches!(evaluation.policy.kind, PolicyKind::Budget(_)) && evaluation.matches();
        self.count(self.policy_points(&evaluation.policy.id).filter(|_| bounds)?.policy, BranchKind::Matched)
    }

    fn count_error(&mut self, matched: &ErrorMatched<'_>) -> Option<()> {
        let points = self.policy_points(&matched.policy.id)?;
        let on = match &matched.policy.kind {
            PolicyKind::Retry(retry) => &retry.on,
            PolicyKind::Recover(recover) => &recover.on,
            _ => return None,
        };
        for (point, is_match) in (points.errors..).zip(on.matches_each(matched.error)) {
            self.count(point, if is_match { BranchKind::True } else { BranchKind::False });
        }
        let repeats = matches!(matched.policy.kind, PolicyKind::Retry(_)) && on.matches(matched.error);
        self.count(points.kind.filter(|_| repeats)?, BranchKind::Repeated)
    }

    fn count_outcome(&mut self, outcome: &Outcome) -> Option<()> {
        for id in outcome.approval.iter().flat_map(|request| &request.policies) {
            self.count_kind(id, BranchKind::Asked);
        }
        for took_part in &outcome.policies {
            let side = match (&*took_part.kind, took_part.verdict) {
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
fn verdict_branch(evaluation: &PolicyEvaluated<'_>) -> Option<BranchKind> {
    match (&evaluation.policy.kind, evaluation.verdict?) {
        (PolicyKind::Validate(_), _) if evaluation.problem.is_some() => Some(BranchKind::Misfits),
        (PolicyKind::Validate(_), _) => Some(BranchKind::Fits),
        (PolicyKind::RateLimit(_), Verdict::Deny | Verdict::Halt | Verdict::Suspend) => {
            Some(BranchKind::UsedUp)
        }
        (PolicyKind::Recover(_), _) => Some(BranchKind::Recovered),
        _ => None,
    }
}
