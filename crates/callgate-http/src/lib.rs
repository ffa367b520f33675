//! What the HTTP servers of Callgate share, the MCP gateway and the decision server: who a caller is ([`Authenticator`]), TLS ([`Tls`]), which web pages
//! may send requests ([`OriginPolicy`]), how many connections one address may hold ([`serve_connections`]), the sessions of callers
//! ([`Conversations`]), health probes and metrics.

mod headers;
mod https_client;
mod tls;
mod responses;
mod origin_policy;
mod connection_limits;
mod listen_address;
mod health_probe;
mod metrics_server;
mod conversations;
mod identity;
mod token_exchange;

pub use connection_limits::{RequestHandler, serve as serve_connections};
pub use conversations::{ConversationKey, ConversationStart, Conversations, DEFAULT_MAX_CONVERSATIONS};
pub use headers::{HeaderError, JSON, accepts, has_json_body, single_value};
pub use health_probe::HealthProbe;
pub use https_client::{error_chain, https_client, install_cryptography, is_this_machine, parse_secret_url};
pub use identity::{
    Access, AccessSet, AuthenticationError, Authenticator, Caller, CallerToken, Credentials, IdentityError,
    IdentityFile, ReloadableAuthenticator, WatchedFile, identity_record,
};
pub use listen_address::check_listen_address;
pub use metrics_server::{BearerSecret, MetricsServer};
pub use origin_policy::{OriginError, OriginPolicy, preflight};
pub use responses::{empty, with_body};
pub use tls::{ClientCertificate, Tls, TlsFiles};
pub use token_exchange::{ExchangedToken, TokenExchange, TokenExchangeError, TokenExchangeSettings};
