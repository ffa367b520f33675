//! The history of an agent: one canonical form, and the way to and from every provider's own.
//!
//! A history is untrusted: clients hold it. Nothing in it may panic, what is not understood is kept as it stood, and
//! what is ambiguous is never read as more than it says.

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

pub use answer::{AnswerError, Settlement, approval_response, approval_response_message, denied_output};
pub use approval::{Approver, RequestPart, ResponsePart, StatePart};
pub use dialect::{Dialect, DialectError};
pub use history::{History, Message, Role};
pub use occurrence::{Occurrence, Place};
pub use part::{CallPart, Content, Output, Part, ResultPart, Settled};
