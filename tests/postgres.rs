//! The store in PostgreSQL, on a real server.

mod hosts;
pub mod server;
mod store;
