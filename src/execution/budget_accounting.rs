//! Accounts budgets: what runs, conversations and principals have used. Runs are accounted in their session, all others in the store.

use super::EngineServices;
use crate::call::{Amount, CallView, Reason, SessionState, ToolCall, Verdict, reason_code};
use crate::host::{Account, ConditionalWrite, Record, RecordKey, StoreError, space, with_store_timeout};
use crate::json::{self, Value, json};
use crate::kernel::{Kernel, PolicyRef};
use crate::lifecycle::{RunContext, Usage};
use crate::middleware::{Budget, BudgetAmounts, BudgetScope, OnBudgetExceeded};
use crate::policy::{Mode, Policy};
use crate::principal::PrincipalValue;

/// How often a change is tried again after a conflict.
const TRIES: usize = 64;

/// The budgets of one session.
pub(crate) struct BudgetAccount<'s> {
    pub(crate) services: &'s EngineServices,
    pub(crate) kernel: Kernel<'s>,
    pub(crate) run: &'s RunContext,
    pub(crate) conversation: &'s str,
}

impl<'s> BudgetAccount<'s> {
    fn budgets(&self, state: &SessionState) -> Vec<(PolicyRef, &'s Policy, &'s Budget)> {
        self.kernel.budgets(&self.run.context, state)
    }

    /// The strictest of the exceeded budgets, and the exceeded ones in shadow mode. A budget whose use is unknown counts as exceeded.
    async fn used_up(
        &self,
        state: &SessionState,
        binds: &impl Fn(OnBudgetExceeded) -> bool,
    ) -> (Option<BudgetExceeded>, Vec<BudgetExceeded>) {
        let mut strictest: Option<BudgetExceeded> = None;
        let mut shadows = Vec::new();
        for (reference, policy, budget) in self.budgets(state) {
            if !binds(budget.on_exceed) {
                continue;
            }
            let found = match self.used(reference, policy, budget, state).await {
                Ok(used) => {
                    exceeded(budget, &used).map(|unit| self.exceeded_reason(policy, budget, unit, state))
                }
                Err(error) => Some(unknown_reason(policy, &error)),
            };
            let Some(reason) = found else { continue };
            let used_up = BudgetExceeded { policy: reference, at_bound: budget.on_exceed, reason };
            if policy.mode == Mode::Shadow {
                shadows.push(used_up);
            } else if strictest.as_ref().is_none_or(|known| budget.on_exceed > known.at_bound) {
                strictest = Some(used_up);
            }
        }
        (strictest, shadows)
    }

    /// Counts a use before it begins. Errors: a budget that binds it is exceeded. Exact, also when several use one budget at once.
    /// Budgets in shadow mode are counted and bind nothing; exceeded ones are added to `shadows`.
    pub(crate) async fn reserve(
        &self,
        state: &mut SessionState,
        next: BudgetAmounts,
        binds: impl Fn(OnBudgetExceeded) -> bool,
        shadows: &mut Vec<BudgetExceeded>,
    ) -> Result<BudgetReservation, BudgetExceeded> {
        let (refused, would_refuse) = self.used_up(state, &binds).await;
        shadows.extend(would_refuse);
        if let Some(refused) = refused {
            return Err(refused);
        }
        let mut reservation = BudgetReservation::default();
        for (reference, policy, budget) in self.budgets(state) {
            let counted = counted(budget, next);
            let owner = self.owner(budget);
            if counted.is_empty() {
                continue;
            }
            let binding = policy.mode == Mode::Enforce && binds(budget.on_exceed);
            let refused = match owner {
                Ok(None) => {
                    for (unit, amount) in &counted {
                        state.acquire(&of_run(reference, policy, unit), *amount);
                    }
                    reservation.of_run.extend(
                        counted.into_iter().map(|(unit, amount)| (of_run(reference, policy, unit), amount)),
                    );
                    None
                }
                Ok(Some(owner)) => {
                    let key = key(reference, policy, &owner);
                    match self.change(&key, &counted, Amount::saturating_add, binding.then_some(budget)).await
                    {
                        Ok(None) => {
                            reservation.of_others.push((key, counted));
                            None
                        }
                        Ok(Some(unit)) => Some(self.exceeded_reason(policy, budget, unit, state)),
                        Err(error) if binding => Some(unknown_reason(policy, &error)),
                        Err(_) => None,
                    }
                }
                Err(error) if binding => Some(unknown_reason(policy, &error)),
                Err(_) => None,
            };
            if let Some(reason) = refused {
                self.release(state, reservation).await;
                return Err(BudgetExceeded { policy: reference, at_bound: budget.on_exceed, reason });
            }
        }
        Ok(reservation)
    }

