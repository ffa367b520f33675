//! Listening: whoever wants to know why policies act or do not hears of every asking while a call lives. Where nobody listens,
//! nothing is paid.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::trace::{Layers, PolicyRef};
use super::{Decision, Kernel, Subject};
use crate::authoring::Polarity;
use crate::call::{Amount, CallView, Outcome, Phase, ToolCall, Verdict};
use crate::host::ToolError;
use crate::json::Value;
use crate::matcher::{ExaminedMatcher, Truth};
use crate::policy::Policy;

/// Hears what happens to calls, in the order in which it happens, on the thread on which it happens. It changes nothing, also where it
/// panics.
///
/// What it hears has not been redacted.
pub trait Listener: Send + Sync {
    /// Something happens. What is told is lent for as long as this runs.
    fn hear(&self, event: &Event<'_>);
}

/// Something that happens to a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call is about to be decided. One call may be decided more than once: with its round and again before it runs, and for each
    /// `next` of a script with other arguments.
    Deciding(Deciding<'a>),
    /// A policy is accounted for. In each phase that a call comes to, every policy that acts in that phase is, once a decision.
    Asking(Asking<'a>),
    /// Normalise and gate are done.
    Decided(&'a Decision<'a>),
    /// What the call takes of a limit was asked of the store, or of the session.
    Limit(LimitAsked<'a>),
    /// A policy that is about errors (`retry` with another try left, `recover`) is asked whether it is about this one.
    Error(ErrorAsked<'a>),
    /// The execution of a call begins: the policies around it, and inside of them its tool.
    Executing(&'a ToolCall),
    /// A call came to its outcome.
    Ended(&'a Outcome),
}

/// A call that is about to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Deciding<'a> {
    /// The call as it was asked for.
    pub view: CallView<'a>,
    /// The rules that decide.
    pub layers: &'a Layers,
}

/// A policy is asked about a call, or passed by.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// Its place among the policies of its layer, in the order in which they act.
    pub place: u32,
    /// The phase of the call; nothing where the run around the calls is meant.
    pub phase: Option<Phase>,
    /// The call as the policy sees it: its arguments as far as they are in form, what the session has seen by then, in settle its
    /// result.
    pub view: CallView<'a>,
    /// What its matcher says.
    pub said: Said<'a>,
    /// What the policy says of the call; nothing where it takes no part.
    pub verdict: Option<Verdict>,
    /// What it changed, or in shadow would have changed.
    pub change: Option<Change<'a>>,
    /// What it has against the call that is more than that it matches: what does not fit a schema, what could not be changed.
    pub problem: Option<&'a str>,
}

/// What a policy's matcher says of a call.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// Its tool and its server fit, and this is what its conditions say.
    Truth(&'a Truth),
    /// Its conditions certainly do not hold: the index found so without asking it.
    LeftOut,
    /// It is for other tools, or other servers.
    Elsewhere,
    /// It was not asked.
    Unasked(Unasked),
}

/// Why a policy whose tool and server fit is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// The arguments are no JSON object.
    NoObject,
    /// The arguments do not fit, and it is no stricter than that.
    InvalidArguments,
    /// The call did not come to this phase: it was stopped, or something answered in the tool's place.
    NotRun,
    /// There is no error to recover.
    NoError,
    /// It recovers other errors.
    OtherError,
    /// It invited to another try as often as it may.
    TriedEnough,
    /// Another policy recovered the error before it.
    RecoveredBefore,
    /// There is no result, or none of a real tool.
    NoResult,
    /// Its conditions can't be asked: Callgate itself fails on them.
    Failed,
}

/// What a policy changed.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Arguments or result before.
    pub before: &'a Value,
    /// The same after.
    pub after: &'a Value,
}

/// What a call takes of a limit, and whether there was enough.
#[derive(Clone, Copy, Debug)]
pub struct LimitAsked<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The limit's policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// What the limit counts for, in one text: its policy and the values of its key.
    pub key: &'a str,
    /// How much the call takes.
    pub cost: Amount,
    /// Whether there was enough left. Of limits that are asked together all are taken of, or none.
    pub enough: bool,
    /// How much is left now, where the store can say so.
    pub left: Option<Amount>,
    /// After how long there may be enough, where there is not and that is known.
    pub retry_after: Option<Duration>,
}

/// An error, and a policy that may be about it.
#[derive(Clone, Copy, Debug)]
pub struct ErrorAsked<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its layer; the bundle is 0.
    pub layer: u32,
    /// How the execution, or an attempt at it, ended.
    pub error: &'a ToolError,
}

