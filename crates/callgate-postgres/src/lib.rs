//! The PostgreSQL store: limits, caches and records in a database that many gateways and hosts share.
//!
//! [`PostgresStore::open`] takes a URL such as `postgres://callgate@db.example.com/callgate`. The tables are in a schema of their own,
//! which is created if it is missing. Wrap the store in a [`SealedStore`](callgate::state::SealedStore), so that whoever can write the
//! database can neither read nor forge what it holds.

mod cache;
mod cache_uses;
mod connection;
mod connection_pool;
mod database;
mod error;
mod limit_queue;
mod limits;
mod record_store;
mod records;
mod schema;
mod slot_lease;
mod slots;
mod statement;
mod store;
mod tasks;
mod transaction;
mod usage;

pub use connection::{PostgresSettings, SettingsError};
pub use error::PostgresOpenError;
pub use store::PostgresStore;
