//! Work limit of one call: a budget of work units (fuel), shared by everything that is evaluated for the call.
//!
//! Conditions, JSONPaths, regular expressions, expressions, script replays, templates, schemas and redaction all spend units before they
//! do work. Units are counted, not timed: the same call under the same policies spends the same on every machine. A unit is about 20 ns
//! of one core. Once the units of a call are used up, nothing more is evaluated for it, and it fails closed: the call is denied, or its
//! result is withheld.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

/// Units for one decision: about a fifth of a second.
pub const DECISION_UNITS: u64 = 10_000_000;

/// Units for one call, from its decision to its outcome: about half a second.
pub const CALL_UNITS: u64 = 25_000_000;

/// The units of a call are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("evaluating the policies for this call exceeds the work limit of one call")]
pub struct WorkLimitError;

thread_local! {
    /// Units left for the call that is evaluated on this thread; `None` if there is none.
    static UNITS_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static UNITS_USED: Cell<u64> = const { Cell::new(0) };
}

/// Spends units of the call that is evaluated on this thread, if there is one.
///
/// # Errors
/// [`WorkLimitError`] if too few units are left. Then none are left: after the first evaluation that fails, all later ones fail, too.
pub(crate) fn spend(units: u64) -> Result<(), WorkLimitError> {
    let Some(left) = UNITS_LEFT.get() else { return Ok(()) };
    match left.checked_sub(units) {
        Some(left) if left > 0 => {
            UNITS_LEFT.set(Some(left));
            UNITS_USED.set(UNITS_USED.get().wrapping_add(units));
            Ok(())
        }
        _ => {
            UNITS_LEFT.set(Some(0));
            Err(WorkLimitError)
        }
    }
}

/// Spends units for work on `amount` bytes or values, `per_unit` of them a unit.
pub(crate) fn spend_for(amount: usize, per_unit: u64) -> Result<(), WorkLimitError> {
    spend(amount as u64 / per_unit + 1)
}

/// Returns whether the units of the call that is evaluated on this thread are used up.
pub(crate) fn is_exceeded() -> bool {
    UNITS_LEFT.get() == Some(0)
}

/// Units that calls have used on this thread. For tests, which compare the value before and after.
pub fn units_used_on_thread() -> u64 {
    UNITS_USED.get()
}

/// The units that are left for one call.
#[derive(Debug)]
pub(crate) struct WorkMeter {
    units_left: u64,
}

impl WorkMeter {
    /// The meter of a decision.
    pub(crate) fn for_decision() -> Self {
        Self { units_left: DECISION_UNITS }
    }

    /// The meter of a call whose decision used this number of units.
    pub(crate) fn after_decision(used: u64) -> Self {
        Self { units_left: CALL_UNITS.saturating_sub(used) }
    }

    /// Units used by the decision so far.
    pub(crate) fn decision_units_used(&self) -> u64 {
        DECISION_UNITS.saturating_sub(self.units_left)
    }

    /// Runs a function that spends units of this meter.
    pub(crate) fn run<T>(&mut self, evaluate: impl FnOnce() -> T) -> T {
        let outer = RestoreGuard { outer_units: UNITS_LEFT.replace(Some(self.units_left)), meter: self };
        let result = evaluate();
        drop(outer);
        result
    }

    /// Runs a function that spends units of the call on this thread, or of this meter if there is none.
    pub(crate) fn run_nested<T>(&mut self, evaluate: impl FnOnce() -> T) -> T {
        match UNITS_LEFT.get() {
            Some(_) => evaluate(),
            None => self.run(evaluate),
        }
    }

    /// Runs a future that spends units of this meter, on whichever threads it is polled.
    pub(crate) async fn scope<F: Future>(mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| self.run(|| future.as_mut().poll(context))).await
    }
}

/// Restores the units of the enclosing call when dropped, also after a panic.
struct RestoreGuard<'m> {
    outer_units: Option<u64>,
    meter: &'m mut WorkMeter,
}

impl Drop for RestoreGuard<'_> {
    fn drop(&mut self) {
        self.meter.units_left = UNITS_LEFT.replace(self.outer_units).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_meter_stays_exceeded_and_work_outside_a_call_is_free() {
        assert_eq!(spend(u64::MAX), Ok(()));
        let mut meter = WorkMeter { units_left: 10 };
        meter.run(|| {
            assert_eq!(spend(9), Ok(()));
            // A nested call has its own units.
            let mut inner = WorkMeter { units_left: 5 };
            inner.run(|| assert_eq!(spend(5), Err(WorkLimitError)));
            assert!(!is_exceeded());
        });
        assert!(!is_exceeded());
        meter.run(|| {
            assert_eq!(spend(2), Err(WorkLimitError));
            assert_eq!((spend(0), is_exceeded()), (Err(WorkLimitError), true));
        });
        assert_eq!(meter.units_left, 0);
    }

    #[test]
    fn nested_work_is_spent_from_the_meter_of_the_call() {
        let (mut call, mut decision) = (WorkMeter { units_left: 10 }, WorkMeter::for_decision());
        assert_eq!(call.run(|| decision.run_nested(|| spend(6))), Ok(()));
        assert_eq!((call.units_left, decision.decision_units_used()), (4, 0));
        assert_eq!(decision.run_nested(|| spend(6)), Ok(()));
        assert_eq!((call.units_left, decision.decision_units_used()), (4, 6));
    }

    #[test]
    fn a_panic_restores_the_outer_meter() {
        let mut meter = WorkMeter { units_left: 10 };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| meter.run(|| panic!("on purpose"))));
        assert_eq!((spend(100), meter.units_left), (Ok(()), 10));
    }

    #[test]
    fn interleaved_futures_spend_units_of_their_own_calls() {
        let a = WorkMeter { units_left: 10 }.scope(async {
            let first = spend(6);
            tokio::task::yield_now().await;
            (first, spend(6))
        });
        let b = WorkMeter { units_left: 100 }.scope(async {
            tokio::task::yield_now().await;
            spend(60)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (a, b) = runtime.block_on(async { tokio::join!(a, b) });
        assert_eq!((a, b), ((Ok(()), Err(WorkLimitError)), Ok(())));
    }
}
