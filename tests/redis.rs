//! State in Redis: the contract of stores, and several hosts on one server.

mod server;
mod store;
