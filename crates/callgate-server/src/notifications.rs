//! Notifications of approval requests and answers: an observer of the engine → webhooks, chat products and e-mails.
//!
//! A message alone approves nothing: its links lead to pages on which the approver signs in, or the chat product vouches for who
//! clicked. Only a policy can allow the links of an e-mail to answer in the name of its recipient.

mod message;
mod links;
mod templates;
mod envelope;
mod slack;
mod http_receiver;
mod email_text;
mod email;
mod channel;
mod file_schema;
mod config;
mod interactions;
mod delivery;

pub use config::{NotificationError, NotificationFile};
pub use delivery::{NotificationTasks, Notifier};
pub use file_schema::notification_record;
pub use interactions::ChannelAnswers;
pub(crate) use interactions::SignedClick;
