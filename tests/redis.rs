//! The store in Redis, on a real server.

mod cutting_proxy;
mod hosts;
mod migration;
mod races;
mod round_trips;
mod server;
mod store;
mod topology;
mod trouble;
