//! Corrects the estimated costs of a call whose tool has succeeded: limits with `cost_after` + the tool's output → the store, or the session.

use super::{AcquiredLimits, Estimate};
use crate::call::{SessionState, ToolCall};
use crate::execution::CallContext;
use crate::host::{LimitCorrection, RealCost};
use crate::json::Value;
use crate::kernel::{CostCorrected, Event, notify};
use crate::middleware::{LimitCharge, LimitRule};

impl AcquiredLimits {
    /// Whether a cost is known only when the tool has returned.
    pub(in crate::execution) fn has_estimates(&self) -> bool {
        !self.estimates.is_empty()
    }

    /// Corrects what a call has acquired, whose tool has returned this output. If the store does not answer, the call ends as it is, and
    /// later calls wait for the correction.
    pub(in crate::execution) async fn correct_costs<E>(
        &mut self,
        context: &CallContext<'_, E>,
        call: &ToolCall,
        output: &Value,
        state: &mut SessionState,
    ) {
        let mut corrections = Vec::new();
        // Each is corrected once.
        for Estimate { policy, acquisition, acquired_at, charge } in std::mem::take(&mut self.estimates) {
            let layer = policy.layer();
            let Some(policy) = policy.find(context.kernel.layers) else { continue };
            let Some(limit) = policy.kind.as_limit() else { continue };
            let cost = context.kernel.real_cost(limit, call, output, state);
            notify(
                context.kernel.listener,
                &Event::CostCorrected(CostCorrected { call, policy, layer, cost }),
            );
            match acquisition {
                Some(acquisition) => corrections.push(LimitCorrection { acquisition, acquired_at, cost }),
                None => correct_run(limit.rule, &charge, cost, state),
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
