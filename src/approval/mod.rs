//! Human in the loop: sealed approval requests, approvers and their answers, the ledger of suspended calls, and grants for later
//! calls.
//!
//! Nothing is held in memory while a person decides. A request travels in the conversation history and, if there is a store, is
//! recorded in its ledger. A claim in the ledger keeps an answer from being used twice.
//!
#![doc = include_str!("../../docs/asking-people.md")]

mod answer;
mod approvers;
mod bound;
mod call_key;
mod edit;
mod entry;
mod grant;
mod inbox;
mod ledger;
mod permit;
mod question;
mod tally;

pub use answer::{AnswerSealError, seal_answer, verify_answer};
pub use approvers::{ApproverEntry, Refusal, name_comparison};
pub use bound::BoundContext;
pub use call_key::{CallKey, CallKeys, RecalledRequest};
pub use edit::{ArgumentEditError, edited};
pub use entry::{Entry, Refused, Stage};
pub use grant::{Grant, GrantKey};
pub use inbox::{Inbox, InboxError, Item, Progress, RequirementStatus};
pub use ledger::{ClaimResult, KeyedEntry, Ledger, LedgerError, Name};
pub use permit::{ApprovalRequirement, Permit, Remembered};
pub use question::{BoundRequestError, Question, ScriptJournal};
pub use tally::{Ignored, Standing, tally};
