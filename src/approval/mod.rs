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
mod requirement;
mod bound_request;
mod tally;

pub use answer_seal::{AnswerSealError, seal_answer, verify_answer};
pub use approvers::{ApproverEntry, ApproverError, name_comparison};
pub use argument_edit::{ArgumentEditError, apply_edits};
pub use bound_context::BoundContext;
pub use bound_request::{BoundRequest, BoundRequestError, ScriptJournal};
pub use call_key::{CallKey, CallKeys, RecalledRequest};
pub use grant::{Grant, GrantKey};
pub use inbox::Inbox;
pub use inbox_item::{InboxError, InboxItem, RequestStatus, RequirementStatus};
pub use ledger::{ClaimResult, KeyedEntry, Ledger, LedgerError, LedgerKey};
pub use ledger_entry::{AnswerRecordError, CallStage, LedgerEntry};
pub use requirement::{ApprovalRequirement, Permit, Remembered};
pub use tally::{IgnoredAnswer, Tally, count_answers};
