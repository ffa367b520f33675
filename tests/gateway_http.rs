//! The gateway over HTTP: requests and responses at its endpoint and at upstream servers, as bytes on sockets.

mod approvals;
mod callers;
mod client;
mod connections;
mod corpora;
mod declared_results;
mod endpoint;
pub mod harness;
mod identity;
mod methods;
mod protocol;
mod remote_keys;
mod results;
mod servers;
mod sessions;
mod shared_servers;
mod shutdown;
mod tasks;
mod tokens;
mod upstream_auth;
