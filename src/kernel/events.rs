//! Events for listeners: how every policy was evaluated, and why it applied or not. Without a listener they
//! cost nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::policy_reference::{Layers, PolicyHandle};
use super::{Decision, Kernel};
use crate::call::{Amount, CallView, Outcome, Phase, ToolCall, Verdict};
use crate::host::{RealCost, ToolError};
use crate::json::Value;
use crate::matcher::{ExaminedMatcher, Truth};
use crate::middleware::FactChange;
use crate::policy::Policy;

/// Receives the events of calls, in order, on the thread on which they happen. It changes nothing, also if it
/// panics.
///
/// Events are not redacted.
pub trait EventListener: Send + Sync {
    /// Receives an event, which is borrowed for as long as this runs.
    fn on_event(&self, event: &Event<'_>);
}

/// An event in the life of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A decision starts. One call may be decided more than once: with its round and again before it runs, and
    /// for each `next` of a script with other arguments.
    DecisionStarted(DecisionStarted<'a>),
    /// A policy was evaluated or skipped. Once a decision, in each phase that a call reaches, this is reported
    /// for every policy of that phase.
    PolicyEvaluated(PolicyEvaluated<'a>),
    /// Normalise and gate have ended.
    Decided(&'a Decision<'a>),
    /// A limit was checked in the store or in the session.
    LimitChecked(LimitChecked<'a>),
    /// The result of a call showed its real cost, for a limit with `cost_after`.
    CostCorrected(CostCorrected<'a>),
    /// A `fact` policy that applies to a call has changed the session.
    FactStored(FactStored<'a>),
    /// A policy for errors (`retry` with attempts left, `recover`) was matched against an error.
    ErrorMatched(ErrorMatched<'a>),
    /// The execution of a call starts: the policies around it, and inside of them its tool.
    ExecutionStarted(&'a ToolCall),
    /// A call has its outcome.
    Ended(&'a Outcome),
}

/// The start of a decision.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DecisionStarted<'a> {
    /// The call as it was made.
    #[doc(hidden)]
    pub view: CallView<'a>,
    /// The rules that decide.
    #[doc(hidden)]
    pub layers: &'a Layers,
}

/// The evaluation of a policy for a call, or why it was skipped.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PolicyEvaluated<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// Its index among the policies of its layer, in order.
    pub index: u32,
    /// The phase of the call. `None` for policies of the run.
    pub phase: Option<Phase>,
    /// The call as the policy sees it: its arguments as far as they are normalised, the session's state by
    /// then, and in settle the result.
    #[doc(hidden)]
    pub view: CallView<'a>,
    /// The truth of its condition, or why that was not evaluated.
    pub status: MatchStatus<'a>,
    /// The policy's verdict. `None` if it takes no part.
    pub verdict: Option<Verdict>,
    /// What it changed, or would have changed in shadow mode.
    pub change: Option<Change<'a>>,
    /// A problem beyond that it matches: what violates a schema, what could not be changed.
    pub problem: Option<&'a str>,
}

/// The match of a policy with a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MatchStatus<'a> {
    /// Its tool and server match, and its condition has this truth.
    Truth(&'a Truth),
    /// Its condition certainly does not hold: the index excluded it without evaluation.
    Excluded,
    /// It is for other tools or servers.
    OtherTool,
    /// It was skipped.
    Skipped(SkipReason),
}

/// Why a policy whose tool and server match is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The arguments are not a JSON object.
    NotAnObject,
    /// The arguments are invalid, and it is no stricter than that.
    InvalidArguments,
    /// The call did not reach this phase: it was stopped, or something answered in the tool's place.
    NotRun,
    /// There is no error to recover.
    NoError,
    /// It recovers other errors.
    OtherError,
    /// It has recovered this tool's errors as often as it may.
    AttemptsExhausted,
    /// Another policy recovered the error before it.
    RecoveredBefore,
    /// There is no result, or not one of a real tool.
    NoResult,
    /// Its condition can't be evaluated: Callgate itself fails on it.
    Failed,
}

/// A change by a policy.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The arguments or the result before.
    pub before: &'a Value,
    /// The same after it.
    pub after: &'a Value,
}

/// The check of a limit for a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LimitChecked<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The limit's policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// The limit's key as one string: its policy and the values of its `by`.
    pub key: &'a str,
    /// The amount that the call needs.
    pub cost: Amount,
    /// Whether the call is approved: it acquires the amount whatever is left.
    pub is_approved: bool,
    /// Whether there was enough left. Of limits that are checked together all are acquired, or none.
    pub is_enough: bool,
    /// The amount that is left now, if the store can tell.
    pub left: Option<Amount>,
    /// After how long there may be enough, if that is known.
    pub retry_after: Option<Duration>,
}

/// The real cost of a call, which replaces the estimate that it acquired of a limit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CostCorrected<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The limit's policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// The real cost.
    pub cost: RealCost,
}

/// What a `fact` policy did to the session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FactStored<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// What it stored or removed.
    pub change: FactChange,
}

/// An error, and a policy that may be about it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ErrorMatched<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// The error of the execution, or of an attempt at it.
    pub error: &'a ToolError,
}

impl<'a> PolicyEvaluated<'a> {
    /// Whether the policy counts as matching: its condition holds, or is undecided and the policy's kind
    /// applies then.
    pub fn matches(&self) -> bool {
        let MatchStatus::Truth(truth) = self.status else { return false };
        self.policy.kind.application(truth, self.phase.unwrap_or(Phase::Gate)).takes_part()
    }

    /// The truth of each part of its condition, also of parts that short-circuit evaluation skipped.
    pub fn examine(&self) -> ExaminedMatcher<'a> {
        self.policy.matcher.examine(&self.view)
    }
}

/// Notifies a listener. One that panics changes nothing.
pub(crate) fn notify(listener: Option<&dyn EventListener>, event: &Event<'_>) {
    if let Some(listener) = listener {
        let _ = catch_unwind(AssertUnwindSafe(|| listener.on_event(event)));
    }
}

impl Kernel<'_> {
    /// Reports a policy of the run. `truth`: of its condition; `None` if it panicked.
    pub(super) fn report_run_policy(&self, by: PolicyHandle<'_>, view: CallView<'_>, truth: Option<&Truth>) {
        let PolicyHandle { reference, policy } = by;
        let acts = truth.is_none_or(|truth| *truth != Truth::No);
        let evaluation = PolicyEvaluated {
            policy,
            layer: reference.layer,
            index: reference.index,
            phase: None,
            view,
            status: truth.map_or(MatchStatus::Skipped(SkipReason::Failed), MatchStatus::Truth),
            verdict: acts.then_some(Verdict::Pass),
            change: None,
            problem: None,
        };
        notify(self.listener, &Event::PolicyEvaluated(evaluation));
    }
}
