//! The store in PostgreSQL, on a real server.

mod hosts;
mod indexes;
mod round_trips;
pub mod server;
mod store;
mod trouble;
