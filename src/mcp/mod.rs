//! The gateway between MCP clients and servers: whatever a client sends reaches its server as it is, but for tool calls, which go
//! through the policies.
//!
//! A [`Gateway`] has the rules and knows the servers. Each client gets a connection of its own to each of them; what it says is
//! read strictly ([`frame`]), tool calls are judged in a session of its own, lists of tools are shown without those that never run.

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
pub use child::ChildSpec;
pub use config::{Config, ConfigError, ConfiguredServer, config_record};
pub use door::{HttpDoor, MOST_CLIENTS, MOST_CONVERSATIONS, SessionFrom};
pub use flags::{Flag, flags};
pub use gateway::{Gateway, LONGEST_MESSAGE};
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
