//! Decision logs of [Callgate](https://docs.rs/callgate): every event of an engine as one line of JSON.
//!
//! A [`DecisionLog`] observes engines, and writes by a thread of its own: to a file, as a tamper-evident audit log, which
//! [`AuditVerifier`] verifies, to stderr for people, and with the feature `syslog` to syslog or journald. [`LogEntry`] reads lines back.
//! Arguments and results are represented by keyed digests, unless the [`Content`] says otherwise.
//!
//! ```
//! use callgate::{Engine, Keys, ToolCall, ToolError, json::json, load_text};
//! use callgate_log::{Content, DecisionLog, EventFormat, LogEntry, LogOptions, Rotation};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("decisions.jsonl");
//! let format = EventFormat::new(Content::Redacted, Keys::random()?);
//! let log = DecisionLog::open_file(&path, format, Rotation::default(), LogOptions::default())?;
//! let rules = load_text("policies: [ { id: no-rm, match: rm, deny: {} } ]")?;
//! let engine = Engine::builder(rules).observer(log.clone()).build();
//! let call = ToolCall::new("c1", "rm", json!({ "path": "/" }));
//! # struct Tools;
//! # impl callgate::ToolExecutor for Tools {
//! #     async fn execute(&self, call: &ToolCall) -> Result<callgate::ToolResponse, ToolError> { Ok(call.input.clone().into()) }
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! runtime.block_on(engine.session().execute(call, &Tools));
//! log.close();
//! let text = std::fs::read_to_string(&path)?;
//! let events: Vec<LogEntry> = text.lines().map(LogEntry::parse).collect::<Result<_, _>>()?;
//! let names: Vec<&str> = events.iter().map(|entry| entry.event.as_str()).collect();
//! assert_eq!(names, ["log_opened", "rules_loaded", "call_decided", "call_completed"]);
//! assert_eq!(events[3].reason("policy"), Some("no-rm"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit_chain;
mod audit_log;
mod audit_report;
mod audit_verification;
mod chain_end;
mod decision_log;
mod entry;
mod event_line;
mod event_name;
mod event_schema;
mod event_text;
mod file_log;
mod flush_waiter;
mod json_line;
mod line_appender;
mod line_reader;
mod line_sink;
mod log_destination;
mod log_file;
mod log_files;
mod log_filter;
mod log_lines;
mod log_thread;
mod log_writer;
mod stderr_log;
#[cfg(feature = "syslog")]
mod syslog_log;
mod thread_status;

pub use audit_chain::{ChainHead, InvalidChainHead};
pub use audit_log::{AuditLogError, AuditLogOptions};
pub use audit_report::{AuditNote, AuditPosition, AuditProblem, AuditReport, Located};
pub use audit_verification::AuditVerifier;
pub use decision_log::DecisionLog;
pub use entry::{LogEntry, LogEntryError};
pub use event_line::{Content, EventFormat, FORMAT_VERSION};
pub use event_name::{EventSeverity, event_name, event_severity};
pub use event_schema::event_schema;
pub use event_text::text_line;
pub use line_reader::{LineReader, LogLine, MAX_LINE_BYTES};
pub use log_destination::{InvalidDestination, LogDestination, LogSettings, SyslogAddress};
pub use log_file::{LogFileError, Rotation, rotated_path};
pub use log_files::{audit_files, with_rotated_files};
pub use log_filter::LogFilter;
pub use log_thread::{LogOptions, OnFailure, OnFull};
#[cfg(feature = "syslog")]
pub use syslog_log::SyslogError;
