//! Notifications of approval requests and answers: an observer of the engine → webhooks and chat products.
//!
//! A message alone approves nothing: it links to the approvals page, where the approver signs in, or the chat product vouches for who
//! clicked.

mod channel;
mod config;
mod delivery;
mod interactions;
mod message;
mod slack;

pub use config::{NotificationError, NotificationFile, notification_record};
pub use delivery::{NotificationTasks, Notifier};
pub use interactions::ChannelAnswers;
pub(crate) use interactions::SignedClick;
