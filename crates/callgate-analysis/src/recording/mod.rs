//! Recordings of calls: decision logs, audit logs, files of calls, histories → [`RecordedCall`]s, in rounds, with what was decided.

mod decision;
mod recorded_call;
mod redaction_marks;
mod history_recording;
mod recording_reader;
mod round_assembler;

pub use decision::{CallDecision, DecisionDirection};
pub use recorded_call::{CallOrigin, CallStage, RecordedCall, RecordedDecision};
pub use recording_reader::{RecordedLine, RecordingError, RecordingReader};
pub(crate) use redaction_marks::is_redacted;
pub use round_assembler::RoundAssembler;