    /// Whether budgets of the run let one more call begin, whether or not `others` that are under way count.
    pub(crate) fn leave_calls(&self, state: &SessionState, others: usize) -> bool {
        let others = Amount::from_whole(u64::try_from(others).unwrap_or(u64::MAX));
        self.budgets(state).into_iter().filter(|(.., budget)| budget.scope == BudgetScope::Run).all(
            |(reference, policy, budget)| {
                let used = state.acquired(&of_run(reference, policy, "calls")).saturating_add(others);
                budget.bounds.calls.is_none_or(|bound| used < bound)
            },
        )
    }

    /// Releases what was reserved for a use that did not happen. If the store does not answer, it stays counted.
    pub(crate) async fn release(&self, state: &mut SessionState, reservation: BudgetReservation) {
        for (key, amount) in reservation.of_run {
            state.release(&key, amount);
        }
        for (key, counted) in reservation.of_others {
            let _ = self.change(&key, &counted, Amount::saturating_sub, None).await;
        }
    }

    /// Counts a use in every budget that bounds it. If the store does not answer, nothing is counted there; the next check of the
    /// budget then likely fails as well, and stops the run.
    pub(crate) async fn spend(&self, state: &mut SessionState, spent: BudgetAmounts) {
        for (reference, policy, budget) in self.budgets(state) {
            let counted = counted(budget, spent);
            if counted.is_empty() {
                continue;
            }
            match self.owner(budget) {
                Ok(None) => {
                    for (unit, amount) in counted {
                        state.acquire(&of_run(reference, policy, unit), amount);
                    }
                }
                Ok(Some(owner)) => {
                    let _ = self
                        .change(&key(reference, policy, &owner), &counted, Amount::saturating_add, None)
                        .await;
                }
                Err(_) => {}
            }
        }
    }

    /// The owner of a budget. `None` if it is the run's own. Errors: the owner is unknown.
    fn owner(&self, budget: &Budget) -> Result<Option<Value>, StoreError> {
        match budget.scope {
            BudgetScope::Run => Ok(None),
            BudgetScope::Conversation => Ok(Some(json!(["conversation", self.conversation]))),
            BudgetScope::Principal => {
                match PrincipalValue::from_context(&self.run.context, budget.principals) {
                    PrincipalValue::Principal(principal) => {
                        Ok(Some(json!(["principal", self.run.context.get("tenant"), principal.key()])))
                    }
                    PrincipalValue::Missing => {
                        Err(StoreError::Unavailable("the context names no principal".to_owned()))
                    }
                    PrincipalValue::Invalid(found) => Err(StoreError::Unavailable(format!(
                        "`context.principal` must be a string, not {found}"
                    ))),
                }
            }
        }
    }

    async fn used(
        &self,
        reference: PolicyRef,
        policy: &Policy,
        budget: &Budget,
        state: &SessionState,
    ) -> Result<Vec<(&'static str, Amount)>, StoreError> {
        let names = budget.bounds.entries().map(|(unit, _)| unit);
        Ok(match self.owner(budget)? {
            None if !state.knows_run() => {
                return Err(StoreError::Unavailable("the session's state is unknown".to_owned()));
            }
            None => names.map(|unit| (unit, state.acquired(&of_run(reference, policy, unit)))).to_vec(),
            Some(owner) => {
                let key = key(reference, policy, &owner);
                let record = with_store_timeout(self.kernel.clock, || {
                    self.services.store.record(RecordKey { space: space::BUDGETS, key: &key })
                });
                let record = record.await?;
                self.check_lost(record.as_ref()).await?;
                let value = record.map(|record| record.value).unwrap_or_default();
                names.map(|unit| (unit, amount(&value, unit))).to_vec()
            }
        })
    }

    fn account(&self) -> Account {
        Account::from_context(&self.run.context)
    }

    /// If the store refused records of the account, a budget without a record may have been used.
    async fn check_lost(&self, found: Option<&Record>) -> Result<(), StoreError> {
        let (store, account) = (&self.services.store, self.account());
        if found.is_some()
            || !with_store_timeout(self.kernel.clock, || store.has_lost_records(&account)).await?
        {
            return Ok(());
        }
        Err(StoreError::QuotaExceeded("this caller's share of the store is used up".to_owned()))
    }

