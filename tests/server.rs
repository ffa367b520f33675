//! The decision server: requests and responses over HTTP, and lines of JSON.

mod access;
mod answer_links;
mod approvals;
mod approvals_page;
mod authzen;
mod authzen_interop;
mod browser;
mod connections;
mod corpora;
mod calls;
mod email;
mod events;
mod fuzzing;
mod guide;
mod harness;
mod histories;
pub mod kills_under_load;
mod lines;
mod link_office;
mod notifications;
mod openapi;
pub mod process;
mod restarts;
mod slack_answers;
mod tls;
mod tool_servers;
mod traces;
