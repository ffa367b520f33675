//! The store in Redis, on a real server.

mod hosts;
mod migration;
mod races;
mod round_trips;
pub mod server;
mod store;
mod topology;
mod trouble;
