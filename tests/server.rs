//! The decision server: requests and responses over HTTP, and lines of JSON.

mod access;
mod approvals;
mod approvals_page;
mod authzen;
mod authzen_interop;
mod browser;
mod connections;
mod calls;
mod events;
mod fuzzing;
mod guide;
mod harness;
mod histories;
mod kills_under_load;
mod lines;
mod notifications;
mod openapi;
mod restarts;
mod slack_answers;
mod tls;
mod tool_servers;
mod traces;
