//! The gateway between MCP clients and servers: whatever a client sends reaches its server as it is, but for tool calls, which go
//! through the policies.
//!
//! A [`Gateway`] has the rules and knows the servers. Each client gets a connection of its own to each of them; what it says is
//! read strictly ([`frame`]), tool calls are judged in a session of its own, lists of tools are shown without those that never run.

mod answer;
mod binary;
mod calls;
mod child;
pub mod frame;
mod gateway;
mod http_words;
mod lines;
mod identity;
mod link;
mod listing;
mod method;
mod outlet;
mod server;
mod stdio;
mod upstream;

pub use answer::OUTCOME;
pub use child::ChildSpec;
pub use gateway::{Gateway, LONGEST_MESSAGE};
pub use identity::{Identity, IdentityError, identity_record};
pub use server::{Reach, ServerSpec};
pub use upstream::HttpSpec;
