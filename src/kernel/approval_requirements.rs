//! Approval requirements of a suspended call: who may approve, and what an approval permits.

use std::sync::Arc;

use smallvec::SmallVec;

use super::decision::LimitRequest;
use super::policy_reference::PolicyRef;
use super::{CallScope, Decision, Kernel};
use crate::approval::{ApprovalRequirement, BoundContext, Permit, Remembered, name_comparison};
use crate::argument_schema::{self, ArgumentSchema};
use crate::call::{CallView, ContextReads, SessionState, ToolCall};
use crate::json::{self, Digest, Value, json};
use crate::middleware::{Approval, LimitCharge};
use crate::path::ArgumentPointers;
use crate::policy::Policy;
use crate::principal::PrincipalComparison;

/// The number of argument paths that a request names as relevant.
const MAX_RELEVANT: usize = 64;

/// What a call has already when it is decided.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldResources<'h> {
    /// Acquired limits.
    pub(crate) limits: &'h [LimitRequest],
    /// Given approvals.
    pub(crate) permits: &'h [Permit],
}

impl HeldResources<'_> {
    /// Whether the call has acquired this amount of a limit.
    pub(super) fn holds_limit(&self, limit: PolicyRef, measure: &LimitCharge) -> bool {
        self.limits.iter().any(|held| held.is_for(limit, measure))
    }

    /// Whether these arguments are approved, for this policy or for `defaults.unmatched`.
    pub(super) fn is_approved(&self, layer: u32, policy: Option<&Policy>, input: &Value) -> bool {
        !self.permits.is_empty() && self.permits.contains(&permit(layer, policy, json::digest(input)))
    }
}

/// What an approval permits for a policy; without one, for `defaults.unmatched`.
fn permit(layer: u32, policy: Option<&Policy>, about: Digest) -> Permit {
    let behaviour = policy
        .map_or_else(|| Digest::compute(b"defaults.unmatched: approval"), |policy| policy.behaviour_digest);
    Permit { layer, policy: policy.map(|policy| policy.id.clone()), behaviour, about }
}

