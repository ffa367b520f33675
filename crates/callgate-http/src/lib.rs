//! What the HTTP servers of Callgate share, the MCP gateway and the decision server: who a caller is ([`Authenticator`]), which web pages
//! may send requests ([`OriginPolicy`]), how many connections one address may hold ([`serve_connections`]), the sessions of callers
//! ([`Conversations`]), health probes and metrics.

mod headers;
mod responses;
mod origin_policy;
mod connection_limits;
mod listen_address;
mod health_probe;
mod metrics_server;
mod conversations;
mod identity;

pub use connection_limits::serve as serve_connections;
pub use conversations::{ConversationKey, ConversationStart, Conversations, DEFAULT_MAX_CONVERSATIONS};
pub use headers::{HeaderError, JSON, accepts, has_json_body, single_value};
pub use health_probe::HealthProbe;
pub use identity::{
    Access, AccessSet, AuthenticationError, Authenticator, Caller, IdentityError, IdentityFile,
    ReloadableAuthenticator, WatchedFile, identity_record,
};
pub use listen_address::check_listen_address;
pub use metrics_server::{BearerSecret, MetricsServer};
pub use origin_policy::{OriginError, OriginPolicy, preflight};
pub use responses::{empty, with_body};
