//! Message histories: a canonical form, and conversion from and to the format of each provider.
//!
//! A history is untrusted, because clients hold it. No input causes a panic, unknown parts are preserved unchanged, and an
//! ambiguous part gets the least permissive interpretation.

mod ai_sdk;
mod answer;
mod anthropic;
mod approval;
mod blocks;
mod dialect;
mod gemini;
mod history;
mod identity;
mod layout;
mod matching;
mod occurrence;
mod openai_chat;
mod openai_responses;
mod part;
mod provider;

pub use answer::{CallResult, HistoryEditError, approval_response, approval_response_message, denied_output};
pub use approval::{Approver, RequestPart, ResponsePart, StatePart};
pub use dialect::{Dialect, DialectError};
pub use history::{History, Message, Role};
pub use occurrence::{Occurrence, Place};
pub use part::{CallPart, Content, Output, Part, ResultPart, Settled};
