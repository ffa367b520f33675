//! The store in PostgreSQL, on a real server.

mod hosts;
mod server;
mod store;
