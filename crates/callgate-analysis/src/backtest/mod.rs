//! Backtests: recorded calls + rules → what the rules would decide otherwise.
//!
//! [`Replay`] evaluates recorded calls in order, and [`BacktestReport`] counts the decisions that differ, by cause.

mod replay_store;
mod replay;
mod report;

pub use replay::Replay;
pub use report::{
    BACKTEST_REPORT_VERSION, BacktestReport, BacktestSummary, ChangedCallExample, ChangedCalls,
};
