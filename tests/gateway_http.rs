//! The gateway over HTTP: what it says and hears at its door and at servers, as bytes on sockets.

mod approvals;
mod callers;
mod connections;
mod door;
mod endings;
mod identity;
mod protocol;
mod results;
mod scene;
mod servers;
mod sessions;
mod tokens;
