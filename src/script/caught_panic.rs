//! Panics in foreign and in running code become errors: they must not end the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` and turns a panic into an error.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| "the evaluation failed with an internal error".to_owned())
}
