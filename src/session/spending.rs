//! What runs, conversations and principals have used of their budgets: of a run in its session, of others in the store.

use serde_json::{Value, json};

use super::Shared;
use crate::call::{Amount, CallView, Reason, SessionState, ToolCall, reason_code};
use crate::host::{RecordKey, StoreError, Write, in_time};
use crate::json;
use crate::kernel::{Kernel, PolicyRef};
use crate::lifecycle::{RunContext, Usage};
use crate::middleware::{AtBound, Budget, Per, Used};
use crate::policy::Policy;

/// The space of what was used, in a store.
const SPACE: &str = "budgets";
/// How often a change is tried again when others were quicker.
const TRIES: usize = 64;

/// The budgets of one session.
pub(super) struct Spending<'s> {
    pub(super) shared: &'s Shared,
    pub(super) kernel: Kernel<'s>,
    pub(super) run: &'s RunContext,
    pub(super) conversation: &'s str,
}

impl<'s> Spending<'s> {
    fn budgets(&self, state: &SessionState) -> Vec<(PolicyRef, &'s Policy, &'s Budget)> {
        self.kernel.budgets(&self.run.context, state)
    }

    /// The strictest of what budgets that are used up say. One whose use can't be known counts as used up.
    pub(super) async fn used_up(&self, state: &SessionState) -> Option<(AtBound, Reason)> {
        let mut strictest: Option<(AtBound, Reason)> = None;
        for (reference, policy, budget) in self.budgets(state) {
            let found = match self.used(reference, policy, budget, state).await {
                Ok(used) => exceeded(budget, &used).map(|what| self.told(policy, budget, what, state)),
                Err(error) => Some(Reason {
                    policy: Some(policy.id.clone()),
                    code: reason_code::STORE_UNAVAILABLE.to_owned(),
                    message: format!("what was used of `{}` can't be known: {error}", policy.id),
                }),
            };
            if let Some(reason) = found
                && strictest.as_ref().is_none_or(|(known, _)| budget.at_bound > *known)
            {
                strictest = Some((budget.at_bound, reason));
            }
        }
        strictest
    }

    /// Counts what was used of every budget that bounds it. Where the store does not answer, nothing is counted there; the next
    /// look at the budget is then likely not answered either, and stops the run.
    pub(super) async fn spend(&self, state: &mut SessionState, spent: Used) {
        for (reference, policy, budget) in self.budgets(state) {
            let bounded = budget.bounds.each().into_iter().zip(spent.each());
            let counted = bounded.filter_map(|((what, bound), (_, amount))| Some((what, bound.and(amount)?)));
            let counted: Vec<(&str, Amount)> = counted.filter(|(_, amount)| *amount > Amount::ZERO).collect();
            if counted.is_empty() {
                continue;
            }
            match self.owner(budget) {
                Ok(None) => {
                    for (what, amount) in counted {
                        state.take(&of_run(reference, policy, what), amount);
                    }
                }
                Ok(Some(owner)) => {
                    let _ = self.add(&key(reference, policy, &owner), &counted).await;
                }
                Err(_) => {}
            }
        }
    }

    /// Whose budget it is, where it is not the run's own. Errors: that is not known.
    fn owner(&self, budget: &Budget) -> Result<Option<Value>, StoreError> {
        match budget.per {
            Per::Run => Ok(None),
            Per::Conversation => Ok(Some(json!(["conversation", self.conversation]))),
            Per::Principal => match self.run.context.get("principal") {
                Some(principal) if !principal.is_null() => {
                    Ok(Some(json!(["principal", self.run.context.get("tenant"), principal])))
                }
                _ => Err(StoreError("the context names no principal".to_owned())),
            },
        }
    }

    async fn used(
        &self,
        reference: PolicyRef,
        policy: &Policy,
        budget: &Budget,
        state: &SessionState,
    ) -> Result<Vec<(&'static str, Amount)>, StoreError> {
        let names = budget.bounds.each().map(|(what, _)| what);
        Ok(match self.owner(budget)? {
            None => names.map(|what| (what, state.taken(&of_run(reference, policy, what)))).to_vec(),
            Some(owner) => {
                let key = key(reference, policy, &owner);
                let record = in_time(self.kernel.clock, || {
                    self.shared.services.store.record(RecordKey { space: SPACE, key: &key })
                });
                let value = record.await?.map(|record| record.value).unwrap_or_default();
                names.map(|what| (what, amount(&value, what))).to_vec()
            }
        })
    }

    async fn add(&self, key: &str, spent: &[(&str, Amount)]) -> Result<(), StoreError> {
        let store = &self.shared.services.store;
        let key = RecordKey { space: SPACE, key };
        for _ in 0..TRIES {
            let found = in_time(self.kernel.clock, || store.record(key)).await?;
            let over = found.as_ref().map(|record| record.version);
            let mut value =
                found.map(|record| record.value).filter(Value::is_object).unwrap_or_else(|| json!({}));
            for (what, more) in spent {
                let sum = amount(&value, what).plus(*more).millionths();
                if let Some(members) = value.as_object_mut() {
                    members.insert((*what).to_owned(), sum.into());
                }
            }
            let write = Write { key, value: &value, over, forget_at: None };
            if in_time(self.kernel.clock, || store.write_record(self.kernel.clock.now(), write)).await? {
                return Ok(());
            }
        }
        Err(StoreError("others kept counting".to_owned()))
    }

    fn told(&self, policy: &Policy, budget: &Budget, what: &str, state: &SessionState) -> Reason {
        let call = ToolCall::new("", "", json!({})).with_context(self.run.context.clone());
        let message = match &budget.message {
            Some(template) => template.render(&CallView::new(&call, state), &[]).text,
            None => format!("the budget `{}` is used up: no {what} are left", policy.id),
        };
        Reason { policy: Some(policy.id.clone()), code: reason_code::BUDGET_EXCEEDED.to_owned(), message }
    }
}

/// What a call of a model used.
pub(super) fn of_model(usage: &Usage) -> Used {
    let number = |number: f64| serde_json::Number::from_f64(number);
    Used {
        tokens: Some(Amount::whole(usage.tokens())),
        cost: usage.cost.and_then(number).as_ref().and_then(Amount::of),
        ..Used::default()
    }
}

/// The first bound that is reached.
fn exceeded(budget: &Budget, used: &[(&'static str, Amount)]) -> Option<&'static str> {
    let bounds = budget.bounds.each();
    let reached = |(what, bound): &(&'static str, Option<Amount>)| {
        let used = used.iter().find(|(name, _)| name == what).map(|(_, used)| *used);
        bound.zip(used).is_some_and(|(bound, used)| used >= bound)
    };
    bounds.iter().find(|bound| reached(bound)).map(|(what, _)| *what)
}

fn of_run(reference: PolicyRef, policy: &Policy, what: &str) -> String {
    format!("budget/{}/{}/{what}", reference.layer(), policy.id)
}

fn key(reference: PolicyRef, policy: &Policy, owner: &Value) -> String {
    json::canonical(&json!([reference.layer(), policy.id, owner]))
}

fn amount(value: &Value, what: &str) -> Amount {
    value.get(what).and_then(Value::as_u64).map(Amount::of_millionths).unwrap_or_default()
}
