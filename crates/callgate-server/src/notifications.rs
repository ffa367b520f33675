//! Notifications of approval requests and answers: an observer of the engine → webhooks and chat products.
//!
//! A message never approves anything: it links to the approvals page, where the approver signs in.

mod channel;
mod config;
mod delivery;
mod message;

pub use config::{NotificationError, NotificationFile, notification_record};
pub use delivery::{NotificationTasks, Notifier};
