//! Backtests: recorded calls + rules → what the rules would decide otherwise.
//!
//! [`RecordingReader`] makes [`RecordedCall`]s of lines, [`RoundAssembler`] puts those of a round together, [`Replay`] evaluates them
//! in order, and [`BacktestReport`] counts the decisions that differ, by cause.

mod decision;
mod recorded_call;
mod recording_reader;
mod redaction_marks;
mod round_assembler;
mod replay;
mod report;

pub use crate::recorded_executor::RecordedExecutor;
pub use decision::{CallDecision, DecisionDirection};
pub use recorded_call::{CallOrigin, CallStage, RecordedCall, RecordedDecision};
pub use recording_reader::{RecordedLine, RecordingError, RecordingReader};
pub use replay::Replay;
pub use report::{
    BACKTEST_REPORT_VERSION, BacktestReport, BacktestSummary, ChangedCallExample, ChangedCalls,
};
pub use round_assembler::RoundAssembler;
