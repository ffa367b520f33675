//! Asking people: what is asked, sealed so that nobody can change it; who may answer how; what is known of each call that
//! waits; and what keeps an answer from being used twice.
//!
//! Nothing waits in memory while a person decides. A question travels in the history and, where there is a store, lies in
//! its ledger.
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
pub use approvers::{ApproverEntry, Refusal, comparison_of};
pub use bound::BoundContext;
pub use call_key::{CallKey, CallKeys, Recalled};
pub use edit::{EditRefused, edited};
pub use entry::{Entry, Refused, Stage};
pub use grant::{Grant, GrantKey};
pub use inbox::{Ask, Inbox, InboxError, Item, Progress};
pub use ledger::{Claim, Ledger, LedgerError, Listed, Name};
pub use permit::{Asker, Permit, Remembered};
pub use question::{KeptJournal, Question, QuestionError};
pub use tally::{Ignored, Standing, tally};