impl<'a> Asking<'a> {
    /// Whether the policy counts as matching: its matcher holds, or is open and the policy is of a kind that acts when in doubt.
    pub fn matches(&self) -> bool {
        let Said::Truth(truth) = self.said else { return false };
        match truth {
            Truth::Yes => true,
            Truth::No => false,
            Truth::Absent => self.policy.kind.entry().polarity == Polarity::Restricting,
            Truth::Undecided(_) => self.policy.kind.entry().polarity != Polarity::Permitting,
        }
    }

    /// What each part of its matcher says, also where it was not asked.
    pub fn examine(&self) -> ExaminedMatcher<'a> {
        self.policy.matcher.examine(&self.view)
    }
}

/// Tells a listener something. One that panics changes nothing.
pub(crate) fn tell(listener: Option<&dyn Listener>, event: &Event<'_>) {
    if let Some(listener) = listener {
        let _ = catch_unwind(AssertUnwindSafe(|| listener.hear(event)));
    }
}

impl Kernel<'_> {
    /// Tells who listens of a policy of the run around the calls. `truth`: what its conditions say; nothing where they panic.
    pub(super) fn tell_of_run(
        &self,
        (reference, policy): (PolicyRef, &Policy),
        view: CallView<'_>,
        truth: Option<&Truth>,
    ) {
        let acts = truth.is_none_or(|truth| *truth != Truth::No);
        let asking = Asking {
            policy,
            layer: reference.layer,
            place: reference.index,
            phase: None,
            view,
            said: truth.map_or(Said::Unasked(Unasked::Failed), Said::Truth),
            verdict: acts.then_some(Verdict::Pass),
            change: None,
            problem: None,
        };
        tell(self.listener, &Event::Asking(asking));
    }
}

/// One phase of a call, as it is told to a listener: who was asked, and in the end who was not.
pub(super) struct Hearing<'h> {
    listener: Option<&'h dyn Listener>,
    phase: Phase,
    heard: RefCell<Vec<PolicyRef>>,
}

/// What a policy that was asked has to say, beside what its matcher says.
#[derive(Clone, Copy, Default)]
pub(super) struct Answer<'a> {
    pub(super) verdict: Option<Verdict>,
    pub(super) change: Option<Change<'a>>,
    pub(super) problem: Option<&'a str>,
}

impl From<Option<Verdict>> for Answer<'_> {
    fn from(verdict: Option<Verdict>) -> Self {
        Self { verdict, ..Self::default() }
    }
}

impl<'h> Hearing<'h> {
    pub(super) fn of(listener: Option<&'h dyn Listener>, phase: Phase) -> Self {
        Self { listener, phase, heard: RefCell::default() }
    }

    /// Whether anybody listens.
    pub(super) fn is_public(&self) -> bool {
        self.listener.is_some()
    }

    /// A policy was asked.
    pub(super) fn asked<'a>(
        &self,
        (reference, policy): (PolicyRef, &'a Policy),
        view: &CallView<'a>,
        said: Said<'a>,
        answer: impl Into<Answer<'a>>,
    ) {
        if self.listener.is_none() {
            return;
        }
        self.heard.borrow_mut().push(reference);
        let Answer { verdict, change, problem } = answer.into();
        let asking = Asking {
            policy,
            layer: reference.layer,
            place: reference.index,
            phase: Some(self.phase),
            view: *view,
            said,
            verdict,
            change,
            problem,
        };
        tell(self.listener, &Event::Asking(asking));
    }

    /// Whether this policy was accounted for.
    pub(super) fn has_heard(&self, reference: PolicyRef) -> bool {
        self.heard.borrow().contains(&reference)
    }

    /// The phase is over: the policies that act in it and were not asked are accounted for.
    pub(super) fn rest<'a>(
        &self,
        subject: &Subject<'a>,
        view: &CallView<'a>,
        why: impl Fn(&Policy) -> Said<'static>,
    ) {
        if self.listener.is_none() {
            return;
        }
        let mut heard = self.heard.borrow().clone();
        heard.sort_unstable();
        let server = subject.call.server.as_deref().unwrap_or("");
        for (layer, chains) in (0u32..).zip(subject.layers) {
            for (index, policy) in (0u32..).zip(chains.policies()) {
                let reference = PolicyRef { layer, index };
                if !policy.kind.acts_in(self.phase) || heard.binary_search(&reference).is_ok() {
                    continue;
                }
                let fits = policy.matcher.concerns(server, &subject.call.tool);
                let said = if fits { why(policy) } else { Said::Elsewhere };
                self.asked((reference, policy), view, said, None);
            }
        }
    }
}
