//! Message histories: a canonical form, and conversion from and to the format of each provider.
//!
//! A history is untrusted, because clients hold it. No input causes a panic, unknown parts are preserved unchanged, and an
//! ambiguous part gets the least permissive interpretation.

mod ai_sdk;
mod history_edit;
mod anthropic;
mod approval_json;
mod approval_parts;
mod call_arguments;
mod content_blocks;
mod dialect;
mod dialect_messages;
mod gemini;
mod history;
mod history_document;
mod id_assignment;
mod segments;
mod user_task;
mod call_matching;
mod occurrence;
mod openai_chat;
mod openai_responses;
mod part;
mod provider_history;

pub use approval_parts::{Approver, RequestPart, ResponsePart, StatePart};
pub use dialect::{Dialect, DialectError};
pub use history::{History, Message, PartPosition, Role};
pub use history_edit::{
    CallResult, HistoryEditError, approval_response, approval_response_message, denied_output,
};
pub use occurrence::CallOccurrence;
pub use part::{CallPart, Part, PartContent, ResultOutput, ResultPart, ResultStatus};
