//! Stores under faults: processes that race for the same calls while they, their links or their server fail. No call runs twice, each is
//! completed or indeterminate at the end, and no limit is exceeded in any window.
//!
//! An ordinary run is small. With `CALLGATE_LONG_TESTS=1` the numbers are large, 14,000 calls with 2,000 kills in the two longest tests, and each
//! store takes about ten minutes:
//! `CALLGATE_LONG_TESTS=1 cargo test -p callgate-cli --test all store_faults -- --nocapture --test-threads 1`

mod caller;
mod effects;
mod load;
mod postgres;
mod redis;
