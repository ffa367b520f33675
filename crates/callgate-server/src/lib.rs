//! The decision server of Callgate: hosts in any language have their tool calls decided over HTTP, and people approve them in a browser.
//!
//! [`DecisionServer`] serves an [`Engine`](callgate::Engine): decisions, calls that the host executes, histories, approvals, the rules in
//! effect, OpenID AuthZEN, and the approvals page. The API is described by [`openapi_document`].

mod problem;
mod random_id;
mod request_types;
mod operation;
mod operation_table;
mod session_name;
mod activity;
mod answer_link;
mod approver;
mod approval_document;
mod approval_list;
mod approval_watch;
mod api;
mod session_factory;
mod endpoint;
mod endpoints;
mod router;
mod openapi;
mod line_protocol;
mod browser_sessions;
mod call_executor;
mod channel_answers;
mod link_answers;
mod event_stream;
mod page;
mod http_server;
mod notifications;
mod server;

pub use approval_document::{approval_card, approval_document, editable_paths, grant_document};
pub use notifications::{
    ChannelAnswers, NotificationError, NotificationFile, NotificationTasks, Notifier, notification_record,
};
pub use openapi::openapi_document;
pub use server::{ActivityLog, DecisionServer};
