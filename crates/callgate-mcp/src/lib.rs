//! The MCP gateway: a proxy between MCP clients and servers. It forwards every message unchanged, except tool calls and the requests by
//! other methods that policies concern, which it evaluates against the policies.
//!
//! A [`Gateway`] holds the rules and the servers. Each client gets its own connection to each server and its own session. Messages are
//! parsed strictly ([`jsonrpc`]); tool lists leave out tools that are always denied.

mod call_problem;
mod call_result;
mod handshake;
mod server_tool_lists;
mod tool_servers;
mod argument_names;
mod approval_channels;
mod approved_execution;
mod child_supervision;
mod binary_content;
mod tool_calls;
mod task_source;
mod stdio_upstream;
mod client_info;
mod config;
mod http_server;
mod description_scan;
pub mod jsonrpc;
mod gateway;
mod gateway_server;
mod http_headers;
mod tool_inventory;
mod line_codec;
mod connection;
mod continuations;
mod routes;
mod tool_cache;
mod tool_list;
mod multiplexing;
mod method;
mod method_requests;
mod client_sender;
mod pending_messages;
mod pins;
mod requester;
mod server_health;
mod shared_upstream;
mod upstream_auth;
mod upstream_event;
mod upstream_server;
mod tool_change_notifier;
mod stdio_server;
mod stdio_streams;
mod tasks;
mod malformed_recovery;
mod http_upstream;

pub use call_result::{OUTCOME_META_KEY, QUARANTINED};
pub use child_supervision::{SupervisionError, exec_server};
pub use client_info::ClientContext;
pub use config::{Config, ConfigError, ConfiguredServer, config_record};
pub use description_scan::{DescriptionFinding, scan_description};
pub use gateway::{DEFAULT_MAX_MESSAGE_SIZE, Gateway};
pub use http_server::{DEFAULT_MAX_CLIENTS, HttpServer, SessionNameSource};
pub use http_upstream::HttpSpec;
pub use pins::{
    LockFile, LockFileError, PinStatus, PinnedServer, PinnedTool, PublicKey, Signature, SignerError, Signers,
    SigningKey, SigningKeyError,
};
pub use stdio_streams::{stdin, stdout};
pub use stdio_upstream::StdioSpec;
pub use task_source::TaskSource;
pub use tool_inventory::ToolInventory;
pub use tool_servers::{ListedTool, ToolServers};
pub use upstream_auth::UpstreamAuth;
pub use upstream_event::UpstreamError;
pub use upstream_server::{ServerSpec, Transport};
