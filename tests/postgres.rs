//! The store in PostgreSQL, on a real server.

mod hosts;
mod indexes;
mod round_trips;
pub mod server;
pub mod small_disk;
mod store;
mod trouble;
