//! Counts a call of a recording in its limits, although the policies stop it.

use super::{AcquiredLimits, Admission, LimitClaim};
use crate::call::SessionState;
use crate::execution::CallContext;
use crate::host::{Account, catch_panic};
use crate::json::Value;
use crate::kernel::Decision;
use crate::middleware::{CountedCalls, LimitRule};

/// Counts a recorded call in its limits, whatever they have left, with the cost that its result shows. Attempts were counted in the store
/// when the call was decided.
pub(in crate::execution) async fn count_recorded_call<E>(
    context: &CallContext<'_, E>,
    decision: &mut Decision<'_>,
    output: Option<&Value>,
    state: &mut SessionState,
) {
    let limits = decision.take_limits();
    let layers = decision.layers().clone();
    let account = Account::from_context(&decision.call().context);
    let CallContext { kernel, services, hooks, .. } = context;
    let mut taken = AcquiredLimits::default();
    let mut admission = Admission {
        reported: None,
        origin: None,
        kernel,
        services,
        taken: &mut taken,
        state,
        run: hooks.run,
        failure: None,
    };
    for claim in limits.into_iter().filter_map(|pending| LimitClaim::new(pending, &layers, account)) {
        let is_of_session = matches!(claim.limit.rule, LimitRule::Run(_));
        if is_of_session || claim.limit.counted == CountedCalls::Executions {
            let _ = catch_panic(admission.acquire_now(std::slice::from_ref(&claim))).await;
        }
    }
    if let Some(output) = output {
        let call = decision.changed_call().unwrap_or_else(|| decision.call().clone());
        taken.correct_costs(context, &call, output, state).await;
    }
}
