//! Corrects the estimated costs of a call whose tool has succeeded: limits with `cost_after` + the tool's output → the store, or the session.

use super::WrapperChain;
use crate::call::{SessionState, ToolCall};
use crate::execution::admission::Estimate;
use crate::host::{LimitCorrection, RealCost};
use crate::json::Value;
use crate::middleware::{LimitCharge, LimitRule};

impl<E> WrapperChain<'_, E> {
    /// Corrects what the call has acquired, whose tool has returned this output. If the store does not answer, the call ends as it is, and
    /// later calls wait for the correction.
    pub(super) async fn correct_costs(&mut self, call: &ToolCall, output: &Value) {
        let context = self.context;
        let mut corrections = Vec::new();
        for Estimate { policy, acquisition, acquired_at, charge } in self.limits.take_estimates() {
            let found = policy.find(context.kernel.layers);
            let Some(limit) = found.and_then(|policy| policy.kind.as_limit()) else { continue };
            let cost = context.kernel.real_cost(limit, call, output, self.state);
            match acquisition {
                Some(acquisition) => corrections.push(LimitCorrection { acquisition, acquired_at, cost }),
                None => correct_run(limit.rule, &charge, cost, self.state),
            }
        }
        if !corrections.is_empty() {
            let _ = context.services.correct_limits(corrections).await;
        }
    }
}

/// Corrects a limit that counts in the session.
fn correct_run(rule: LimitRule, charge: &LimitCharge, cost: RealCost, state: &mut SessionState) {
    let LimitRule::Run(allowed) = rule else { return };
    let (key, estimate) = (&charge.key, charge.cost);
    match cost {
        RealCost::Known(cost) if cost > estimate => state.acquire(key, cost.saturating_sub(estimate)),
        RealCost::Known(cost) => state.release(key, estimate.saturating_sub(cost)),
        RealCost::Unknown => state.acquire(key, allowed.saturating_sub(state.acquired(key))),
    }
}
