//! Two versions of one policy, compared for single calls: what the policy alone does with a call, before and after.

use std::collections::HashMap;
use std::sync::Arc;

use callgate::call::CallView;
use callgate::kernel::Layers;
use callgate::matcher::Truth;
use callgate::middleware::PolicyKind;
use callgate::policy::{Mode, Policy, Unmatched, build_isolated};
use callgate::rules_schema::Polarity;
use callgate::source::YamlNode;
use callgate::time::Moment;

use crate::call_sample::CallSample;
use crate::evaluator::{EvaluatedCall, Evaluator};
use crate::report::{CallDirection, PolicyState};
use crate::rules_version::RulesVersion;

/// One version of a policy.
pub(crate) struct PolicySide<'a> {
    pub(crate) state: PolicyState,
    /// `None` for a policy that is missing or off.
    pub(crate) policy: Option<&'a Policy>,
    pub(crate) node: Option<&'a YamlNode>,
    /// The policy alone.
    isolated: Option<Layers>,
}

impl<'a> PolicySide<'a> {
    pub(crate) fn new(policy: Option<&'a Policy>, node: Option<&'a YamlNode>) -> Self {
        let state = match (policy, node) {
            (Some(policy), _) if policy.mode == Mode::Shadow => PolicyState::Shadow,
            (Some(_), _) => PolicyState::Enforced,
            (None, Some(_)) => PolicyState::Off,
            (None, None) => PolicyState::Missing,
        };
        Self { state, policy, node, isolated: None }
    }

    /// The policy, if it takes effect.
    pub(crate) fn enforced(&self) -> Option<&'a Policy> {
        self.policy.filter(|_| self.state == PolicyState::Enforced)
    }

    /// Whether the policy applies to a call by its matcher; `None` if that is undecided.
    fn applies(&self, sample: &CallSample) -> Option<bool> {
        let Some(policy) = self.enforced() else { return Some(false) };
        let matcher = &policy.matcher;
        if !matcher.matches_tool(sample.call.server.as_deref().unwrap_or(""), &sample.call.tool) {
            return Some(false);
        }
        let now = Moment::new(Some(sample.now));
        let view = CallView {
            task: Some(&sample.task),
            now: Some(&now),
            ..CallView::new(&sample.call, &sample.session)
        };
        match matcher.eval(&view) {
            Truth::Yes => Some(true),
            Truth::No => Some(false),
            Truth::Absent | Truth::Undecided(_) => None,
        }
    }
}

/// A policy before and after.
pub(crate) struct PolicyPair<'a> {
    pub(crate) id: &'a str,
    pub(crate) old: PolicySide<'a>,
    pub(crate) new: PolicySide<'a>,
}

/// How two versions of a policy treat a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnDifference {
    pub(crate) direction: CallDirection,
    /// Whether the decision on the call differs. If not, the policy applies to the call in one of the versions only.
    pub(crate) is_decision: bool,
    /// Whether the conditions of both versions can be evaluated for the call.
    pub(crate) is_decided: bool,
}

impl PolicyPair<'_> {
    /// Whether one of the versions takes effect.
    pub(crate) fn is_enforced(&self) -> bool {
        self.old.enforced().is_some() || self.new.enforced().is_some()
    }

    /// The decision on calls that the policy does not apply to, when it is evaluated alone.
    fn unmatched(&self) -> Unmatched {
        let sides = [self.old.enforced(), self.new.enforced()];
        match sides.into_iter().flatten().any(|policy| matches!(policy.kind, PolicyKind::Allow(_))) {
            true => Unmatched::Deny,
            false => Unmatched::Allow,
        }
    }

    /// Compares what the two versions alone do with a call. Returns `None` if they do the same.
    pub(crate) fn compare(&self, evaluator: &Evaluator, sample: &CallSample) -> Option<OwnDifference> {
        let (before, after) = (self.old.applies(sample), self.new.applies(sample));
        if before == Some(false) && after == Some(false) {
            return None;
        }
        let is_decided = before.is_some() && after.is_some();
        let difference = |direction, is_decision| Some(OwnDifference { direction, is_decision, is_decided });
        let decide = |side: &PolicySide<'_>| Some(evaluator.decide(side.isolated.as_ref()?, sample));
        let (was, is) = (decide(&self.old), decide(&self.new));
        let baseline = if self.unmatched() == Unmatched::Deny { 3 } else { 0 };
        let strictness =
            |call: &Option<EvaluatedCall>| call.as_ref().map_or(baseline, |call| call.summary.strictness);
        let (stricter_before, stricter_after) = (strictness(&was), strictness(&is));
        if stricter_before != stricter_after {
            let looser = stricter_after < stricter_before;
            return difference(if looser { CallDirection::Looser } else { CallDirection::Stricter }, true);
        }
        let input = |call: &Option<EvaluatedCall>| {
            call.as_ref().map_or(sample.call.input.clone(), |call| call.input.clone())
        };
        if input(&was) != input(&is) {
            return difference(CallDirection::Different, true);
        }
        let kind = &self.old.enforced().or(self.new.enforced())?.kind;
        // The others decide in gate: their decision has been compared.
        if before == after || decides_in_gate(kind) {
            return None;
        }
        let restricts = kind.definition().polarity == Polarity::Restricting;
        let direction = match (restricts, before.unwrap_or(true), after.unwrap_or(true)) {
            (true, true, false) => CallDirection::Looser,
            (true, false, true) => CallDirection::Stricter,
            (_, before, after) if before == after => return None,
            _ => CallDirection::Different,
        };
        difference(direction, false)
    }
}

fn decides_in_gate(kind: &PolicyKind) -> bool {
    matches!(
        kind,
        PolicyKind::Deny(_)
            | PolicyKind::Require(_)
            | PolicyKind::Allow(_)
            | PolicyKind::Halt(_)
            | PolicyKind::Validate(_)
            | PolicyKind::Approval(_)
            | PolicyKind::Respond(_)
    )
}

/// Compiles both versions of each pair by themselves.
pub(crate) fn isolate(pairs: &mut [PolicyPair<'_>], old: &RulesVersion, new: &RulesVersion) {
    let wanted: HashMap<String, Unmatched> =
        pairs.iter().map(|pair| (pair.id.to_owned(), pair.unmatched())).collect();
    let isolated = |version: &RulesVersion| -> HashMap<String, Layers> {
        let keep = |policy: &Policy| policy.mode == Mode::Enforce && wanted.contains_key(&policy.id);
        let unmatched = |policy: &Policy| wanted.get(&policy.id).copied().unwrap_or_default();
        let alone = build_isolated(version.loaded(), keep, unmatched).into_iter();
        let named = alone.filter_map(|bundle| Some((bundle.policies().first()?.id.clone(), bundle)));
        named.map(|(id, bundle)| (id, Layers::from_iter([Arc::new(bundle)]))).collect()
    };
    let (mut before, mut after) = (isolated(old), isolated(new));
    for pair in pairs {
        pair.old.isolated = before.remove(pair.id);
        pair.new.isolated = after.remove(pair.id);
    }
}
