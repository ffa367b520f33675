//! The MCP gateway: a proxy between MCP clients and servers. It forwards every message unchanged, except tool calls, which it evaluates
//! against the policies.
//!
//! A [`Gateway`] holds the rules and the servers. Each client gets its own connection to each server and its own session. Messages are
//! parsed strictly ([`frame`]); tool lists leave out tools that are always denied.

mod answer;
mod arguments;
mod asking;
mod attended;
mod binary;
mod calls;
mod child;
mod client;
mod config;
mod door;
mod flags;
pub mod frame;
mod gateway;
mod http_words;
mod identity;
mod inspect;
mod lines;
mod link;
mod listing;
mod many;
mod method;
mod outlet;
mod pending;
mod pins;
mod requester;
mod server;
mod stdio;
mod streams;
mod tasks;
mod unreadable;
mod upstream;

pub use answer::{OUTCOME, QUARANTINED};
pub use attended::become_server;
pub use child::StdioSpec;
pub use config::{Config, ConfigError, ConfiguredServer, config_record};
pub use door::{DEFAULT_MAX_CLIENTS, DEFAULT_MAX_CONVERSATIONS, HttpDoor, SessionNameSource};
pub use flags::{Flag, flags};
pub use gateway::{DEFAULT_MAX_MESSAGE_SIZE, Gateway};
pub use identity::{Identity, IdentityError, IdentityFile, identity_record};
pub use inspect::Inspected;
pub use link::Who;
pub use pins::{
    LockError, LockFile, PinnedServer, PinnedTool, PublicKey, Signature, SignerError, Signers, SigningKey,
    Standing,
};
pub use server::{Reach, ServerSpec};
pub use streams::{stdin, stdout};
pub use upstream::HttpSpec;