impl Kernel<'_> {
    /// The approvers of a suspended call, one entry for each policy, layer, script or hook that requires an
    /// approval.
    pub(crate) fn approvers(
        &self,
        decision: &Decision<'_>,
        session: &SessionState,
    ) -> Vec<ApprovalRequirement> {
        let about = json::digest(&decision.input);
        let view = CallView { input: &decision.input, ..self.view(&decision.call, session) };
        let mut askers: Vec<ApprovalRequirement> = Vec::new();
        for reference in &decision.approvals {
            if let Some(policy) = reference.find(self.layers)
                && let Some(approval) = policy.kind.as_approval()
            {
                let paths = approval.edits.paths.iter();
                askers.push(ApprovalRequirement {
                    permit: permit(reference.layer(), Some(policy), about),
                    approvers: approval.approvers.clone(),
                    quorum: approval.quorum,
                    principals: approval.principals,
                    anonymous: approval.allows_anonymous,
                    by_link: approval.allows_answer_by_link,
                    edits: paths.map(|path| path.text().to_owned()).collect(),
                    remember: remembered_scope(approval, &view),
                });
            }
        }
        let plain = |permit: Permit| ApprovalRequirement {
            principals: self.comparison(permit.layer),
            permit,
            approvers: Vec::new(),
            quorum: 1,
            anonymous: false,
            by_link: false,
            edits: Vec::new(),
            remember: None,
        };
        askers.extend(decision.unmatched.iter().map(|layer| plain(permit(*layer, None, about))));
        if let Some(own) = &decision.question
            && let Some(policy) = own.policy.find(self.layers)
        {
            askers.push(plain(permit(own.policy.layer(), Some(policy), own.about)));
        }
        askers.extend(decision.required.iter().map(|requirement| requirement.asker.clone()));
        askers
    }

    /// The comparison of principals in the policies of a layer.
    fn comparison(&self, layer: u32) -> PrincipalComparison {
        let policies = self.layers.get(layer as usize);
        policies.map(|policies| policies.defaults().principals).unwrap_or_default()
    }

    /// The identity in a call's context, and what its policies read of the context: an approval is bound to
    /// these.
    pub(crate) fn bound_context(&self, call: &ToolCall, askers: &[ApprovalRequirement]) -> BoundContext {
        let mut reads = ContextReads::default();
        for chain in &self.subject(call).chains {
            reads.extend(&chain.context_reads);
        }
        BoundContext::new(&reads, &call.context, name_comparison(askers))
    }

    /// Checks arguments that a person edited against the tool's schema and the schemas of the policies that
    /// allow the edit. Errors: what is violated.
    pub(crate) fn fits_edits(&self, call: &ToolCall, askers: &[ApprovalRequirement]) -> Result<(), String> {
        let check = |schema: &ArgumentSchema| {
            schema.check(&call.input).map_err(|violations| argument_schema::summarize(&violations))
        };
        let own = self.tools.get(call).and_then(|tool| tool.schema.as_ref());
        match own {
            Some(Ok(schema)) => check(schema)?,
            Some(Err(error)) => return Err(format!("the tool's own schema can't be used: {error}")),
            None => {}
        }
        for asker in askers {
            let layer = self.layers.get(asker.permit.layer as usize);
            let named = |policy: &&Arc<Policy>| Some(&policy.id) == asker.permit.policy.as_ref();
            let policy = layer.and_then(|policies| policies.policies().iter().find(named));
            let Some(approval) = policy.and_then(|policy| policy.kind.as_approval()) else { continue };
            if let Some(schema) = &approval.edits.schema {
                check(schema)?;
            }
            if approval.edits.needs_tool_schema && own.is_none() {
                return Err("the tool's schema is unknown".to_owned());
            }
        }
        Ok(())
    }

    /// Whether a script's own request is approved.
    pub(crate) fn is_approved(&self, permits: &[Permit], policy: PolicyRef, about: Digest) -> bool {
        policy.find(self.layers).is_some_and(|of| permits.contains(&permit(policy.layer(), Some(of), about)))
    }

    /// Whether the policies that require the approval request one at a time.
    pub(crate) fn asks_one_at_a_time(&self, decision: &Decision<'_>) -> bool {
        decision
            .approvals
            .iter()
            .filter_map(|reference| reference.find(self.layers))
            .any(|policy| policy.kind.as_approval().is_some_and(|approval| approval.one_at_a_time))
    }
}

impl CallScope<'_> {
    /// The arguments that matter most to an approver, and their parts, as JSON pointers: first those that the
    /// requesting policies read or name, then those of the other policies, then those that the tool requires.
    /// `input`: the redacted arguments.
    pub(super) fn relevant(&self, requesting: &[&Policy], input: &Value) -> Vec<String> {
        let of_askers =
            requesting.iter().flat_map(|policy| [&*policy.template_arguments, &*policy.argument_reads]);
        let of_all = self.chains.iter().flat_map(|chain| [&chain.argument_reads, &chain.template_arguments]);
        let names: Vec<_> = of_askers.chain(of_all).collect();
        let mut pointers = ArgumentPointers::new(MAX_RELEVANT);
        names.iter().for_each(|names| pointers.add_named(names, input));
        let schema = self.tool.and_then(|tool| tool.schema.as_ref()?.as_ref().ok());
        schema
            .into_iter()
            .flat_map(ArgumentSchema::required_names)
            .for_each(|name| pointers.add_argument(input, name));
        // An agent can add to these, but not to the ones before.
        names.iter().for_each(|names| pointers.add_matched(names, input));
        names.iter().for_each(|names| pointers.add_nested(names, input));
        pointers.into_vec()
    }
}

/// The later calls that an approval also permits. `None` if a named argument is missing or can't be read.
fn remembered_scope(approval: &Approval, view: &CallView<'_>) -> Option<Remembered> {
    let remember = approval.remember.as_ref()?;
    let about = if remember.fields.is_empty() {
        json::digest(view.input)
    } else {
        let mut values = Vec::new();
        for path in &remember.fields {
            let nodes = path.nodes(view).ok().filter(|nodes| !nodes.is_empty())?;
            let nodes: SmallVec<[Value; 2]> = nodes.iter().map(|node| node.to_value()).collect();
            values.push(json!([path.text(), nodes.as_slice()]));
        }
        json::digest(&Value::from(values))
    };
    Some(Remembered { about, seconds: remember.duration.as_secs() })
}
