//! Human in the loop: sealed approval requests, approvers and their answers, the ledger of suspended calls, and grants for later
//! calls.
//!
//! Nothing is held in memory while a person decides. A request travels in the conversation history and, if there is a store, is
//! recorded in its ledger. A claim in the ledger keeps an answer from being used twice.
//!
#![doc = include_str!("../../docs/asking-people.md")]

mod answer_seal;
mod approvers;
mod bound_context;
mod call_key;
mod argument_edit;
mod ledger_entry;
mod grant;
mod inbox;
mod inbox_item;
mod ledger;
mod ledger_error;
mod requirement;
mod bound_request;
mod tally;

pub use crate::call::{ApprovalDecision, ApprovalRecord, ApprovalRequest, CardLabels, SingleUseGuarantee};
pub use answer_seal::{AnswerSealError, seal_answer, verify_answer};
pub use approvers::{ApproverEntry, ApproverError};
pub use argument_edit::ArgumentEditError;
pub use bound_request::{BoundRequest, BoundRequestError};
pub use grant::{Grant, GrantKey};
pub use inbox::Inbox;
pub use inbox_item::{InboxError, InboxItem, RequestStatus, RequirementStatus};
pub use ledger::LedgerKey;
pub use ledger_error::LedgerError;
pub use requirement::{ApprovalRequirement, Permit, Remembered};
pub use tally::{IgnoredAnswer, Tally};

// How a call is suspended and resumed, for the other crates of Callgate.
#[doc(hidden)]
pub use approvers::name_comparison;
#[doc(hidden)]
pub use argument_edit::apply_edits;
#[doc(hidden)]
pub use bound_context::BoundContext;
#[doc(hidden)]
pub use bound_request::ScriptJournal;
#[doc(hidden)]
pub use call_key::{CallKey, CallKeys, RecalledRequest};
#[doc(hidden)]
pub use ledger::{ClaimResult, KeyedEntry, Ledger};
#[doc(hidden)]
pub use ledger_entry::{AnswerRecordError, CallStage, LedgerEntry};
#[doc(hidden)]
pub use tally::count_answers;
