//! Values that outlast their call: what a cache or a script keeps, with what redaction changes in the values that it was made of.
//!
//! A pattern that matches a whole value does not find it in a text that a script made of it, so the call that made the text masks what it
//! was made of. A later call that gets the text from a cache masks the same: the text is stored with these changes, for each `redact` policy,
//! because another one may apply to the later call.

use super::execution_result::Records;
use super::policy_masks::{CachedValue, PolicyMasks};
use super::redacted_call::Redaction;
use super::{CallScope, Kernel};
use crate::call::{CallView, Masks, SessionState, ToolCall};
use crate::json::{Value, json};
use crate::middleware::PolicyKind;
use crate::policy::{Mode, Policy};
use crate::work_limit::{self, WorkMeter};

/// The only member of a value that is stored with its masks.
const MARK: &str = "$cached";

impl Kernel<'_> {
    /// The form in which a `cache` policy stores the result of a call. Returns `None` if it takes too much work to find what is redacted in it.
    pub(crate) fn cached_result(
        &self,
        call: &ToolCall,
        session: &SessionState,
        output: &Value,
        records: &Records,
    ) -> Option<Value> {
        let is_made = records.has_received && records.is_made(output);
        // In the tool's own result the policies find what they redact again, but not what repeats arguments.
        let sources = is_made.then_some(records);
        self.stored_form(call, session, sources, |mut masks| {
            if !is_made {
                masks.retain(|masks| masks.matching(output));
            }
            StoredForm { value: output, masks, is_made }
        })
    }

    /// The form in which a script keeps a value. Returns `None` as [`cached_result`](Self::cached_result) does.
    pub(crate) fn kept_value(
        &self,
        call: &ToolCall,
        session: &SessionState,
        value: &Value,
        records: &Records,
    ) -> Option<Value> {
        self.stored_form(call, session, Some(records), |mut masks| {
            // Values that are kept again and again, such as counters, do not collect the masks of all results.
            masks.retain(|masks| masks.with_parts_in(value));
            let is_made = records.has_received && (has_text(value) || !masks.is_empty());
            StoredForm { value, masks, is_made }
        })
    }

    fn stored_form<'v>(
        &self,
        call: &ToolCall,
        session: &SessionState,
        sources: Option<&Records>,
        form: impl FnOnce(PolicyMasks) -> StoredForm<'v>,
    ) -> Option<Value> {
        WorkMeter::for_decision().run_nested(|| {
            let subject = self.subject(call);
            let stored = form(subject.source_masks(subject.view(session), sources)).into_value();
            (!work_limit::is_exceeded()).then_some(stored)
        })
    }

    /// A value as it was stored. Returns `None` if a policy that redacts results of this call was not there when a script made the value:
    /// it is unknown what that policy redacts in it.
    pub(crate) fn read_cached(&self, call: &ToolCall, stored: &Value) -> Option<CachedValue> {
        let members = stored.as_object().filter(|members| members.len() == 1);
        let Some(marked) = members.and_then(|members| members.get(MARK)) else {
            return Some(CachedValue { value: stored.clone(), masks: PolicyMasks::default() });
        };
        let masks = marked.get("masks")?.as_object()?.iter();
        let masks = masks.map(|(policy, masks)| Some((policy.to_string(), Masks::from_json(masks)?)));
        let masks = PolicyMasks(masks.collect::<Option<_>>()?);
        let is_made = marked.get("made")?.as_bool()?;
        let subject = self.subject(call);
        let is_known =
            !is_made || subject.result_redacting_policies().all(|policy| masks.of(policy).is_some());
        is_known.then(|| Some(CachedValue { value: marked.get("value")?.clone(), masks })).flatten()
    }
}

struct StoredForm<'v> {
    value: &'v Value,
    masks: PolicyMasks,
    /// Whether a script made it.
    is_made: bool,
}

impl StoredForm<'_> {
    fn into_value(self) -> Value {
        let Self { value, masks, is_made } = self;
        let looks_marked = value.get(MARK).is_some();
        if !is_made && masks.is_empty() && !looks_marked {
            return value.clone();
        }
        let masks: Value = masks.0.iter().map(|(policy, masks)| (policy.clone(), masks.to_json())).collect();
        json!({ MARK: { "value": value, "masks": masks, "made": is_made } })
    }
}

impl<'a> CallScope<'a> {
    /// The enforced policies that redact results of the call if they match.
    pub(super) fn result_redacting_policies(&self) -> impl Iterator<Item = &'a Policy> {
        let policies = self.policies(|chain| &chain.settle).map(|by| by.policy);
        policies.filter(|policy| {
            let redacts = matches!(&policy.kind, PolicyKind::Redact(redact) if redact.output);
            redacts && policy.mode == Mode::Enforce
        })
    }

    /// What the policies change in the arguments of this call and in these sources, whether they match this call or not.
    fn source_masks(&self, view: CallView<'_>, sources: Option<&Records>) -> PolicyMasks {
        let masks = self.result_redacting_policies().filter_map(|policy| {
            let PolicyKind::Redact(redact) = &policy.kind else { return None };
            let redaction = Redaction::new(redact, self);
            let mut masks = redaction.argument_changes(self.layers, view);
            let results = sources.into_iter().flat_map(|sources| &sources.results);
            results.for_each(|result| masks.merge(&redaction.result_changes(result)));
            Some((policy.behaviour_digest.to_string(), masks))
        });
        let mut masks = PolicyMasks(masks.collect());
        sources.into_iter().for_each(|sources| masks.merge(&sources.inherited));
        masks
    }
}

fn has_text(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(_) => true,
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(members) => !members.is_empty(),
    }
}
