//! What one call may use of the processor: work units, shared by everything that is evaluated for it.
//!
//! Conditions, JSONPaths, regular expressions, expressions, the replays of scripts, templates, schemas and redaction all spend units before
//! they work. Units are counted, never measured: the same call under the same policies spends the same on every machine. A unit is about 20 ns
//! of one core. Once the units of a call are used up, nothing more is evaluated for it, and the call is denied, or its result is withheld.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

/// Units that one decision may use: about a fifth of a second.
pub const DECISION_UNITS: u64 = 10_000_000;

/// Units that one call may use from its decision to its outcome: about half a second.
pub const CALL_UNITS: u64 = 25_000_000;

/// The units of a call are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policies need more work for this call than one call may use")]
pub struct WorkExceeded;

thread_local! {
    /// What is left for the call that is evaluated on this thread; `None` where none is.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static USED: Cell<u64> = const { Cell::new(0) };
}

/// Spends units of the call that is evaluated on this thread, if one is.
///
/// # Errors
/// So many are not left. Then none are left any more: whatever comes after the first thing that was not evaluated is not evaluated
/// either.
pub(crate) fn spend(units: u64) -> Result<(), WorkExceeded> {
    let Some(left) = LEFT.get() else { return Ok(()) };
    match left.checked_sub(units) {
        Some(left) if left > 0 => {
            LEFT.set(Some(left));
            USED.set(USED.get().wrapping_add(units));
            Ok(())
        }
        _ => {
            LEFT.set(Some(0));
            Err(WorkExceeded)
        }
    }
}

/// The same for work on so many bytes or values, of which one unit pays `per_unit`.
pub(crate) fn spend_on(amount: usize, per_unit: u64) -> Result<(), WorkExceeded> {
    spend(amount as u64 / per_unit + 1)
}

/// Returns whether the units of the call that is evaluated on this thread are used up.
pub(crate) fn is_exceeded() -> bool {
    LEFT.get() == Some(0)
}

/// How many units calls have used on this thread. For tests: what they used themselves is the difference.
pub fn used_on_this_thread() -> u64 {
    USED.get()
}

/// The units that are left for one call.
#[derive(Debug)]
pub(crate) struct Meter {
    left: u64,
}

impl Meter {
    /// The meter of a decision.
    pub(crate) fn of_decision() -> Self {
        Self { left: DECISION_UNITS }
    }

    /// The meter of a call whose decision used so many units.
    pub(crate) fn after_decision(used: u64) -> Self {
        Self { left: CALL_UNITS.saturating_sub(used) }
    }

    /// Units that were used of a decision.
    pub(crate) fn used_of_decision(&self) -> u64 {
        DECISION_UNITS.saturating_sub(self.left)
    }

    /// Evaluates something for the call.
    pub(crate) fn run<T>(&mut self, evaluate: impl FnOnce() -> T) -> T {
        let outer = Outer { left: LEFT.replace(Some(self.left)), meter: self };
        let result = evaluate();
        drop(outer);
        result
    }

    /// Evaluates something for the call that is evaluated on this thread, or, if none is, within this meter.
    pub(crate) fn or_outer<T>(mut self, evaluate: impl FnOnce() -> T) -> T {
        match LEFT.get() {
            Some(_) => evaluate(),
            None => self.run(evaluate),
        }
    }

    /// Runs a future for the call, on whichever threads it is polled.
    pub(crate) async fn scope<F: Future>(mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| self.run(|| future.as_mut().poll(context))).await
    }
}

/// Puts back what is left for whatever was evaluated before, also after a panic.
struct Outer<'m> {
    left: Option<u64>,
    meter: &'m mut Meter,
}

impl Drop for Outer<'_> {
    fn drop(&mut self) {
        self.meter.left = LEFT.replace(self.left).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_stays_used_up_and_outside_nothing_counts() {
        assert_eq!(spend(u64::MAX), Ok(()));
        let mut meter = Meter { left: 10 };
        meter.run(|| {
            assert_eq!(spend(9), Ok(()));
            // A call inside of this one has units of its own.
            let mut inner = Meter { left: 5 };
            inner.run(|| assert_eq!(spend(5), Err(WorkExceeded)));
            assert!(!is_exceeded());
        });
        assert!(!is_exceeded());
        meter.run(|| {
            assert_eq!(spend(2), Err(WorkExceeded));
            assert_eq!((spend(0), is_exceeded()), (Err(WorkExceeded), true));
        });
        assert_eq!(meter.left, 0);
    }

    #[test]
    fn a_panic_leaves_no_call_behind() {
        let mut meter = Meter { left: 10 };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| meter.run(|| panic!("on purpose"))));
        assert_eq!((spend(100), meter.left), (Ok(()), 10));
    }

    #[test]
    fn a_future_spends_of_its_own_call_whatever_is_polled_between() {
        let a = Meter { left: 10 }.scope(async {
            let first = spend(6);
            tokio::task::yield_now().await;
            (first, spend(6))
        });
        let b = Meter { left: 100 }.scope(async {
            tokio::task::yield_now().await;
            spend(60)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (a, b) = runtime.block_on(async { tokio::join!(a, b) });
        assert_eq!((a, b), ((Ok(()), Err(WorkExceeded)), Ok(())));
    }
}
