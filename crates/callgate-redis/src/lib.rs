//! The Redis store: limits, caches and records in Redis or Valkey, which many gateways and hosts share.
//!
//! [`RedisStore::open`] takes a URL such as `rediss://callgate@cache.example.com/0`. Each operation is one script that the server runs
//! atomically, in one round trip. Wrap the store in a [`SealedStore`](callgate::state::SealedStore), so that whoever can write the server's
//! data can neither read nor forge records.

mod cache;
mod connection;
mod error;
mod limits;
mod operations;
mod primary;
mod records;
mod script;
mod server;
mod settings;
mod slots;
mod store;
mod tasks;

pub use error::RedisOpenError;
pub use settings::{RedisSettings, SettingsError};
pub use store::RedisStore;
