//! Stores under faults: processes that race for the same calls while they, their links or their server fail. No call runs twice, each is
//! completed or indeterminate at the end, and no limit is exceeded in any window.
//!
//! They take minutes, so the ordinary run has none of them. With `CALLGATE_LONG_TESTS=1` they are large:
//! `CALLGATE_LONG_TESTS=1 cargo test -p callgate-cli --release --test all store_faults -- --include-ignored --nocapture --test-threads 1`

mod caller;
mod effects;
mod load;
mod postgres;
mod redis;