    /// Changes the store's record of a budget. Returns what of it is used up, if `unless_used_up` is: then nothing is changed.
    async fn change(
        &self,
        key: &str,
        spent: &[(&'static str, Amount)],
        change: fn(Amount, Amount) -> Amount,
        unless_used_up: Option<&Budget>,
    ) -> Result<Option<&'static str>, StoreError> {
        let store = &self.services.store;
        let key = RecordKey { space: space::BUDGETS, key };
        for _ in 0..TRIES {
            let found = with_store_timeout(self.kernel.clock, || store.record(key)).await?;
            self.check_lost(found.as_ref()).await?;
            let expected_version = found.as_ref().map(|record| record.version);
            let mut value =
                found.map(|record| record.value).filter(Value::is_object).unwrap_or_else(|| json!({}));
            let used = spent.iter().map(|(unit, _)| (*unit, amount(&value, unit))).collect::<Vec<_>>();
            if let Some(unit) = unless_used_up.and_then(|budget| exceeded(budget, &used)) {
                return Ok(Some(unit));
            }
            for (unit, more) in spent {
                let sum = change(amount(&value, unit), *more).millionths();
                if let Some(members) = value.as_object_mut() {
                    members.insert((*unit).to_owned(), sum.into());
                }
            }
            let write =
                ConditionalWrite { expected_version, ..ConditionalWrite::new(key, &value, self.account()) };
            if with_store_timeout(self.kernel.clock, || store.write_record(self.kernel.clock.now(), write))
                .await?
            {
                return Ok(None);
            }
        }
        Err(StoreError::Unavailable("the budget was changed by too many writers; try again".to_owned()))
    }

    fn exceeded_reason(&self, policy: &Policy, budget: &Budget, unit: &str, state: &SessionState) -> Reason {
        let call = ToolCall::new("", "", json!({})).with_context(self.run.context.clone());
        let message = match &budget.message {
            Some(template) => {
                let (now, state) = (self.kernel.moment(), state.redacted());
                let view = CallView {
                    now: Some(&now),
                    task: Some(self.kernel.task),
                    ..CallView::new(&call, &state)
                };
                template.render(&view, &[]).text
            }
            None => format!("the budget `{}` is used up: no {unit} are left", policy.id),
        };
        Reason { policy: Some(policy.id.clone()), code: reason_code::BUDGET_EXCEEDED.to_owned(), message }
    }
}

/// An exceeded budget.
#[derive(Debug)]
pub(crate) struct BudgetExceeded {
    pub(crate) policy: PolicyRef,
    pub(crate) at_bound: OnBudgetExceeded,
    pub(crate) reason: Reason,
}

impl BudgetExceeded {
    /// What the budget does to a use that is about to begin.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.at_bound == OnBudgetExceeded::Halt { Verdict::Halt } else { Verdict::Deny }
    }
}

/// What was counted for a use before it began.
#[derive(Debug, Default)]
pub(crate) struct BudgetReservation {
    of_run: Vec<(String, Amount)>,
    of_others: Vec<(String, Vec<(&'static str, Amount)>)>,
}

/// The amounts that a use counts in a budget.
fn counted(budget: &Budget, spent: BudgetAmounts) -> Vec<(&'static str, Amount)> {
    let bounded = budget.bounds.entries().into_iter().zip(spent.entries());
    let counted = bounded.filter_map(|((unit, bound), (_, amount))| Some((unit, bound.and(amount)?)));
    counted.filter(|(_, amount)| *amount > Amount::ZERO).collect()
}

/// The reason for a budget whose use is unknown.
fn unknown_reason(policy: &Policy, error: &StoreError) -> Reason {
    Reason {
        policy: Some(policy.id.clone()),
        code: error.code().to_owned(),
        message: format!("the use of the budget `{}` is unknown: {error}", policy.id),
    }
}

/// The use of one model call.
pub(crate) fn model_usage(usage: &Usage) -> BudgetAmounts {
    let number = |number: f64| json::Number::from_f64(number);
    BudgetAmounts {
        tokens: Some(Amount::from_whole(usage.tokens())),
        cost: usage.cost.and_then(number).as_ref().and_then(Amount::from_number),
        ..BudgetAmounts::default()
    }
}

/// The first bound that is reached.
fn exceeded(budget: &Budget, used: &[(&'static str, Amount)]) -> Option<&'static str> {
    let bounds = budget.bounds.entries();
    let reached = |(unit, bound): &(&'static str, Option<Amount>)| {
        let used = used.iter().find(|(name, _)| name == unit).map(|(_, used)| *used);
        bound.zip(used).is_some_and(|(bound, used)| used >= bound)
    };
    bounds.iter().find(|bound| reached(bound)).map(|(unit, _)| *unit)
}

fn of_run(reference: PolicyRef, policy: &Policy, unit: &str) -> String {
    format!("budget/{}/{}/{unit}", reference.layer(), policy.id)
}

fn key(reference: PolicyRef, policy: &Policy, owner: &Value) -> String {
    json::canonical_text(&json!([reference.layer(), policy.id, owner]))
}

fn amount(value: &Value, unit: &str) -> Amount {
    value.get(unit).and_then(Value::as_u64).map(Amount::from_millionths).unwrap_or_default()
}
